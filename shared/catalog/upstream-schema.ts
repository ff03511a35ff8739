import { z } from "zod";
import { type Format, formats } from "#formats";
import { dayMs } from "#platform/clock";
import { hasFallback, type ListPrices } from "./prices.ts";
import { quirks } from "./quirks.ts";
import {
  type AddressPart,
  type AddressParts,
  type Complain,
  isJsonTask,
  type JsonTask,
  type ModelType,
  type ProviderName,
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
  azure: ["text", "embeddings", "image", "audio"],
  bedrock: ["text"],
  vertex: ["text", "embeddings", "image"],
  replicate: media,
  fal: media,
  local: ["text", "embeddings", ...media],
} as const satisfies Record<ProviderName, readonly ModelType[]>;

/** The providers that serve tasks with their own endpoint. */
const taskServers: Readonly<Record<JsonTask, readonly ProviderName[]>> = {
  moderation: ["openai", "local"],
  rerank: ["openai", "local"],
};

/** The models whose calls a provider takes in batches of its own. */
const batchTypes: Readonly<Partial<Record<ProviderName, readonly ModelType[]>>> = {
  openai: ["text", "embeddings"],
  anthropic: ["text"],
};

/**
 * The formats of which an upstream's entry chooses: OpenAI-compatible servers differ in theirs, and clouds serve the models
 * of several vendors. Every other provider has a fixed set.
 */
const formatsOf: Readonly<Partial<Record<ProviderName, readonly Format[]>>> = {
  openai: ["chat", "responses"],
  azure: ["chat", "responses", "messages"],
  bedrock: ["chat", "responses", "messages"],
  vertex: ["gemini", "messages", "chat"],
};

/** The parts of a cloud's address that differ between its customers. */
export const cloudParts: Readonly<Partial<Record<ProviderName, readonly AddressPart[]>>> = {
  azure: ["resource"],
  bedrock: ["region"],
  vertex: ["project", "region"],
};

/** The address with its parts in place. A part without a value becomes `x`. */
export const filledAddress = (address: string, parts: AddressParts): string =>
  address.replace(/\{(resource|region|project)\}/g, (_, part: AddressPart) => parts[part] ?? "x");

/** Names of places in the clouds, such as `eu-central-1`, `europe-west4` or `global`. */
export const regionPattern = /^[a-z]{2,16}(-[a-z]{2,12}){0,3}-?\d{0,2}$/;
/** Residences of data, which each region has: `us`, `eu`, or `global` where a request may be processed anywhere. */
const residency = z.string().regex(/^[a-z]{2,16}$/, "must be lower-case letters, such as 'eu'");

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
    /^([A-Z][A-Z0-9_]*_(API_KEY|API_TOKEN|CREDENTIALS)|FAL_KEY)$/,
    "must be the name of a variable that ends in _API_KEY, _API_TOKEN or _CREDENTIALS, or FAL_KEY",
  );
const addressVariable = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]*_BASE_URL$/, "must be the name of a variable that ends in _BASE_URL");
const partVariable = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]*_(RESOURCE|PROJECT)$/, "must be the name of a variable that ends in _RESOURCE or _PROJECT");
const milliseconds = z.int().positive().max(dayMs);

