import { type JsonObject, list, text } from "#formats";
import { summaryPart } from "./output-items.ts";

/**
 * Chat carries reasoning state in `reasoning_details[]`, as OpenRouter does: one entry for each part of the summary and one
 * for the encrypted state, with the item's id. The format tells whose state it is: another provider's is never sent.
 */
const format = "openai-responses-v1";

/** Empty for an item without encrypted state, which could not be sent back. */
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
  return own
    .filter((detail) => detail["type"] === "reasoning.encrypted" && text(detail["data"]))
    .map(({ id, index, data }) => ({
      type: "reasoning",
      ...(text(id) && { id }),
      summary: own
        .filter((detail) => detail["type"] === "reasoning.summary" && detail["id"] === id && detail["index"] === index)
        .map((detail) => summaryPart(text(detail["summary"]))),
      encrypted_content: data,
    }));
}

/** Between two parts of reasoning text. */
export const paragraphBreak = "\n\n";
