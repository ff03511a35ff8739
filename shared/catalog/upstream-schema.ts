import { z } from "zod";
import { type Format, formats } from "#formats";
import { dayMs } from "#platform/clock";
import { hasFallback, type ListPrices } from "./prices.ts";
import { quirks } from "./quirks.ts";
import {
  type Complain,
  isJsonTask,
  type JsonTask,
  type ModelType,
  parameters,
  priceKeys,
  providers,
  type Task,
} from "./types.ts";

const media = ["image", "video", "audio", "other"] as const;

const servedBy = {
  openai: ["text", "embeddings", ...media],
  anthropic: ["text"],
  gemini: ["text", "embeddings", "image", "video", "audio"],
  replicate: media,
  fal: media,
  local: ["text", "embeddings", ...media],
} as const satisfies Record<(typeof providers)[number], readonly ModelType[]>;

/** The providers that serve tasks with their own endpoint. */
const taskServers: Readonly<Record<JsonTask, readonly (typeof providers)[number][]>> = {
  moderation: ["openai", "local"],
  rerank: ["openai", "local"],
};

/** OpenAI-compatible servers differ in their formats; every other provider has a fixed set. */
const openaiFormats: readonly Format[] = ["chat", "responses"];

const formatList = z
  .array(z.enum(formats))
  .min(1)
  .refine((list) => new Set(list).size === list.length, "names a format twice");
/** Compared by identity, to distinguish the default from a list in the file. */
const defaultFormats: Format[] = ["chat"];

/** The required suffixes prevent any other secret, such as the admin token, from being sent to an upstream. */
const keyVariable = z
  .string()
  .regex(
    /^([A-Z][A-Z0-9_]*_API_(KEY|TOKEN)|FAL_KEY)$/,
    "must be the name of a variable that ends in _API_KEY or _API_TOKEN, or FAL_KEY",
  );
const addressVariable = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]*_BASE_URL$/, "must be the name of a variable that ends in _BASE_URL");
const milliseconds = z.int().positive().max(dayMs);

export const upstreamEntry = z.strictObject({
  provider: z.enum(providers),
  /** The formats of an `openai` upstream's server. Calls in other formats are converted to the first. */
  formats: formatList.default(() => defaultFormats),
  base_url: z
    .url({ protocol: /^https?$/ })
    .regex(/^[^?#@]*[^/?#@]$/, "must be an address without credentials, query or slash at its end")
    .optional(),
  base_url_env: addressVariable.optional(),
  key_env: keyVariable.optional(),
  /** The provider stores chat responses by default, so `store: false` is always sent. */
  stores_answers: z.boolean().default(false),
  quirks: quirks.optional(),
  /** Parameters of chat requests that the server refuses or ignores, in addition to those that `quirks` drop. */
  unsupported_parameters: z.array(z.enum(parameters)).default([]),
  concurrency: z.int().positive().max(100_000).default(512),
  /** Long, because reasoning models send nothing for minutes. */
  first_byte_timeout_ms: milliseconds.default(600_000),
  silence_timeout_ms: milliseconds.default(120_000),
  total_timeout_ms: milliseconds.default(900_000),
});

export type UpstreamEntry = z.infer<typeof upstreamEntry>;

export function checkUpstream(entry: UpstreamEntry, complain: Complain) {
  const { provider } = entry;
  const named = entry.base_url !== undefined || entry.base_url_env !== undefined;
  if (provider === "local" && (named || entry.key_env !== undefined))
    complain(["provider"], "'local' runs inside the worker: it has no address and no key");
  if (provider !== "local" && !named) complain(["base_url"], "is missing, and base_url_env too");
  if (provider !== "openai" && entry.formats !== defaultFormats)
    complain(["formats"], `are for the provider 'openai' only: those of '${provider}' are fixed`);
  if (provider !== "openai" && entry.quirks !== undefined) complain(["quirks"], "are for the provider 'openai' only");
  for (const format of entry.formats)
    if (provider === "openai" && !openaiFormats.includes(format))
      complain(
        ["formats"],
        `'${format}' is not supported by the provider 'openai', only ${openaiFormats.join(" and ")}`,
      );
  for (const field of ["first_byte_timeout_ms", "silence_timeout_ms"] as const)
    if (entry[field] > entry.total_timeout_ms) complain([field], "is longer than total_timeout_ms");
}

/** An upstream that serves a model, and the model's name there. `pricing` is the schema of the model's own prices. */
export const servingEntry = <Pricing extends z.ZodType>(pricing: Pricing) =>
  z.strictObject({
    upstream: z.string(),
    model: z.string().min(1),
    /** Set if the upstream serves this model in fewer formats than it supports. */
    formats: formatList.optional(),
    /**
     * The upstream's share of the calls: among upstreams with weights, the first is drawn by weight. Upstreams without
     * a weight are then tried after the others.
     */
    weight: z.int().positive().max(1_000_000).optional(),
    /** The operator's cost, by the price keys of the model. */
    cost: pricing.optional(),
  });

interface Served {
  readonly upstream: string;
  readonly formats?: readonly Format[] | undefined;
  readonly cost?: ListPrices | undefined;
}

/** Checks that usage in every unit that the model bills has a cost. */
export function checkCost(given: ListPrices, cost: ListPrices, complain: Complain) {
  for (const key of priceKeys) {
    if (cost[key] !== undefined && given[key] === undefined) complain(["cost", key], "is not a price key of the model");
    if (given[key] !== undefined && cost[key] === undefined && !hasFallback(key))
      complain(["cost", key], "is missing: the model has a price for it");
  }
}

/** Checks that the upstream can serve the model, in the formats that the entry lists. */
export function checkServing(
  { type, task }: { readonly type: ModelType; readonly task?: Task | undefined },
  served: Served,
  upstream: UpstreamEntry,
  complain: Complain,
) {
  const { provider } = upstream;
  if (isJsonTask(task) && !taskServers[task].includes(provider))
    complain(["upstream"], `'${served.upstream}' serves no model with the task '${task}'`);
  const types: readonly ModelType[] = servedBy[provider];
  if (!types.includes(type))
    complain(
      ["upstream"],
      `'${served.upstream}' serves no model of type '${type}': '${provider}' has ${types.join(", ")}`,
    );
  if (served.formats === undefined) return;
  if (type !== "text") return complain(["formats"], `do not fit a model of type '${type}'`);
  if (provider !== "openai")
    return complain(["formats"], `are for the provider 'openai' only: those of '${provider}' are fixed`);
  for (const format of served.formats)
    if (!upstream.formats.includes(format))
      complain(
        ["formats"],
        `'${format}' is not among the formats of '${served.upstream}': ${upstream.formats.join(", ")}`,
      );
}
