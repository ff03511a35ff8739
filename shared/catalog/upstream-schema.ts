import { z } from "zod";
import { type Format, formats } from "#formats";
import type { ModelType, Upstream } from "./types.ts";

const media = ["image", "video", "audio", "other"] as const;

/** The models that each provider has a route for. */
const servedBy = {
  openai: ["text", "embeddings", ...media],
  anthropic: ["text"],
  gemini: ["text", "embeddings", "image", "video", "audio"],
  replicate: media,
  fal: media,
  local: ["text", "embeddings", ...media],
} as const satisfies Record<Upstream["provider"], readonly ModelType[]>;
type ProviderName = keyof typeof servedBy;

/** Servers of OpenAI's interface differ in what they speak; every other provider speaks what it is named for. */
const openaiFormats: readonly Format[] = ["chat", "responses"];

export const spoken = z
  .array(z.enum(formats))
  .min(1)
  .refine((list) => new Set(list).size === list.length, "names a format twice");
/** By itself, so that it is known from the same that is written out. */
const unspoken: Format[] = ["chat"];

/** The endings keep a key of another kind (the admin token, say) from ever being sent to an upstream. */
const keyVariable = z
  .string()
  .regex(
    /^([A-Z][A-Z0-9_]*_API_(KEY|TOKEN)|FAL_KEY)$/,
    "must be a variable's name that ends in _API_KEY or _API_TOKEN, or FAL_KEY",
  );
const addressVariable = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]*_BASE_URL$/, "must be a variable's name that ends in _BASE_URL");
const milliseconds = z.int().positive().max(86_400_000);

export const upstreamEntry = z.strictObject({
  provider: z.enum(Object.keys(servedBy) as [ProviderName, ...ProviderName[]]),
  /** Of `openai`: what the server speaks. A call in another format is translated into the first. */
  formats: spoken.default(() => unspoken),
  base_url: z
    .url({ protocol: /^https?$/ })
    .regex(/^[^?#@]*[^/?#@]$/, "must be an address without credentials, query or slash at its end")
    .optional(),
  base_url_env: addressVariable.optional(),
  key_env: keyVariable.optional(),
  /** The provider keeps chat answers unless it is told not to: `store: false` always goes there. */
  stores_answers: z.boolean().default(false),
  /** Where a server of OpenAI's interface differs from others. */
  quirks: z
    .strictObject({
      /**
       * Of a chat request, what OpenAI does not document. `drop`, unless said otherwise: strict servers refuse such a field,
       * and another could sell something by it that has no price here. Dropped fields are named in `x-ignored-params`.
       */
      unknown_fields: z.enum(["pass", "drop"]).optional(),
    })
    .optional(),
  concurrency: z.int().positive().max(100_000).default(512),
  /** Models that reason are silent for minutes. */
  first_byte_timeout_ms: milliseconds.default(600_000),
  silence_timeout_ms: milliseconds.default(120_000),
  total_timeout_ms: milliseconds.default(900_000),
});

export type UpstreamEntry = z.infer<typeof upstreamEntry>;
type Complain = (path: readonly (string | number)[], message: string) => void;

export function checkUpstream(entry: UpstreamEntry, complain: Complain) {
  const { provider } = entry;
  const named = entry.base_url !== undefined || entry.base_url_env !== undefined;
  if (provider === "local" && (named || entry.key_env !== undefined))
    complain(["provider"], "'local' runs inside the worker: it has no address and no key");
  if (provider !== "local" && !named) complain(["base_url"], "is missing, and base_url_env too");
  if (provider !== "openai" && entry.formats !== unspoken)
    complain(["formats"], `are for the provider 'openai' alone: '${provider}' always speaks the same`);
  if (provider !== "openai" && entry.quirks !== undefined) complain(["quirks"], "are for the provider 'openai' alone");
  for (const format of entry.formats)
    if (provider === "openai" && !openaiFormats.includes(format))
      complain(["formats"], `'${format}' is not spoken by the provider 'openai', only ${openaiFormats.join(" and ")}`);
  for (const field of ["first_byte_timeout_ms", "silence_timeout_ms"] as const)
    if (entry[field] > entry.total_timeout_ms) complain([field], "is longer than total_timeout_ms");
}

interface Served {
  readonly upstream: string;
  readonly formats?: readonly Format[] | undefined;
}

/** Whether a model of a type can be called there, and in the formats that it says. */
export function checkServing(type: ModelType, served: Served, upstream: UpstreamEntry, complain: Complain) {
  const { provider } = upstream;
  const types: readonly ModelType[] = servedBy[provider];
  if (!types.includes(type))
    complain(
      ["upstream"],
      `'${served.upstream}' serves no model of type '${type}': '${provider}' has ${types.join(", ")}`,
    );
  if (served.formats === undefined) return;
  if (type !== "text") return complain(["formats"], `do not fit a model of type '${type}'`);
  if (provider !== "openai")
    return complain(["formats"], `are for the provider 'openai' alone: '${provider}' always speaks the same`);
  for (const format of served.formats)
    if (!upstream.formats.includes(format))
      complain(
        ["formats"],
        `'${format}' is not among what '${served.upstream}' speaks: ${upstream.formats.join(", ")}`,
      );
}
