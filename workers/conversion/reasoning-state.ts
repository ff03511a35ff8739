import { valuesIn } from "#formats";
import { isDeeper, type JsonObject, list, object, text } from "#json";

/**
 * The reasoning of a chat message in an opaque text, for formats whose only place for the reasoning of a converted answer is
 * a signature. Clients send it back with the turn: DeepSeek's models answer 400 to results of tools without the reasoning
 * before the call (https://api-docs.deepseek.com/guides/thinking_mode).
 */
export interface ReasoningState {
  readonly reasoning_content?: string;
  /** Entries that only their provider can read. */
  readonly reasoning_details?: readonly JsonObject[];
}

/** 15 bytes are 20 characters of base64. Clients decode signatures, and may encode them in the other alphabet. */
const prefix = Buffer.from("reasoning-state").toString("base64");
const maxContentCharacters = 64 * 1024;
const maxCharacters = 256 * 1024;
const maxDepth = 16;
const maxDetails = 256;
/** As many details have. A request may hold a hundred states, which are parsed in one turn of the event loop. */
const maxValues = 8 * maxDetails;

/** Details that are encrypted or signed; others repeat the text of the reasoning. */
export const opaqueDetails = (details: unknown): readonly JsonObject[] =>
  list(details).filter((detail) => text(detail["data"]) !== "" || text(detail["signature"]) !== "");

const encode = (state: ReasoningState): string => prefix + Buffer.from(JSON.stringify(state)).toString("base64");

/** Long reasoning is cut: providers check that it is there. */
export function encodeReasoning({ reasoning_content = "", reasoning_details = [] }: ReasoningState): string {
  const content = reasoning_content.slice(0, maxContentCharacters).toWellFormed();
  const state = content ? { reasoning_content: content } : {};
  const details = reasoning_details.slice(0, maxDetails);
  const whole = encode({ ...state, ...(details.length > 0 && { reasoning_details: details }) });
  return whole.length <= maxCharacters ? whole : encode(state);
}

export const isEncodedReasoning = (signature: unknown): boolean => text(signature).startsWith(prefix);

/** Undefined for a provider's own signature; empty for a text that was changed. */
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
