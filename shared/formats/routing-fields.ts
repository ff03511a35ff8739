import { z } from "zod";

const maxModels = 8;
const names = z.array(z.string().min(1).max(64)).max(32).nullish();

const preferenceFields = {
  order: names.describe("Upstreams to try first, in this order"),
  only: names.describe("Only these upstreams are tried"),
  ignore: names.describe("These upstreams are not tried"),
  sort: z
    .enum(["price", "latency", "throughput"])
    .nullish()
    .describe("Tries the cheapest or fastest upstreams first, and those without data last"),
  allow_fallbacks: z
    .boolean()
    .nullish()
    .describe("false: only the upstreams in `order` are tried or, without `order`, only the first one"),
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

/** Fields in addition to those of the formats. They are removed before a request is parsed or sent on. */
export const routingFields = { models, provider };
export const providerField = { provider };

interface Described {
  readonly jsonSchema: { required?: string[]; anyOf?: object[] };
}

/** Makes the OpenAPI document require `model` or `models`. */
export const modelOrModels = ({ jsonSchema }: Described): void => {
  jsonSchema.required = jsonSchema.required?.filter((name) => name !== "model") ?? [];
  jsonSchema.anyOf = [{ required: ["model"] }, { required: ["models"] }];
};
