import { type JsonObject, number, object, text } from "#json";
import { effortOfBudget, maxThinking } from "../chat/fields.ts";

function versionOf(model: string): number {
  const [, major, minor] = /gemini-(\d+)(?:\.(\d+))?(?![\d])/.exec(model) ?? [];
  if (major !== undefined) return Number(`${major}.${minor ?? 0}`);
  return model.includes("gemini-") ? Number.POSITIVE_INFINITY : 0;
}

function thinkingOf(model: string, version: number) {
  if (version >= 3) {
    const isPro = /-pro\b/.test(model);
    const min = version < 3.7 && !isPro ? "MINIMAL" : "LOW";
    return { by: "level", min, hasMedium: version > 3 || !isPro } as const;
  }
  if (version !== 2.5) return undefined;
  // `off` is the budget that turns thinking off, or nearly off.
  if (model.includes("pro")) return { by: "budget", off: 128, min: 128, max: 32_768 } as const;
  return { by: "budget", off: 0, min: model.includes("lite") ? 512 : 1, max: 24_576 } as const;
}

/**
 * The capabilities of a model, derived from its id. Generations differ, and reject what they do not accept with a 400.
 * Sources: the provider's guides to thinking, thought signatures and each Gemini since 2.5; observed answers for `minimal`
 * and `medium`. An id without a version counts as the newest.
 */
export function modelCapabilities(model: string) {
  const version = versionOf(model);
  return {
    thinking: thinkingOf(model, version),
    penalties: version !== 2.5,
    /** Calls must carry a thought signature. */
    signatures: version >= 3,
    mediaInToolResults: version >= 3,
  };
}

export type ModelCapabilities = ReturnType<typeof modelCapabilities>;

/** Thinking budgets in tokens, as in the provider's OpenAI-compatible interface. */
const budgets: ReadonlyMap<string, number> = new Map([
  ["minimal", 512],
  ["low", 1024],
  ["medium", 8192],
  ["high", 24_576],
  ["xhigh", 32_768],
  ["max", 32_768],
]);

/** The chat `reasoning_effort` of a `thinkingConfig`. */
export function effortOf(thinkingConfig: unknown): string | undefined {
  const { thinkingLevel, thinkingBudget } = object(thinkingConfig);
  const level = text(thinkingLevel).toLowerCase();
  if (level && level !== "thinking_level_unspecified") return level;
  const budget = number(thinkingBudget);
  // A negative budget leaves the choice to the model.
  if (budget === undefined || budget < 0) return undefined;
  if (budget === 0) return "none";
  return effortOfBudget(budget);
}

/** The `thinkingConfig` for an effort. Returns undefined if the model has no such setting. */
export function thinkingConfigOf(
  effort: string,
  cap: number | undefined,
  { thinking }: ModelCapabilities,
): JsonObject | undefined {
  const budget = budgets.get(effort);
  if (!thinking || (budget === undefined && effort !== "none")) return undefined;
  if (thinking.by === "level") {
    // Thinking cannot be turned off, only limited.
    if (budget === undefined) return { thinkingLevel: thinking.min };
    return { thinkingLevel: levelOf(effort, thinking), includeThoughts: true };
  }
  if (budget === undefined) return { thinkingBudget: thinking.off };
  const available = cap === undefined ? budget : maxThinking(cap);
  return { thinkingBudget: Math.max(thinking.min, Math.min(budget, thinking.max, available)), includeThoughts: true };
}

function levelOf(effort: string, { min, hasMedium }: { min: string; hasMedium: boolean }): string {
  if (effort === "minimal") return min;
  if (effort === "low") return "LOW";
  return effort === "medium" && hasMedium ? "MEDIUM" : "HIGH";
}

/**
 * The thought signature of a tool call, a message or a delta. Chat carries it in `extra_content`, as the provider's
 * OpenAI-compatible interface does: on a tool call for that call's part, on the message for its text.
 */
export const signatureOf = (holder: JsonObject): string =>
  text(object(object(holder["extra_content"])["google"])["thought_signature"]);

export const signatureField = (signature: unknown): { extra_content?: JsonObject } =>
  text(signature) ? { extra_content: { google: { thought_signature: signature } } } : {};

/** The signature that the provider documents for calls of other models; it rejects calls without a signature with a 400. */
export const skipSignatureValidation = "skip_thought_signature_validator";
