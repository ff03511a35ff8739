import { z } from "zod";
import { type JsonObject, object } from "#json";

const maxModels = 8;
const names = z.array(z.string().min(1).max(64)).max(32).nullish();

const preferenceFields = {
  order: names.describe("Upstreams to try first, in this order"),
  only: names.describe("Only these upstreams are tried"),
  ignore: names.describe("These upstreams are not tried"),
  regions: names.describe("Only upstreams in these regions are tried"),
  data_residency: z
    .string()
    .min(1)
    .max(16)
    .nullish()
    .describe("Only upstreams that process requests there are tried, such as `eu`"),
  sort: z
    .enum(["price", "latency", "throughput"])
    .nullish()
    .describe("Tries the cheapest or fastest upstreams first, and those without data last"),
  allow_fallbacks: z
    .boolean()
    .nullish()
    .describe("false: only the upstreams in `order` are tried or, without `order`, only the first one"),
  byok: z
    .enum(["auto", "only", "never"])
    .nullish()
    .describe(
      "The account's own provider keys: `auto` (the default) tries them as each key says, `only` tries nothing else, `never` does not use them",
    ),
};
const supported = Object.keys(preferenceFields).join(", ");

/** OpenRouter's `provider`. Its other fields would change what a call may cost or who may see it. */
const providerPreferences = z
  .strictObject(preferenceFields, {
    error: ({ code }) => (code === "unrecognized_keys" ? `is not supported here; there are ${supported}` : undefined),
  })
  .meta({ id: "ProviderPreferences", description: "Which upstreams may serve the call, by their ids in the catalog" });

export type ProviderPreferences = z.infer<typeof providerPreferences>;

const provider = providerPreferences.nullish();
const models = z
  .array(z.string().min(1).max(256))
  .min(1)
  .max(maxModels)
  .nullish()
  .describe("Models to try in this order, after `model`, which may then be absent. The one that responds is charged");

const sessionId = z.string().max(256);
const session = sessionId
  .nullish()
  .describe("Your id of the conversation. The header `x-session-id` does the same, and the field overrides it");

/** Fields in addition to those of the formats. They are removed before a request is parsed or sent on. */
export const routingFields = { models, provider, session_id: session };
export const fieldsOfOneModel = { provider, session_id: session };

export function withoutRoutingFields(body: unknown): JsonObject {
  const { models: _, provider: __, session_id: ___, ...request } = object(body);
  return request;
}

/** The header for clients that cannot add fields. Node decodes headers as Latin-1, so only ASCII is what the caller sent. */
export const sessionHeader = z.object({
  "x-session-id": sessionId
    .regex(/^[\x20-\x7e]*$/, "must be ASCII")
    .optional()
    .describe("Your id of the conversation, unless the body has a `session_id`"),
});

interface Described {
  readonly jsonSchema: { required?: string[]; anyOf?: object[] };
}

/** Makes the OpenAPI document require `model` or `models`. */
export const modelOrModels = ({ jsonSchema }: Described): void => {
  jsonSchema.required = jsonSchema.required?.filter((name) => name !== "model") ?? [];
  jsonSchema.anyOf = [{ required: ["model"] }, { required: ["models"] }];
};
