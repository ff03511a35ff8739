import { readFileSync } from "node:fs";
import type { Format } from "#formats";
import { converters, convertRequest, ignoredParams, limitCacheControl } from "../../workers/conversion/index.ts";

/**
 * The conversion of each feature of a request, for every pair of the caller's format and the provider's. The rows are
 * in test/fixtures/matrix.json; test/unit/conversion-matrix.test.ts proves each cell, and docs/conversion-matrix.md is
 * generated from them.
 */
export interface Conversion {
  readonly feature: string;
  /** The feature in a request of the caller's format; formats without an entry do not have it. */
  readonly requests: Partial<Record<Format, object>>;
  /**
   * The feature in the converted request, by the provider's format, if it differs from `requests`. `{"$matches": "..."}`
   * is a regular expression for the JSON text of a value.
   */
  readonly converted?: Partial<Record<Format, object>>;
  /**
   * The provider's formats, then the callers', for which the feature is not converted. Another provider's state is not
   * even passed through.
   */
  readonly except?: Partial<Record<Format, Partial<Record<Format, Exception>>>>;
  /** The exception for every other provider, by the caller's format. */
  readonly everyOther?: Partial<Record<Format, Exception>>;
  /** True if the model hides its reasoning. */
  readonly hiddenReasoning?: boolean;
  /** The request without the feature, if that is more than the minimal request. */
  readonly without?: Partial<Record<Format, object>>;
}

/** Ignored, with its name in `x-ignored-params`, or null if it has none there; or refused, naming the caller's field. */
export type Exception = { readonly ignored: string | null } | { readonly refused: string };

/** docs/api/wire-details.md, "Conversion", by feature. */
export const rows = JSON.parse(
  readFileSync(new URL("../fixtures/matrix.json", import.meta.url), "utf8"),
) as readonly Conversion[];

export type Cell =
  | { readonly how: "absent" | "native" | "converted" }
  | { readonly how: "ignored"; readonly name: string | null }
  | { readonly how: "refused"; readonly field: string };

export function cellOf({ requests, except, everyOther }: Conversion, caller: Format, provider: Format): Cell {
  if (!requests[caller]) return { how: "absent" };
  const isNative = caller === provider;
  const exception = except?.[provider]?.[caller] ?? (isNative ? undefined : everyOther?.[caller]);
  if (!exception) return { how: isNative ? "native" : "converted" };
  if ("refused" in exception) return { how: "refused", field: exception.refused };
  return { how: "ignored", name: exception.ignored };
}

const minimal: Readonly<Record<Format, object>> = {
  chat: { model: "m", messages: [{ role: "user", content: "Hi" }], max_tokens: 20_000 },
  messages: { model: "m", max_tokens: 20_000, messages: [{ role: "user", content: "Hi" }] },
  responses: { model: "m", input: "Hi", max_output_tokens: 20_000 },
  gemini: { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
};

/** A model of each provider that supports all features. */
const models: Readonly<Record<Format, string>> = {
  chat: "m",
  messages: "claude-opus-4-5",
  responses: "gpt-5",
  gemini: "gemini-3.6-flash",
};

/** The provider's request for a caller's request with a feature. */
export function sentRequest(
  { requests, hiddenReasoning = false }: Pick<Conversion, "requests" | "hiddenReasoning">,
  caller: Format,
  provider: Format,
) {
  const request = { ...minimal[caller], ...requests[caller] };
  const cacheLifetime = provider === "messages" ? "1h" : "none";
  const capField = "max_tokens" as const;
  const target = { model: models[provider], cap: 20_000, capField, hiddenReasoning, cacheLifetime } as const;
  if (caller === provider) {
    const ignored = ignoredParams();
    const limited = limitCacheControl(request, cacheLifetime);
    const prepared = converters[caller].native.prepare(limited.request, target, ignored);
    return { request: prepared, ignored: [...limited.ignored, ...ignored.names()] };
  }
  return convertRequest(converters[caller], converters[provider], request, target);
}

/** The provider's request without the feature. */
export const sentWithout = ({ without = {}, ...row }: Conversion, caller: Format, provider: Format) =>
  sentRequest({ ...row, requests: without }, caller, provider);

/** True if a value contains another: objects may have more fields, lists must match. */
export function has(given: unknown, expected: unknown): boolean {
  if (Array.isArray(expected))
    return (
      Array.isArray(given) && given.length === expected.length && expected.every((each, at) => has(given[at], each))
    );
  if (typeof expected !== "object" || expected === null) return given === expected;
  if ("$matches" in expected) return new RegExp(String(expected.$matches)).test(JSON.stringify(given));
  if (typeof given !== "object" || given === null) return false;
  return Object.entries(expected).every(([field, each]) => has((given as Record<string, unknown>)[field], each));
}
