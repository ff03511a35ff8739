import { type JsonObject, number, object, text } from "#formats";
import type { Generation } from "./model-capabilities.ts";

/** As the provider's own chat interface has them. */
const budgets: ReadonlyMap<string, number> = new Map([
  ["minimal", 512],
  ["low", 1024],
  ["medium", 8192],
  ["high", 24_576],
  ["xhigh", 32_768],
  ["max", 32_768],
]);
/** Thinking counts towards the cap: this much of it is left for the answer. */
const shareOfAnswer = 0.2;

/** The chat `reasoning_effort` of what a request asks for. */
export function effortOf(thinkingConfig: unknown): string | undefined {
  const { thinkingLevel, thinkingBudget } = object(thinkingConfig);
  const level = text(thinkingLevel).toLowerCase();
  if (level && level !== "thinking_level_unspecified") return level;
  const budget = number(thinkingBudget);
  // Less than nothing: the model's own choice.
  if (budget === undefined || budget < 0) return undefined;
  if (budget === 0) return "none";
  if (budget < 4096) return "low";
  return budget < 16_384 ? "medium" : "high";
}

/** The `thinkingConfig` by which a model of this generation thinks so hard; undefined where it cannot be asked for. */
export function thinkingOf(effort: string, cap: number | undefined, { thinking }: Generation): JsonObject | undefined {
  const wanted = budgets.get(effort);
  if (!thinking || (wanted === undefined && effort !== "none")) return undefined;
  if (thinking.by === "level") {
    // It cannot be turned off, only kept short.
    if (wanted === undefined) return { thinkingLevel: thinking.least };
    return { thinkingLevel: levelOf(effort, thinking), includeThoughts: true };
  }
  if (wanted === undefined) return { thinkingBudget: thinking.off };
  const room = cap === undefined ? wanted : Math.floor(cap * (1 - shareOfAnswer));
  return { thinkingBudget: Math.max(thinking.least, Math.min(wanted, thinking.most, room)), includeThoughts: true };
}

function levelOf(effort: string, { least, hasMedium }: { least: string; hasMedium: boolean }): string {
  switch (effort) {
    case "minimal":
      return least;
    case "low":
      return "LOW";
    case "medium":
      return hasMedium ? "MEDIUM" : "HIGH";
    default:
      return "HIGH";
  }
}
