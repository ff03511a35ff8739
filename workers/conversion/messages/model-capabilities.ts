/**
 * Parameters that a model accepts, by its id; models answer 400 to others. Source: the provider's migration guides up to
 * Opus, Sonnet and Haiku 5.5. A family without a version is its newest; unknown models accept what the oldest did.
 */
export interface ModelCapabilities {
  /** Controlled by a token budget, or by effort alone. */
  readonly thinking: "budget" | "adaptive";
  /** How thinking is turned off; `low`: it can only be reduced. */
  readonly off: "absent" | "disabled" | "between_tools" | "low";
  /** `temperature`, `top_p`, `top_k`. */
  readonly sampling: boolean;
  /** Efforts above `high`. */
  readonly highEfforts: boolean;
  /** A `tool_choice` that requires a call. */
  readonly forcedTools: boolean;
  /** System messages within the conversation. */
  readonly lateSystem: boolean;
}

/** `claude-opus-4-8`, `claude-haiku-4-5-20251001`, `claude-3-7-sonnet-20250219`. */
function versionOf(model: string): { family: string; version: number } {
  const family = /(opus|sonnet|haiku|fable|mythos)/.exec(model)?.[1] ?? "";
  const [, major, minor] = /-(\d)(?:[-.](\d))?(?!\d)/.exec(model) ?? [];
  if (major !== undefined) return { family, version: Number(`${major}.${minor ?? 0}`) };
  return { family, version: family ? Number.POSITIVE_INFINITY : 0 };
}

export function modelCapabilities(model: string): ModelCapabilities {
  const { family, version } = versionOf(model);
  const alwaysThinks = family === "fable" || family === "mythos" || (family === "opus" && version >= 5.5);
  const offSince5 = family === "sonnet" && version >= 5.5 ? "between_tools" : "disabled";
  return {
    thinking: version >= 4.6 ? "adaptive" : "budget",
    off: alwaysThinks ? "low" : version >= 5 ? offSince5 : "absent",
    sampling: version < 4.7,
    highEfforts: version >= 4.7,
    forcedTools: version < 5.1 || family === "haiku" || family === "",
    lateSystem: version >= 5.5 || (family === "opus" && version >= 4.8),
  };
}
