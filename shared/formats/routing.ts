import { z } from "zod";
import { invalidValue } from "#errors";
import { isSet, object } from "#json";
import { refuse, validate } from "./errors.ts";
import type { Codec, ParsedCall } from "./types.ts";

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

/**
 * OpenRouter's `provider`. Its other fields would change what a call may cost or who may see it, so they are refused.
 */
const providerPreferences = z
  .strictObject(preferenceFields, {
    error: ({ code }) => (code === "unrecognized_keys" ? `is not supported here; there are ${supported}` : undefined),
  })
  .meta({ id: "ProviderPreferences", description: "Which upstreams may serve the call, by their ids in the catalog" });

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

const routing = z.object(routingFields);

/** More than any format has. Copying or validating an object of a million fields takes seconds. */
const maxFields = 2_000;

function refuseManyFields(body: object): void {
  let fields = 0;
  for (const _ in body)
    if (++fields > maxFields) throw invalidValue(undefined, `The body has more than ${maxFields} fields.`);
}

/**
 * Parses a request and its routing fields. With `takesModels` the endpoint tries other models, and the first of
 * `models` replaces a missing `model`.
 */
export function parseRouted(codec: Codec, body: unknown, bodyBytes: number, takesModels: boolean): ParsedCall {
  refuseManyFields(object(body));
  const { models: given, provider: preferred } = object(body);
  if (given == null && preferred == null) return codec.parse(body, bodyBytes);
  if (!takesModels && given != null) refuse("models", "this endpoint takes one model");
  const { models: list, provider: preferences } = validate(routing, { models: given, provider: preferred });
  const { models: _, provider: __, ...request } = object(body);
  const call = codec.parse(list && !isSet(request["model"]) ? { ...request, model: list[0] } : request, bodyBytes);
  const listed = (list ?? []).map((name, at) => ({ name, param: `models[${at}]` }));
  const isFirst = listed[0]?.name === call.model && !isSet(request["model"]);
  return {
    ...call,
    ...(list && { models: isFirst ? listed : [{ name: call.model, param: "model" }, ...listed] }),
    ...(preferences && { preferences }),
  };
}
