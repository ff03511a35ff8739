import { z } from "zod";
import { invalidValue } from "#errors";
import { isSet, object } from "#json";
import { refuse, validate } from "./errors.ts";
import { routingFields } from "./routing-fields.ts";
import type { Codec, ParsedCall } from "./types.ts";

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