export const upstreamEntry = z.strictObject({
  provider: z.enum(providers),
  /** The formats of an `openai` upstream's server. Calls in other formats are converted to the first. */
  formats: formatList.default(() => defaultFormats),
  /** That of a cloud may contain `{resource}`, `{region}` and `{project}`. */
  base_url: z
    .string()
    .regex(/^https?:[^?#@]*[^/?#@]$/, "must be an address without credentials, query or slash at its end")
    .refine((text) => {
      const filled = filledAddress(text, {});
      return URL.canParse(filled) && !/[{}]/.test(filled);
    }, "must be an address")
    .optional(),
  base_url_env: addressVariable.optional(),
  key_env: keyVariable.optional(),
  /** The variables with the parts of a cloud's address that are the operator's own. */
  address_env: z.strictObject({ resource: partVariable.optional(), project: partVariable.optional() }).default({}),
  /** Where the upstream processes requests. In clouds it is a part of the address. */
  region: z.string().regex(regionPattern, "must be the name of a region").optional(),
  data_residency: residency.optional(),
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
  const hasAddress = entry.base_url !== undefined || entry.base_url_env !== undefined;
  if (provider === "local" && (hasAddress || entry.key_env !== undefined))
    complain(["provider"], "'local' runs inside the worker: it has no address and no key");
  if (provider !== "local" && !hasAddress) complain(["base_url"], "is missing, and base_url_env too");
  const spoken = formatsOf[provider];
  if (spoken === undefined && entry.formats !== defaultFormats)
    complain(["formats"], `those of the provider '${provider}' are fixed`);
  const parts = cloudParts[provider] ?? [];
  const named = [...(entry.base_url ?? "").matchAll(/\{(\w+)\}/g)].map(([, part]) => part);
  if (named.some((part) => !parts.some((each) => each === part)))
    complain(
      ["base_url"],
      `may contain ${parts.map((part) => `{${part}}`).join(" and ") || "no part"} for the provider '${provider}'`,
    );
  if (parts.includes("region") && entry.region === undefined) complain(["region"], "is missing");
  if (entry.region === "global" && (entry.data_residency ?? "global") !== "global")
    complain(["data_residency"], "cannot be promised for the region 'global', which processes requests anywhere");
  for (const part of ["resource", "project"] as const)
    if (parts.includes(part) !== (entry.address_env[part] !== undefined))
      complain(
        ["address_env", part],
        parts.includes(part) ? "is missing" : `is not a part of addresses of '${provider}'`,
      );
  if (provider !== "azure" && entry.quirks?.api_version !== undefined)
    complain(["quirks", "api_version"], `does not fit the provider '${provider}'`);
  if (provider === "azure" && entry.formats.includes("messages") && entry.formats.length > 1)
    complain(["formats"], "'messages' has an address of its own at 'azure': it needs an upstream of its own");
  if (spoken === undefined && entry.quirks !== undefined) complain(["quirks"], `do not fit the provider '${provider}'`);
  for (const format of entry.formats)
    if (spoken && !spoken.includes(format))
      complain(["formats"], `'${format}' is not supported by the provider '${provider}', only ${spoken.join(" and ")}`);
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
    /** Set if lines of batches may run in the provider's own batches: the discount that they have there. */
    batch_discount_bps: z.int().min(0).max(9_999).optional(),
  });

interface Served {
  readonly upstream: string;
  readonly model: string;
  readonly formats?: readonly Format[] | undefined;
  readonly cost?: ListPrices | undefined;
  readonly batch_discount_bps?: number | undefined;
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
  const { provider, data_residency: residence } = upstream;
  // An ARN ends with the name of the profile.
  const isGlobal = provider === "bedrock" && /(^|\/)global\./.test(served.model);
  if (isGlobal && residence !== undefined && residence !== "global")
    complain(["model"], `is processed anywhere, but '${served.upstream}' promises the data residency '${residence}'`);
  if (isJsonTask(task) && !taskServers[task].includes(provider))
    complain(["upstream"], `'${served.upstream}' serves no model with the task '${task}'`);
  const types: readonly ModelType[] = servedBy[provider];
  if (!types.includes(type))
    complain(
      ["upstream"],
      `'${served.upstream}' serves no model of type '${type}': '${provider}' has ${types.join(", ")}`,
    );
  if (served.batch_discount_bps !== undefined && !batchTypes[provider]?.includes(type))
    complain(["batch_discount_bps"], `'${provider}' has no batches for models of type '${type}'`);
  if (served.formats === undefined) return;
  if (type !== "text") return complain(["formats"], `do not fit a model of type '${type}'`);
  if (formatsOf[provider] === undefined) return complain(["formats"], `those of the provider '${provider}' are fixed`);
  for (const format of served.formats)
    if (!upstream.formats.includes(format))
      complain(
        ["formats"],
        `'${format}' is not among the formats of '${served.upstream}': ${upstream.formats.join(", ")}`,
      );
}
