import { z } from "zod";
import { modelOrModels } from "#formats";
import chat from "./chat.json" with { type: "json" };
import gemini from "./gemini.json" with { type: "json" };
import messages from "./messages.json" with { type: "json" };
import others from "./others.json" with { type: "json" };
import responses from "./responses.json" with { type: "json" };

/**
 * The formats of calls in the OpenAPI document, as JSON files: the parts, tools, events and answers that most clients use,
 * and example requests. Fields that they omit pass through to providers that speak the format. `shared/formats` has what the
 * service itself checks of a request.
 */

type JsonSchema = Readonly<Record<string, unknown>>;
const files = [chat, messages, responses, gemini, others];

/** Components of the document. */
export const formatSchemas: Readonly<Record<string, JsonSchema>> = Object.assign(
  {},
  ...files.map((file) => file.schemas),
);

/** Example requests by operation, which `local/...` models answer. */
export const examples = {
  ...chat.examples,
  ...messages.examples,
  ...responses.examples,
  ...gemini.examples,
  ...others.examples,
};

/** A schema that refers to a component. */
export const refTo = (name: string) => {
  if (!(name in formatSchemas)) throw new Error(`no format has the schema ${name}`);
  return z.unknown().meta({ override: { $ref: `#/components/schemas/${name}` } });
};

const requests: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>> = {
  ...chat.requests,
  ...messages.requests,
  ...responses.requests,
};

/** Describes a request whose fields the document shows in more detail than the service checks. */
export function requestOf(name: string, checked: z.ZodObject, description?: string) {
  const shown = Object.entries(requests[name] ?? {}).map(([field, schema]) => {
    const inFull = z.unknown().meta({ override: schema });
    const isOptional = checked.shape[field]?.isOptional() ?? true;
    return [field, isOptional ? inFull.optional() : inFull] as const;
  });
  return checked
    .extend(Object.fromEntries(shown))
    .meta({ id: name, ...(description && { description }), override: modelOrModels });
}
