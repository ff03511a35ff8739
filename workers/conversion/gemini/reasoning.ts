import { type JsonObject, number, object, text } from "#formats";

/**
 * What a model accepts, by its id: generations differ, and answer 400 to what they do not accept. Sources: the provider's
 * guides to thinking, thought signatures and each Gemini since 2.5; observed answers for `minimal` and `medium`. An id
 * without a version is the newest.
 */
export interface ModelCapabilities {
  readonly thinking:
    | { readonly by: "level"; readonly min: "MINIMAL" | "LOW"; readonly hasMedium: boolean }
    /** `off`: the budget that turns thinking off, or nearly so. */
    | { readonly by: "budget"; readonly off: number; readonly min: number; readonly max: number }
    | undefined;
  readonly penalties: boolean;
  /** Calls must carry a thought signature. */
  readonly signatures: boolean;
  readonly mediaInToolResults: boolean;
}

function versionOf(model: string): number {
  const [, major, minor] = /gemini-(\d+)(?:\.(\d+))?(?![\d])/.exec(model) ?? [];
  if (major !== undefined) return Number(`${major}.${minor ?? 0}`);
  return model.includes("gemini-") ? Number.POSITIVE_INFINITY : 0;
}

function thinkingLevels(model: string, version: number): ModelCapabilities["thinking"] {
  const isPro = /-pro\b/.test(model);
  return { by: "level", min: version < 3.7 && !isPro ? "MINIMAL" : "LOW", hasMedium: version > 3 || !isPro };
}

function thinkingBudgets(model: string): ModelCapabilities["thinking"] {
  if (model.includes("pro")) return { by: "budget", off: 128, min: 128, max: 32_768 };
  return { by: "budget", off: 0, min: model.includes("lite") ? 512 : 1, max: 24_576 };
}

export function modelCapabilities(model: string): ModelCapabilities {
  const version = versionOf(model);
  const isThree = version >= 3;
  return {
    thinking: isThree ? thinkingLevels(model, version) : version === 2.5 ? thinkingBudgets(model) : undefined,
    penalties: version !== 2.5,
    signatures: isThree,
    mediaInToolResults: isThree,
  };
}

/** Thinking budgets in tokens, as in the provider's OpenAI-compatible interface. */
const budgets: ReadonlyMap<string, number> = new Map([
  ["minimal", 512],
  ["low", 1024],
  ["medium", 8192],
  ["high", 24_576],
  ["xhigh", 32_768],
  ["max", 32_768],
]);
/** Thinking counts towards the output cap; this share of the cap is reserved for the answer. */
const answerShare = 0.2;

/** The chat `reasoning_effort` of a `thinkingConfig`. */
export function effortOf(thinkingConfig: unknown): string | undefined {
  const { thinkingLevel, thinkingBudget } = object(thinkingConfig);
  const level = text(thinkingLevel).toLowerCase();
  if (level && level !== "thinking_level_unspecified") return level;
  const budget = number(thinkingBudget);
  // A negative budget leaves the choice to the model.
  if (budget === undefined || budget < 0) return undefined;
  if (budget === 0) return "none";
  if (budget < 4096) return "low";
  return budget < 16_384 ? "medium" : "high";
}

/** The `thinkingConfig` for an effort; undefined where the model has no such setting. */
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
  const available = cap === undefined ? budget : Math.floor(cap * (1 - answerShare));
  return { thinkingBudget: Math.max(thinking.min, Math.min(budget, thinking.max, available)), includeThoughts: true };
}

function levelOf(effort: string, { min, hasMedium }: { min: string; hasMedium: boolean }): string {
  switch (effort) {
    case "minimal":
      return min;
    case "low":
      return "LOW";
    case "medium":
      return hasMedium ? "MEDIUM" : "HIGH";
    default:
      return "HIGH";
  }
}

/**
 * The thought signature of a tool call, a message or a delta. Chat carries it as the provider's OpenAI-compatible interface
 * does: in `extra_content`, of a tool call for that call's part, of the message for its text.
 */
export const signatureOf = (holder: JsonObject): string =>
  text(object(object(holder["extra_content"])["google"])["thought_signature"]);

export const signatureField = (signature: unknown): { extra_content?: JsonObject } =>
  text(signature) ? { extra_content: { google: { thought_signature: signature } } } : {};

/** Documented by the provider for calls of other models; without a signature it answers 400. */
export const skipSignatureValidation = "skip_thought_signature_validator";
