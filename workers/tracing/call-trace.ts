import type { Format } from "#formats";
import type { PaidCall, PaidJobName, Pool } from "#jobs";
import { type JsonObject, object } from "#json";
import type { Capture } from "#money";
import type { Span, Tracing } from "#platform/observability/tracing";
import { converters } from "../conversion/index.ts";
import type { Candidate, MadeAttempt } from "../upstreams/attempt.ts";
import { answerAttributes, contentAttributes, inferenceSpan, usageAttributes } from "./gen-ai.ts";
import { type AnswerReader, createAnswerReader, inputMessages } from "./messages.ts";

interface TracedAttempt {
  readonly made: MadeAttempt;
  readonly span: Span;
  readonly reader: AnswerReader;
  /** Converts the events of the stream to chat chunks, if content is captured. */
  chunks?: { write(event: JsonObject): readonly JsonObject[] };
}

/** The spans of one delivery of a call. A call that is not sampled has none: see `DeliveryTrace`. */
export type WorkTrace = ReturnType<typeof createCallTrace>;

export interface DeliveryTrace {
  /** Ids for log lines. */
  readonly ids: Span["ids"];
  /** The spans of the call, if it is sampled. */
  readonly call: WorkTrace | undefined;
  readonly span: Span;
}

/** Returns undefined if nothing is traced. A later delivery joins the same trace. */
export function beginDelivery(
  tracing: Tracing | undefined,
  delivered: { job: PaidJobName; pool: Pool; payload: PaidCall; count: number; enqueuedAt: number; now: number },
): DeliveryTrace | undefined {
  const { job, pool, payload, count, enqueuedAt, now } = delivered;
  const { traceparent } = payload;
  if (!tracing || traceparent === undefined) return undefined;
  const span = tracing.join(`process ${pool}`, {
    kind: "consumer",
    traceparent,
    at: now,
    attributes: {
      "messaging.system": "bullmq",
      "messaging.operation.name": "process",
      "messaging.operation.type": "process",
      "messaging.destination.name": pool,
      "inference.request_id": payload.requestId,
      "inference.delivery": count,
    },
  });
  if (!span) return undefined;
  if (!span.isSampled) return { ids: span.ids, call: undefined, span };
  // The clocks of two machines may differ.
  if (count === 1) tracing.join(`queue ${pool}`, { traceparent, at: Math.min(enqueuedAt, now) })?.end(now);
  return { ids: span.ids, call: createCallTrace(span, job, payload, tracing.capturesContent), span };
}

/** The id and model of a provider's answer or event, and its choices if it is in chat's format. */
function factsOf(answer: JsonObject): JsonObject {
  const { responseId, modelVersion, choices, message, response } = answer;
  const { id = responseId, model = modelVersion } = object(message ?? response ?? answer);
  return { id, model, choices };
}

function createCallTrace(span: Span, job: PaidJobName, payload: PaidCall, capturesContent: boolean) {
  const attempts: TracedAttempt[] = [];
  let request: JsonObject = {};
  let prompt: () => JsonObject | undefined = () => undefined;

  function endAttempt({ made, span, reader }: TracedAttempt): void {
    const { startedAt, firstAt, endedAt, outcome, status, code } = made;
    const firstChunkMs = firstAt === undefined ? undefined : firstAt - startedAt;
    span.set({ ...answerAttributes({ ...reader.facts(), firstChunkMs }), "inference.outcome": outcome ?? "cancelled" });
    if (firstAt !== undefined) span.event("first chunk", firstAt);
    const isError = outcome !== undefined && outcome !== "succeeded" && outcome !== "cancelled";
    if (isError) span.fail(code ?? (status === undefined ? outcome : String(status)));
    span.end(endedAt);
  }

  return {
    /** Records the caller's parsed request. */
    asks(parsed: JsonObject): void {
      request = parsed;
    },
    /** Sets the conversion of the prompt to chat, for a text call. */
    prompts(toChat: () => JsonObject | undefined): void {
      prompt = toChat;
    },
    startAttempt(made: MadeAttempt, { upstream, model, target }: Candidate): Span {
      const { name, attributes } = inferenceSpan({
        job,
        payload,
        upstream: upstream.id,
        model,
        task: target.model.task,
        outputCap: target.outputCap,
        request,
      });
      const kind = upstream.id === "local" ? "internal" : "client";
      const own = { "inference.upstream": upstream.id, "inference.model": made.model };
      const started = span.child(name, { kind, at: made.startedAt, attributes: { ...attributes, ...own } });
      attempts.push({ made, span: started, reader: createAnswerReader({ hasContent: capturesContent }) });
      return started;
    },
    /** Records the provider's whole answer, in this format. */
    answered(format: Format, answer: JsonObject): void {
      const reader = attempts.at(-1)?.reader;
      if (capturesContent && format !== "chat") reader?.add(converters[format].responseToChat(answer));
      else reader?.add(factsOf(answer));
    },
    /** Records an event of the provider's stream, in this format. */
    streamed(format: Format, event: JsonObject): void {
      const attempt = attempts.at(-1);
      if (!attempt) return;
      if (!capturesContent) return attempt.reader.add(factsOf(event));
      attempt.chunks ??= converters[format].streamToChat();
      for (const chunk of attempt.chunks.write(event)) attempt.reader.add(chunk);
    },
    capturesCost: (): Span => span.child("capture"),
    /** Ends the spans of all attempts. The last one has the usage, which is known only when the call is over. */
    endAttempts(usage: Capture["usage"]): void {
      const last = attempts.at(-1);
      last?.span.set(usageAttributes(usage));
      const chat = capturesContent && last && prompt();
      if (chat) last.span.set(contentAttributes(inputMessages(chat), last.reader.messages()));
      for (const attempt of attempts) endAttempt(attempt);
      attempts.length = 0;
    },
  };
}
