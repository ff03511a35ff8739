import { type Query, useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { ApiError } from "../api/client.ts";
import { codeError } from "../api/one-time-code.ts";
import { queryClient } from "../api/query-client.ts";
import { homes, type Kind, kindOf, type Sessions, sessionQuery, signIn } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { ErrorNote } from "../components/error-note.tsx";
import { Field } from "../components/field.tsx";
import { Notice } from "../components/notice.tsx";

interface Props {
  /** The kind of session that the current page needs. */
  readonly kind: Kind;
  readonly hasEnded: boolean;
}

const isRefused = (error: unknown) => error instanceof ApiError && error.status === 401;

/** Removes what the cache has of an earlier session of this kind. */
function begin(kind: Kind, sessions: Sessions): void {
  const isOfKind = ({ queryKey: [name] }: Query) => (name === "admin") === (kind === "operator");
  queryClient.removeQueries({
    predicate: (query) => query.queryKey[0] !== sessionQuery.queryKey[0] && isOfKind(query),
  });
  queryClient.setQueryData(sessionQuery.queryKey, sessions);
}

export function SignIn({ kind, hasEnded }: Props) {
  const navigate = useNavigate();
  const [secret, setSecret] = useState("");
  const bySecret = useMutation({
    mutationFn: signIn,
    async onSuccess(sessions, given) {
      const begun = kindOf(given);
      begin(begun, sessions);
      if (begun !== kind) await navigate({ to: homes[begun] });
    },
  });
  useEffect(() => {
    document.title = "Sign in · Dashboard";
  }, []);

  function submit(event: FormEvent) {
    event.preventDefault();
    bySecret.mutate(secret.trim());
  }
  const ofCode = bySecret.isIdle ? codeError() : undefined;
  const isUsed = isRefused(ofCode);
  const error = ofCode ?? bySecret.error;

  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <div className="flex w-full max-w-sm flex-col gap-6">
        <div className="flex flex-col gap-4">
          <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width={40} height={40} />
          <div className="flex flex-col gap-1">
            <h1 className="text-xl font-semibold tracking-tight">Sign in</h1>
            <p className="text-muted">
              Use an API key of your account, or the operator's admin token. The browser keeps only a session, for 12
              hours.
            </p>
          </div>
        </div>
        {hasEnded && <Notice>Your session has ended. Sign in again to go on where you were.</Notice>}
        <form onSubmit={submit} className="flex flex-col gap-4">
          <Field
            label="API key or admin token"
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
        {isUsed && (
          <Notice>
            This link was used or has expired: each works once, for five minutes. The command{" "}
            <code className="font-mono">npm run dashboard:link</code> prints new ones.
          </Notice>
        )}
        {error && !isUsed && <ErrorNote error={error} todo={isRefused(error) ? "Paste it again, whole." : undefined} />}
      </div>
    </main>
  );
}
