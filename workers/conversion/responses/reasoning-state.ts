import { toolLists } from "#formats";
import { isSet, type JsonObject, list, number, strings, text } from "#json";
import { isEncodedReasoning } from "../reasoning-state.ts";
import { summaryPart } from "./output-items.ts";

export const stateInclude = "reasoning.encrypted_content";

/**
 * The caller's `include`, plus the encrypted reasoning state if the model has one. The provider stores nothing, so the
 * output could not be sent back without it. Models that do not reason refuse it:
 * https://github.com/microsoft/agent-framework/issues/7483
 */
export const includeState = (include: unknown, hiddenReasoning: boolean | undefined): readonly string[] =>
  hiddenReasoning ? [...new Set([...strings(include), stateInclude])] : strings(include);

/**
 * Tells whether a reasoning item lacks state from the provider. The provider would look such an item up by its id, although
 * nothing is stored, and it refuses the state of a converted answer.
 */
export const isHollow = ({ type, encrypted_content, content }: JsonObject): boolean =>
  type === "reasoning" && !isSet(content) && (!isSet(encrypted_content) || isEncodedReasoning(encrypted_content));

/**
 * Models that call tools require their reasoning back, so a converted answer carries state if the request has tools or asks
 * for it.
 */
export const hasState = (request: JsonObject): boolean =>
  strings(request["include"]).includes(stateInclude) || toolLists(request).some(([tools]) => tools.length > 0);

/**
 * Chat carries reasoning state in `reasoning_details[]`, as OpenRouter does: one entry for each part of the summary and one
 * for the encrypted state, with the item's id. The format tells whose state it is: another provider's state is never sent.
 */
const format = "openai-responses-v1";

/** Returns an empty list for an item without encrypted state, which could not be sent back. */
export function reasoningDetailsOf(item: JsonObject, index: number): JsonObject[] {
  const { id, encrypted_content, summary } = item;
  if (!text(encrypted_content)) return [];
  const shared = { ...(text(id) && { id }), format, index };
  return [
    ...list(summary).map((part) => ({ type: "reasoning.summary", summary: text(part["text"]), ...shared })),
    { type: "reasoning.encrypted", data: encrypted_content, ...shared },
  ];
}

export function reasoningItemsOf(details: unknown): JsonObject[] {
  const own = list(details).filter((detail) => detail["format"] === format);
  const itemOf = ({ id, index }: JsonObject) => JSON.stringify([text(id), number(index)]);
  const summaries = Map.groupBy(
    own.filter(({ type }) => type === "reasoning.summary"),
    itemOf,
  );
  return own
    .filter((detail) => detail["type"] === "reasoning.encrypted" && text(detail["data"]))
    .map((detail) => {
      const { id, data } = detail;
      const summary = summaries.get(itemOf(detail)) ?? [];
      // Only the first state of an item gets the summary.
      summaries.delete(itemOf(detail));
      return {
        type: "reasoning",
        ...(text(id) && { id }),
        summary: summary.map((part) => summaryPart(text(part["summary"]))),
        encrypted_content: data,
      };
    });
}
