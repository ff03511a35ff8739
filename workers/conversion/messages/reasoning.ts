import { type JsonObject, list, number, object, text } from "#json";
import { effortOfBudget, maxThinking } from "../chat/fields.ts";
import { decodeReasoning, encodeReasoning, isEncodedReasoning, type ReasoningState } from "../reasoning-state.ts";

/** Reads ids such as `claude-opus-4-8`, `claude-haiku-4-5-20251001` and `claude-3-7-sonnet-20250219`. */
function versionOf(model: string): { family: string; version: number } {
  const family = /(opus|sonnet|haiku|fable|mythos)/.exec(model)?.[1] ?? "";
  const [, major, minor] = /-(\d)(?:[-.](\d))?(?!\d)/.exec(model) ?? [];
  if (major !== undefined) return { family, version: Number(`${major}.${minor ?? 0}`) };
  return { family, version: family ? Number.POSITIVE_INFINITY : 0 };
}

/**
 * The parameters that a model accepts, derived from its id; models reject others with a 400. Source: the provider's
 * migration guides up to Opus, Sonnet and Haiku 5.5. A family without a version counts as its newest; unknown models accept
 * what the oldest did.
 */
export function modelCapabilities(model: string) {
  const { family, version } = versionOf(model);
  const alwaysThinks = family === "fable" || family === "mythos" || (family === "opus" && version >= 5.5);
  const offSince5 = family === "sonnet" && version >= 5.5 ? "between_tools" : "disabled";
  return {
    /** Thinking is controlled by effort alone, not by a token budget. */
    adaptive: version >= 4.6,
    /** The way to turn thinking off; `low` means that it can only be reduced. */
    off: alwaysThinks ? "low" : version >= 5 ? offSince5 : "absent",
    /** `temperature`, `top_p`, `top_k`. */
    sampling: version < 4.7,
    /** Efforts above `high`. */
    highEfforts: version >= 4.7,
    /** A `tool_choice` that requires a call. */
    forcedTools: version < 5.1 || family === "haiku" || family === "",
    /** System messages within the conversation. */
    lateSystem: version >= 5.5 || (family === "opus" && version >= 4.8),
  } as const;
}

export type ModelCapabilities = ReturnType<typeof modelCapabilities>;

/** Thinking budgets by effort, in tokens. */
const budgets = new Map([
  ["minimal", 1024],
  ["low", 2048],
  ["medium", 8192],
  ["high", 24_576],
  ["xhigh", 49_152],
  ["max", 98_304],
]);
/** The provider's minimum. */
const minBudget = 1024;

/** The chat `reasoning_effort` of a Messages request; `effort` comes from its `output_config`. */
export function effortOf({ type, budget_tokens }: JsonObject, effort: unknown): string | undefined {
  if (type === "disabled") return "none";
  if (typeof effort === "string") return effort;
  if (type === "between_tools") return "low";
  if (type !== "enabled") return undefined;
  return effortOfBudget(number(budget_tokens) ?? 0);
}

/** The fields that request an effort from a model. Returns undefined if the effort cannot be requested. */
export function thinkingOf(
  effort: string,
  cap: number,
  { adaptive, off, highEfforts }: ModelCapabilities,
): JsonObject | undefined {
  if (effort === "none") {
    if (off === "absent") return {};
    return off === "low" ? { output_config: { effort: "low" } } : { thinking: { type: off } };
  }
  const wanted = budgets.get(effort);
  if (wanted === undefined) return undefined;
  if (adaptive) {
    const known = effort === "minimal" ? "low" : wanted > 24_576 && !highEfforts ? "high" : effort;
    // Newer models omit their thinking unless `display` requests it.
    return { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: known } };
  }
  const budget = Math.min(wanted, maxThinking(cap));
  return budget < minBudget ? undefined : { thinking: { type: "enabled", budget_tokens: budget } };
}

/** Lowers the budget with the output cap, because it must be less than the cap. */
export function fitThinking(request: JsonObject, cap: number): JsonObject {
  const thinking = object(request["thinking"]);
  const budget = number(thinking["budget_tokens"]);
  if (text(thinking["type"]) !== "enabled" || budget === undefined || budget < cap) return request;
  if (cap >= (number(request["max_tokens"]) ?? cap)) return request;
  if (cap > minBudget) return { ...request, thinking: { ...thinking, budget_tokens: cap - 1 } };
  const { thinking: _, ...rest } = request;
  return rest;
}

/**
 * The `format` of this provider's entries in `reasoning_details[]`, where chat messages carry thinking blocks in
 * OpenRouter's shape. Entries of other formats are never sent to this provider.
 */
const format = "anthropic-claude-v1";

export const textDetail = (thinking: string, signature: string, index: number): JsonObject => ({
  type: "reasoning.text",
  text: thinking,
  signature,
  format,
  index,
});

export const encryptedDetail = (data: string, index: number): JsonObject => ({
  type: "reasoning.encrypted",
  data,
  format,
  index,
});

export const ownDetails = (details: unknown): readonly JsonObject[] =>
  list(details).filter((detail) => detail["format"] === format);

export const thinkingBlock = (thinking: string, signature: string): JsonObject => ({
  type: "thinking",
  thinking,
  signature,
});

export const redactedBlock = (data: string): JsonObject => ({ type: "redacted_thinking", data });

/** Blocks for a message of another format's model: its thinking, and the details that only its provider can read. */
export function foreignBlocks(reasoning: string, details: readonly JsonObject[]): JsonObject[] {
  if (reasoning) return [thinkingBlock(reasoning, encodeReasoning({ reasoning_details: details }))];
  return details.map((detail) => redactedBlock(encodeReasoning({ reasoning_details: [detail] })));
}

/** Reverses `foreignBlocks` for the model of another format. Thinking that this provider signed is skipped. */
export function blocksToReasoning(blocks: readonly JsonObject[]): ReasoningState {
  let reasoning = "";
  const details: JsonObject[] = [];
  for (const { type, thinking, signature, data } of blocks) {
    const state = decodeReasoning(type === "redacted_thinking" ? data : signature);
    if (type === "thinking" && (state || !text(signature))) reasoning += text(thinking);
    details.push(...(state?.reasoning_details ?? []));
  }
  return {
    ...(reasoning && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details }),
  };
}

/** Thinking without a signature cannot be continued, so it gets no detail. */
export function blocksToDetails(blocks: readonly JsonObject[]): JsonObject[] {
  const details: JsonObject[] = [];
  for (const block of blocks) {
    const signature = text(block["signature"]);
    if (isEncodedReasoning(signature) || isEncodedReasoning(block["data"])) continue;
    if (block["type"] === "thinking" && signature)
      details.push(textDetail(text(block["thinking"]), signature, details.length));
    if (block["type"] === "redacted_thinking") details.push(encryptedDetail(text(block["data"]), details.length));
  }
  return details;
}

export const detailsToBlocks = (details: unknown): JsonObject[] =>
  ownDetails(details).map((detail) =>
    detail["type"] === "reasoning.encrypted"
      ? redactedBlock(text(detail["data"]))
      : thinkingBlock(text(detail["text"]), text(detail["signature"])),
  );
