import type { Format } from "#formats";
import { converters, convertRequest } from "../../workers/conversion/index.ts";

/**
 * What becomes of each feature of a request, for every pair of the caller's format and the provider's. The rows stand in
 * `conversion-rows.ts`; test/unit/conversion-matrix.test.ts proves each cell, and the README's table can be written of them.
 */
export interface Conversion {
  readonly feature: string;
  /** What a request of the caller's format has for it; a format without an entry has no place for the feature. */
  readonly ask: Partial<Record<Format, object>>;
  /** What a request of the provider's format has of it, where it crosses; a RegExp stands for a text that it fits. */
  readonly got: Partial<Record<Format, object>>;
  /** By provider, then caller: where it does not cross. State of another provider does not even pass as it is. */
  readonly but?: Partial<Record<Format, Partial<Record<Format, Refusal>>>>;
  /** By caller: the same for every other provider. */
  readonly all?: Partial<Record<Format, Refusal>>;
  /** What `ask` has besides the feature, where that is more than the least request has. */
  readonly besides?: Partial<Record<Format, object>>;
}

/** Left out, by what name it is told (`x-ignored-params`), if it is; or refused, naming the caller's field. */
export type Refusal = { readonly leftOut: string | undefined } | { readonly refused: string };

export type Cell =
  | { readonly how: "absent" | "native" | "crosses" }
  | { readonly how: "left out"; readonly name: string | undefined }
  | { readonly how: "refused"; readonly field: string };

export function cellOf({ ask, but, all }: Conversion, caller: Format, provider: Format): Cell {
  if (!ask[caller]) return { how: "absent" };
  const isNative = caller === provider;
  const otherwise = but?.[provider]?.[caller] ?? (isNative ? undefined : all?.[caller]);
  if (!otherwise) return { how: isNative ? "native" : "crosses" };
  if ("refused" in otherwise) return { how: "refused", field: otherwise.refused };
  return { how: "left out", name: otherwise.leftOut };
}

/** As few fields as each format takes. */
const least: Readonly<Record<Format, object>> = {
  chat: { model: "m", messages: [{ role: "user", content: "Hi" }], max_tokens: 20_000 },
  messages: { model: "m", max_tokens: 20_000, messages: [{ role: "user", content: "Hi" }] },
  responses: { model: "m", input: "Hi", max_output_tokens: 20_000 },
  gemini: { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
};

/** Of the generations of each provider's models one that takes what any of them does. */
const models: Readonly<Record<Format, string>> = {
  chat: "m",
  messages: "claude-opus-4-5",
  responses: "gpt-5",
  gemini: "gemini-3.6-flash",
};

/** A caller's request that asks for a feature, as the provider gets it. */
export function made({ ask }: Pick<Conversion, "ask">, caller: Format, provider: Format) {
  const request = { ...least[caller], ...ask[caller] };
  const to = { model: models[provider], cap: 20_000, capField: "max_tokens" as const };
  if (caller === provider) return { request: converters[caller].native.prepare(request, to), ignored: [] };
  return convertRequest(converters[caller], converters[provider], request, to);
}

/** The same of a caller who asks for all but the feature. */
export const madeWithout = ({ besides = {} }: Conversion, caller: Format, provider: Format) =>
  made({ ask: besides }, caller, provider);

/** All that is wanted is there: objects may have more, lists may not. */
export function has(given: unknown, wanted: unknown): boolean {
  if (wanted instanceof RegExp) return wanted.test(JSON.stringify(given));
  if (Array.isArray(wanted))
    return Array.isArray(given) && given.length === wanted.length && wanted.every((each, at) => has(given[at], each));
  if (typeof wanted !== "object" || wanted === null) return given === wanted;
  if (typeof given !== "object" || given === null) return false;
  return Object.entries(wanted).every(([field, each]) => has((given as Record<string, unknown>)[field], each));
}
