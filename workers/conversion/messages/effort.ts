import { type JsonObject, number, object, text } from "#formats";
import type { Generation } from "./model-capabilities.ts";

/** Tokens to think with; the provider takes no fewer than the least. */
const budgets: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 24_576,
  xhigh: 49_152,
  max: 98_304,
};
const leastBudget = 1024;
/** Thinking counts towards the cap: this much of it is left for the answer. */
const shareOfAnswer = 0.2;

/** The chat `reasoning_effort` of what a Messages request asks for. */
export function effortOf(request: JsonObject): string | undefined {
  const thinking = object(request["thinking"]);
  if (thinking["type"] === "disabled") return "none";
  const effort = object(request["output_config"])["effort"];
  if (typeof effort === "string") return effort;
  if (thinking["type"] === "between_tools") return "low";
  if (thinking["type"] !== "enabled") return undefined;
  const budget = number(thinking["budget_tokens"]) ?? 0;
  if (budget < 4096) return "low";
  return budget < 16_384 ? "medium" : "high";
}

/** The fields by which a model of this generation thinks so hard; undefined where it cannot be asked for. */
export function thinkingOf(
  effort: string,
  cap: number,
  { thinking, off, deepEffort }: Generation,
): JsonObject | undefined {
  if (effort === "none") {
    if (off === "absent") return {};
    return off === "low" ? { output_config: { effort: "low" } } : { thinking: { type: off } };
  }
  const wanted = Object.hasOwn(budgets, effort) ? budgets[effort] : undefined;
  if (wanted === undefined) return undefined;
  if (thinking === "adaptive") {
    const known = effort === "minimal" ? "low" : wanted > 24_576 && !deepEffort ? "high" : effort;
    // Without a word about it, newer models keep what they thought to themselves.
    return { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: known } };
  }
  const budget = Math.min(wanted, Math.floor(cap * (1 - shareOfAnswer)));
  return budget < leastBudget ? undefined : { thinking: { type: "enabled", budget_tokens: budget } };
}

/** A budget must be less than the cap: where the cap is less than the caller's, it comes down too. */
export function fitThinking(request: JsonObject, cap: number): JsonObject {
  const thinking = object(request["thinking"]);
  const budget = number(thinking["budget_tokens"]);
  if (text(thinking["type"]) !== "enabled" || budget === undefined || budget < cap) return request;
  if (cap >= (number(request["max_tokens"]) ?? cap)) return request;
  if (cap > leastBudget) return { ...request, thinking: { ...thinking, budget_tokens: cap - 1 } };
  const { thinking: _, ...rest } = request;
  return rest;
}
