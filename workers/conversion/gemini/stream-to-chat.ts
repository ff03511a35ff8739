import { type JsonObject, list, object, text } from "#formats";
import { blockOf, indexOf, saidOf } from "./answer.ts";
import { chatLogprobs } from "./logprobs.ts";
import { chatFinish, withheld } from "./map-finish-reason.ts";
import { signed } from "./signature.ts";
import { chatUsage } from "./usage.ts";

/**
 * The provider's stream events as chat chunks. It counts in every event; the usage goes out with the end of an answer, for
 * what came before may know of less than was said.
 */
export function streamToChat() {
  /** By candidate. */
  const calls = new Map<number, number>();
  let id: unknown;
  let usage: unknown;

  function choiceOf(candidate: JsonObject, position: number): JsonObject {
    const index = indexOf(candidate, position);
    const before = calls.get(index) ?? 0;
    const said = saidOf(object(candidate["content"])["parts"], id, index, before);
    const after = before + said.calls.length;
    calls.set(index, after);
    const finish = chatFinish(candidate["finishReason"], after > 0);
    const refusal = withheld(finish, candidate["finishMessage"]);
    const delta = {
      ...(said.reasoning && { reasoning_content: said.reasoning }),
      ...(said.content && { content: said.content }),
      ...(refusal && { refusal }),
      ...(said.calls.length > 0 && { tool_calls: said.calls.map((call, c) => ({ index: before + c, ...call })) }),
      ...signed(said.signature),
    };
    return { index, delta, ...chatLogprobs(candidate["logprobsResult"]), finish_reason: finish };
  }

  return {
    write(event: JsonObject): readonly JsonObject[] {
      id ??= text(event["responseId"]) || undefined;
      if (event["usageMetadata"] != null) usage = event["usageMetadata"];
      const refusal = blockOf(event);
      const choices =
        refusal === undefined
          ? list(event["candidates"]).map(choiceOf)
          : [{ index: 0, delta: { refusal }, finish_reason: "content_filter" }];
      const isEnd = choices.length === 0 || choices.some((choice) => choice["finish_reason"] !== null);
      const counted = isEnd ? chatUsage(usage) : undefined;
      if (choices.length === 0 && !counted) return [];
      return [{ id, object: "chat.completion.chunk", choices, usage: counted }];
    },
    /** The provider's last count. */
    usage: (): unknown => chatUsage(usage),
  };
}
