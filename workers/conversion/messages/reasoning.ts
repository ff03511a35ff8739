import { type JsonObject, list, text } from "#formats";

/**
 * Thinking as it crosses chat: `reasoning_details[]` of a message, one for each block, in the shape that OpenRouter
 * made known. The format says whose state it is: another provider's is never passed on.
 */
const format = "anthropic-claude-v1";

export const signedText = (thinking: string, signature: string, index: number): JsonObject => ({
  type: "reasoning.text",
  text: thinking,
  signature,
  format,
  index,
});

export const encrypted = (data: string, index: number): JsonObject => ({
  type: "reasoning.encrypted",
  data,
  format,
  index,
});

/** This format's own state among the details. */
export const ownDetails = (details: unknown): readonly JsonObject[] =>
  list(details).filter((detail) => detail["format"] === format);

export const thinkingBlock = (thinking: string, signature: string): JsonObject => ({
  type: "thinking",
  thinking,
  signature,
});

export const redactedBlock = (data: string): JsonObject => ({ type: "redacted_thinking", data });

/** The details of a list of blocks that are state; thinking without a signature is none. */
export function detailsOf(blocks: readonly JsonObject[]): JsonObject[] {
  const details: JsonObject[] = [];
  for (const block of blocks) {
    const signature = text(block["signature"]);
    if (block["type"] === "thinking" && signature)
      details.push(signedText(text(block["thinking"]), signature, details.length));
    if (block["type"] === "redacted_thinking") details.push(encrypted(text(block["data"]), details.length));
  }
  return details;
}

/** The blocks that a message's state was. */
export const blocksOf = (details: unknown): JsonObject[] =>
  ownDetails(details).map((detail) =>
    detail["type"] === "reasoning.encrypted"
      ? redactedBlock(text(detail["data"]))
      : thinkingBlock(text(detail["text"]), text(detail["signature"])),
  );
