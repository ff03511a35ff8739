import type { ServiceError } from "#errors";
import { errorEvent, firstWorkerEvent, newResponse, responseError } from "#formats";
import { count, type JsonObject, list, object, text } from "#json";
import { contentText, firstChoice, reasoningText } from "../chat/fields.ts";
import { asChunk } from "../chat/whole-answers.ts";
import type { ResponseIdentity, StreamWriter, TokenEstimate } from "../converter.ts";
import { failureOf } from "../failed-choice.ts";
import { opaqueDetails } from "../reasoning-state.ts";
import { tokenUsage } from "../usage.ts";
import { logprobsFromChat, responseId } from "./output-items.ts";
import { numberedEvents, streamOutput } from "./stream-output.ts";

const incompleteReasons: ReadonlyMap<unknown, string> = new Map([
  ["length", "max_output_tokens"],
  ["content_filter", "content_filter"],
]);

function mapFinishReasonFromChat(choice: JsonObject) {
  const message = failureOf(choice);
  if (message !== undefined)
    return { status: "failed", incomplete_details: null, error: { code: "server_error", message } } as const;
  const reason = incompleteReasons.get(choice["finish_reason"]);
  if (reason === undefined) return { status: "completed", incomplete_details: null, error: null } as const;
  return { status: "incomplete", incomplete_details: { reason }, error: null } as const;
}

/** Only the last item can be cut short. */
const lastStatus = (status: string) => (status === "completed" ? "completed" : "incomplete");

export function convertUsageFromChat(usage: unknown, estimate: TokenEstimate): JsonObject {
  const counted = tokenUsage(usage);
  const { prompt_tokens, prompt_tokens_details, completion_tokens_details, cost_usd, is_byok } = object(usage);
  const cost = estimate.costUsd ?? cost_usd;
  const input = counted ? count(prompt_tokens) : estimate.input;
  const output = counted ? counted.output + counted.audio_output : estimate.output;
  const { cache_write_tokens } = object(counted && prompt_tokens_details);
  const { reasoning_tokens } = object(counted && completion_tokens_details);
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: counted?.cached_input ?? 0,
      cache_write_tokens: count(cache_write_tokens),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: count(reasoning_tokens) },
    total_tokens: input + output,
    ...(cost !== undefined && { cost_usd: cost }),
    ...((estimate.isByok ?? is_byok === true) && { is_byok: true }),
  };
}

/** Unix seconds. */
const completedAt = ({ now, created }: ResponseIdentity, status: string): number | null =>
  status === "completed" ? (now?.() ?? created) : null;

export function convertResponseFromChat(
  answer: JsonObject,
  identity: ResponseIdentity,
  request: JsonObject,
): JsonObject {
  const stream = createWriter(undefined, identity, request);
  stream.write(asChunk(answer));
  return stream.response({ input: 0, output: 0 });
}

export const convertStreamFromChat = (identity: ResponseIdentity, request: JsonObject): Required<StreamWriter> =>
  createWriter(numberedEvents(identity.background ? firstWorkerEvent : 0), identity, request);

/**
 * `events` is undefined if only the whole response is needed. A failed stream ends with `response.failed` and `error`,
 * because only its writer knows their sequence numbers.
 */
function createWriter(
  events: ReturnType<typeof numberedEvents> | undefined,
  identity: ResponseIdentity,
  request: JsonObject,
) {
  const { emit, nextNumber } = events ?? { emit: () => "", nextNumber: () => 0 };
  const output = streamOutput(emit, identity, request);
  let usage: unknown;
  let lastChoice: JsonObject = {};
  let hasBegun = events === undefined;

  const { created, model, background } = identity;
  const previousResponseId = identity.state?.previousResponseId;
  const begun = newResponse(request, { id: responseId(identity), created, model, previousResponseId, background });
  const emitState = (type: string, state: JsonObject): string => emit(type, { response: { ...begun, ...state } });
  const begin = (): string => {
    if (hasBegun) return "";
    hasBegun = true;
    return (background ? "" : emitState("response.created", {})) + emitState("response.in_progress", {});
  };
  const itemsSoFar = () =>
    output.items().map((item) => (item["status"] === "in_progress" ? { ...item, status: "incomplete" } : item));

  let closed: { readonly events: string; readonly response: JsonObject } | undefined;
  /** The events that close open items, and the whole response. Repeated calls return the same result. */
  const close = (estimate: TokenEstimate) => {
    if (closed) return closed;
    const end = mapFinishReasonFromChat(lastChoice);
    const events = begin() + output.close(lastStatus(end.status));
    const completed_at = completedAt(identity, end.status);
    const usageAtEnd = convertUsageFromChat(usage, estimate);
    closed = { events, response: { ...begun, ...end, completed_at, output: output.items(), usage: usageAtEnd } };
    return closed;
  };

  return {
    write(chunk: JsonObject) {
      if (chunk["usage"] != null) usage = chunk["usage"];
      const choice = firstChoice(chunk["choices"]);
      if (!choice) return "";
      if (choice["finish_reason"]) lastChoice = choice;
      const delta = object(choice["delta"]);
      let events = begin();
      const reasoning = reasoningText(delta);
      if (reasoning) events += output.writePart("reasoning", reasoning);
      if (delta["reasoning_details"] !== undefined)
        events += output.writeState(opaqueDetails(delta["reasoning_details"]));
      const content = contentText(delta["content"]);
      if (content) events += output.writePart("text", content, logprobsFromChat(object(choice["logprobs"])["content"]));
      const refusal = text(delta["refusal"]);
      if (refusal) events += output.writePart("refusal", refusal);
      for (const call of list(delta["tool_calls"])) events += output.writeCall(call);
      return events;
    },
    usage: () => usage,
    outputBytes: output.bytes,
    response: (estimate: TokenEstimate) => close(estimate).response,
    end(estimate: TokenEstimate) {
      const { events, response } = close(estimate);
      return background ? events : events + emit(`response.${text(response["status"])}`, { response });
    },
    itemsSoFar,
    fail(error: ServiceError) {
      const started = begin();
      const failed = emitState("response.failed", {
        status: "failed",
        error: responseError(error),
        output: itemsSoFar(),
      });
      return started + failed + errorEvent(error, nextNumber());
    },
  };
}
