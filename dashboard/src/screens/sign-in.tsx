import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { codeError } from "../api/one-time-code.ts";
import { queryClient } from "../api/query-client.ts";
import { type Session, sessionQuery, signIn } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { ErrorNote } from "../components/error-note.tsx";
import { Field } from "../components/field.tsx";
import { Notice } from "../components/notice.tsx";

/** Clears the cache, so that no session shows another's data. */
function onSuccess(session: Session) {
  queryClient.removeQueries({ predicate: ({ queryKey: [name] }) => name !== sessionQuery.queryKey[0] });
  queryClient.setQueryData(sessionQuery.queryKey, session);
}

export function SignIn({ hasEnded }: { readonly hasEnded: boolean }) {
  const [secret, setSecret] = useState("");
  const bySecret = useMutation({ mutationFn: signIn, onSuccess });
  useEffect(() => {
    document.title = "Sign in · Dashboard";
  }, []);

  function submit(event: FormEvent) {
    event.preventDefault();
    bySecret.mutate(secret.trim());
  }
  const error = bySecret.isIdle ? codeError() : bySecret.error;

  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <div className="flex w-full max-w-sm flex-col gap-6">
        <div className="flex flex-col gap-4">
          <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width={40} height={40} />
          <div className="flex flex-col gap-1">
            <h1 className="text-xl font-semibold tracking-tight">Sign in</h1>
            <p className="text-muted">
              Paste an API key of your account, or the operator's token. It stays out of this page.
            </p>
          </div>
        </div>
        {hasEnded && <Notice>Your session has ended. Sign in again to go on where you were.</Notice>}
        <form onSubmit={submit} className="flex flex-col gap-4">
          <Field
            label="API key"
            type="password"
            autoComplete="current-password"
            placeholder="live_…"
            required
            value={secret}
            onChange={(event) => setSecret(event.target.value)}
          />
          <Button type="submit" look="primary" busy={bySecret.isPending}>
            Sign in
          </Button>
        </form>
        {error && <ErrorNote error={error} />}
      </div>
    </main>
  );
}
