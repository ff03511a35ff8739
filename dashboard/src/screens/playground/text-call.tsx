import { useMutation } from "@tanstack/react-query";
import type { FormEvent, ReactNode } from "react";
import { call } from "../../api/call.ts";
import { Button } from "../../components/button.tsx";
import { Card } from "../../components/card.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { CopyAs } from "./copy-as.tsx";
import { OutcomeLine } from "./outcome.tsx";

interface Props<Body, Answer> {
  readonly path: string;
  readonly body: Body;
  readonly action: string;
  /** The fields of the form. */
  readonly fields: ReactNode;
  /** Shows an answer, with the request that it answers. */
  readonly children: (answer: Answer, body: Body) => ReactNode;
}

/** A call of a model that answers at once. */
export function TextCall<Body extends object, Answer>({ path, body, action, fields, children }: Props<Body, Answer>) {
  const asked = useMutation({ mutationFn: async (sent: Body) => ({ ...(await call<Answer>(path, sent)), sent }) });
  function submit(event: FormEvent) {
    event.preventDefault();
    asked.mutate(body);
  }
  return (
    <Card className="flex flex-col gap-4">
      <form onSubmit={submit} className="flex flex-col gap-4">
        {fields}
        <div className="flex flex-wrap justify-between gap-2">
          <CopyAs path={path} body={() => body} />
          <Button type="submit" look="primary" busy={asked.isPending}>
            {action}
          </Button>
        </div>
      </form>
      {asked.error && <ErrorNote error={asked.error} />}
      {asked.data && (
        <div aria-live="polite" className="flex flex-col gap-3">
          <OutcomeLine outcome={asked.data} />
          {children(asked.data.answer, asked.data.sent)}
        </div>
      )}
    </Card>
  );
}
