import { valuesIn } from "#formats";
import { isDeeper, type JsonObject, list, object, text } from "#json";

/**
 * The reasoning of a chat message as opaque text, for formats that can carry the reasoning of a converted answer only in a
 * signature. Clients send it back with the next turn: DeepSeek's models reject tool results without the reasoning before the
 * call with a 400 (https://api-docs.deepseek.com/guides/thinking_mode).
 */
export interface ReasoningState {
  readonly reasoning_content?: string;
  /** Entries that only their provider can read. */
  readonly reasoning_details?: readonly JsonObject[];
}

/**
 * 15 bytes encode to 20 base64 characters without padding. Clients may decode a signature and encode it again in the
 * URL-safe alphabet.
 */
const prefix = Buffer.from("reasoning-state").toString("base64");
const maxContentCharacters = 64 * 1024;
const maxCharacters = 256 * 1024;
const maxDepth = 16;
const maxDetails = 256;
/** Enough for `maxDetails` details. A request may hold a hundred states, which are parsed in one turn of the event loop. */
const maxValues = 8 * maxDetails;

/** Details that are encrypted or signed; others repeat the text of the reasoning. */
export const opaqueDetails = (details: unknown): readonly JsonObject[] =>
  list(details).filter((detail) => text(detail["data"]) !== "" || text(detail["signature"]) !== "");

const encode = (state: ReasoningState): string => prefix + Buffer.from(JSON.stringify(state)).toString("base64");

/** Long reasoning is truncated: providers only check that it is present. */
export function encodeReasoning({ reasoning_content = "", reasoning_details = [] }: ReasoningState): string {
  const content = reasoning_content.slice(0, maxContentCharacters).toWellFormed();
  const state = content ? { reasoning_content: content } : {};
  const details = reasoning_details.slice(0, maxDetails);
  const whole = encode({ ...state, ...(details.length > 0 && { reasoning_details: details }) });
  return whole.length <= maxCharacters ? whole : encode(state);
}

export const isEncodedReasoning = (signature: unknown): boolean => text(signature).startsWith(prefix);

/** Returns undefined for a provider's own signature, and an empty state for text that was altered. */
export function decodeReasoning(signature: unknown): ReasoningState | undefined {
  if (!isEncodedReasoning(signature)) return undefined;
  const encoded = text(signature).slice(prefix.length);
  if (encoded.length > maxCharacters) return {};
  try {
    const json = Buffer.from(encoded, "base64").toString();
    valuesIn(json, maxValues);
    const { reasoning_content, reasoning_details } = object(JSON.parse(json));
    const content = text(reasoning_content);
    const details = opaqueDetails(reasoning_details)
      .slice(0, maxDetails)
      .filter((detail) => !isDeeper(detail, maxDepth));
    return {
      ...(content && { reasoning_content: content }),
      ...(details.length > 0 && { reasoning_details: details }),
    };
  } catch {
    return {};
  }
}
