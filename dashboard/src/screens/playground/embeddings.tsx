import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { base, errorOf, unreachable } from "../../api/client.ts";
import type { Model } from "../../api/models.ts";
import { Button } from "../../components/button.tsx";
import { Card } from "../../components/card.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { TextArea } from "../../components/field.tsx";
import { count } from "../../lib/format.ts";
import { CopyAs } from "./copy-as.tsx";
import { OutcomeLine } from "./outcome.tsx";

const path = "/v1/embeddings";

interface Answer {
  readonly data: readonly { readonly embedding: readonly number[] }[];
  readonly usage?: { readonly prompt_tokens: number };
}

async function embed(body: object) {
  const startedMs = performance.now();
  const response = await fetch(`${base}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  }).catch(unreachable);
  if (!response.ok) throw await errorOf(response);
  const { data, usage } = (await response.json()) as Answer;
  return {
    vector: data[0]?.embedding ?? [],
    outcome: {
      requestId: response.headers.get("x-request-id"),
      costUsd: response.headers.get("x-xm-cost-usd") ?? undefined,
      totalMs: performance.now() - startedMs,
      tokens: usage && { input: usage.prompt_tokens, output: 0 },
    },
  };
}

const shownNumbers = 24;

export function Embeddings({ model }: { readonly model: Model }) {
  const [input, setInput] = useState("");
  const call = useMutation({ mutationFn: embed });
  const body = { model: model.id, input };
  function submit(event: FormEvent) {
    event.preventDefault();
    call.mutate(body);
  }
  return (
    <Card className="flex flex-col gap-4">
      <form onSubmit={submit} className="flex flex-col gap-4">
        <TextArea label="Text" rows={4} required value={input} onChange={(event) => setInput(event.target.value)} />
        <div className="flex flex-wrap justify-between gap-2">
          <CopyAs path={path} body={() => body} />
          <Button type="submit" look="primary" busy={call.isPending}>
            Embed
          </Button>
        </div>
      </form>
      {call.error && <ErrorNote error={call.error} />}
      {call.data && (
        <div aria-live="polite" className="flex flex-col gap-2">
          <OutcomeLine outcome={call.data.outcome} />
          <p className="font-medium">{count(call.data.vector.length)} numbers</p>
          <p className="font-mono text-xs wrap-anywhere text-muted">
            {call.data.vector
              .slice(0, shownNumbers)
              .map((value) => value.toFixed(4))
              .join(", ")}
            , …
          </p>
        </div>
      )}
    </Card>
  );
}
