import { isSet } from "#json";
import { fieldSchema, type Input, type JsonSchema } from "./input.ts";

/**
 * Fields of OpenAI's image API that request a manner of drawing. A model without such a field draws in its own manner.
 */
const hints = ["background", "input_fidelity", "moderation", "output_compression", "output_format", "quality", "style"];

/** Fields of that API for which `auto` means the model's own choice. */
const automatic = ["background", "moderation", "quality", "size"];

const isHint = (schema: JsonSchema, field: string) => hints.includes(field) && fieldSchema(schema, field) === undefined;

/** Returns true if `auto` is equivalent to no value, because the field has no such value in the model's schema. */
function isOmitted(schema: JsonSchema, field: string, value: unknown): boolean {
  if (value !== "auto" || !automatic.includes(field)) return false;
  const values = fieldSchema(schema, field)?.["enum"];
  return !(Array.isArray(values) && values.includes("auto"));
}

/** Returns the body without fields that the model does not accept and values that equal its default behavior. */
export const withoutHints = (schema: JsonSchema, body: Input): Input =>
  Object.fromEntries(
    Object.entries(body).filter(([field, value]) => !isHint(schema, field) && !isOmitted(schema, field, value)),
  );

/** Some single-image models call the field `image_url`; the routes call it `image`. */
export function withOwnImageField(schema: JsonSchema, body: Input): Input {
  const { image, ...others } = body;
  const isOwn = fieldSchema(schema, "image") !== undefined || fieldSchema(schema, "image_url") === undefined;
  if (image === undefined || isOwn || isSet(body["image_url"])) return body;
  return { ...others, image_url: Array.isArray(image) && image.length === 1 ? (image[0] as unknown) : image };
}

/** Returns the fields of the body that have no effect on this model's images, for `x-ignored-params`. */
export const ignoredHints = (schema: JsonSchema, body: Input): readonly string[] =>
  [...hints.filter((field) => isHint(schema, field)), "user"].filter((field) => isSet(body[field]));
