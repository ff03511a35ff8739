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
