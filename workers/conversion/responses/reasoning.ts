import { type JsonObject, list, object, text } from "#formats";
import { summaryPart } from "./items.ts";

/**
 * Reasoning as it crosses chat: `reasoning_details[]` of a message, in the shape that OpenRouter made known: one entry
 * for each part of a summary and one for the encrypted state, which share the item's id. The format says whose state it
 * is: another provider's is never passed on.
 */
const format = "openai-responses-v1";

/** The details of one reasoning item; none if it has no state that could go back. */
export function detailsOf(item: JsonObject, index: number): JsonObject[] {
  const { id, encrypted_content, summary } = item;
  if (!text(encrypted_content)) return [];
  const shared = { ...(text(id) && { id }), format, index };
  return [
    ...list(summary).map((part) => ({ type: "reasoning.summary", summary: text(part["text"]), ...shared })),
    { type: "reasoning.encrypted", data: encrypted_content, ...shared },
  ];
}

/** The items that a message's own details were. */
export function itemsOf(details: unknown): JsonObject[] {
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

/** What an item says of the reasoning in it, part by part. */
export const thoughtsOf = ({ summary, content }: JsonObject): string[] =>
  [...list(summary), ...list(content)].map((part) => text(object(part)["text"])).filter((thought) => thought !== "");

/** Between two parts. */
export const paragraph = "\n\n";
