import { isSet } from "#formats";

const headerSafe = /^[\w.-]{1,64}$/;
const maxNames = 32;

/** Collects the ignored parameters of a request for the header `x-ignored-params`, which limits their names. */
export function ignoredParams() {
  const names = new Set<string>();
  return {
    add(name: string, value: unknown): void {
      if (isSet(value) && headerSafe.test(name) && names.size < maxNames) names.add(name);
    },
    names: (): readonly string[] => [...names],
  };
}

export type IgnoredParams = ReturnType<typeof ignoredParams>;
