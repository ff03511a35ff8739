/**
 * What each generation of the provider's models takes, by their ids: the versions differ, and answer 400 to what they do
 * not take. Sources: the provider's guides to thinking, thought signatures and each Gemini since 2.5; for `minimal` and
 * `medium` what the models were seen to answer. An id without a version is the newest.
 */
export interface Generation {
  readonly thinking:
    | { readonly by: "level"; readonly least: "MINIMAL" | "LOW"; readonly hasMedium: boolean }
    /** `off`: the budget that turns it off, or nearly so. */
    | { readonly by: "budget"; readonly off: number; readonly least: number; readonly most: number }
    | undefined;
  readonly penalties: boolean;
  /** Calls must carry a signature, and results of tools may have media. */
  readonly signs: boolean;
}

function versionOf(model: string): number {
  const [, major, minor] = /gemini-(\d+)(?:\.(\d+))?(?![\d])/.exec(model) ?? [];
  if (major !== undefined) return Number(`${major}.${minor ?? 0}`);
  return model.includes("gemini-") ? Number.POSITIVE_INFINITY : 0;
}

function levels(version: number, isPro: boolean): Generation["thinking"] {
  const takesMinimal = version < 3.7 && !isPro;
  return { by: "level", least: takesMinimal ? "MINIMAL" : "LOW", hasMedium: version > 3 || !isPro };
}

function budgets(model: string): Generation["thinking"] {
  if (model.includes("pro")) return { by: "budget", off: 128, least: 128, most: 32_768 };
  return { by: "budget", off: 0, least: model.includes("lite") ? 512 : 1, most: 24_576 };
}

export function generationOf(model: string): Generation {
  const version = versionOf(model);
  const isLevelled = version >= 3;
  return {
    thinking: isLevelled ? levels(version, /-pro\b/.test(model)) : version === 2.5 ? budgets(model) : undefined,
    penalties: version !== 2.5,
    signs: isLevelled,
  };
}
