import { isSet } from "#formats";

const headerSafe = /^[\w.-]{1,64}$/;
const mostNames = 32;

/** The names of what is left out (`x-ignored-params`). They go out in a header: nothing else may be in them. */
export function ignoredParams() {
  const names = new Set<string>();
  return {
    add(name: string, value: unknown): void {
      if (isSet(value) && headerSafe.test(name) && names.size < mostNames) names.add(name);
    },
    names: (): readonly string[] => [...names],
  };
}

export type IgnoredParams = ReturnType<typeof ignoredParams>;
