import { z } from "zod";
import { invalidValue } from "#errors";
import { isSet, type JsonObject, object } from "#json";
import { refuse, validate } from "./errors.ts";
import { routingFields, sessionHeader, withoutRoutingFields } from "./routing-fields.ts";
import type { Codec, ParsedCall } from "./types.ts";

const routing = z.object(routingFields);

/** More than any format has. Copying or validating an object of a million fields takes seconds. */
const maxFields = 2_000;

function refuseManyFields(body: object): void {
  let fields = 0;
  for (const _ in body)
    if (++fields > maxFields) throw invalidValue(undefined, `The body has more than ${maxFields} fields.`);
}

const maxUser = 256;

/** A longer id is cut, because providers accept it. */
function userOf({ userOf = ({ user }) => user }: Codec, body: JsonObject): Pick<ParsedCall, "user"> {
  const user = userOf(body);
  return typeof user === "string" && user !== "" ? { user: user.slice(0, maxUser).toWellFormed() } : {};
}

/**
 * Parses a request, the id of its user and its routing fields. With `takesModels` the endpoint tries other models, and the first of
 * `models` replaces a missing `model`.
 */
export function parseRouted(codec: Codec, body: unknown, bodyBytes: number, takesModels: boolean): ParsedCall {
  refuseManyFields(object(body));
  const { models: given, provider: preferred, session_id: named } = object(body);
  const user = userOf(codec, object(body));
  if (given == null && preferred == null && named == null) return { ...codec.parse(body, bodyBytes), ...user };
  if (!takesModels && given != null) refuse("models", "this endpoint takes one model");
  const fields = { models: given, provider: preferred, session_id: named };
  const { models: list, provider: preferences, session_id: sessionId } = validate(routing, fields);
  const request = withoutRoutingFields(body);
  const call = codec.parse(list && !isSet(request["model"]) ? { ...request, model: list[0] } : request, bodyBytes);
  const listed = (list ?? []).map((name, at) => ({ name, param: `models[${at}]` }));
  const isFirst = listed[0]?.name === call.model && !isSet(request["model"]);
  return {
    ...call,
    ...user,
    ...(list && { models: isFirst ? listed : [{ name: call.model, param: "model" }, ...listed] }),
    ...(preferences && { preferences }),
    ...(sessionId && { sessionId }),
  };
}

/** Adds the session that the header `x-session-id` names, unless the body names one. Throws 400. */
export function withSessionHeader(call: ParsedCall, header: string | undefined): ParsedCall {
  if (!header) return call;
  validate(sessionHeader, { "x-session-id": header });
  return { sessionId: header, ...call };
}
