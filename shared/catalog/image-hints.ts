import { isSet } from "#json";
import { fieldSchema, type Input, type JsonSchema } from "./input.ts";

/** Fields of OpenAI's image API that ask for a manner of drawing. A model that lacks one draws in its own. */
const hints = ["background", "input_fidelity", "moderation", "output_compression", "output_format", "quality", "style"];

/** Fields of that API for which `auto` means the model's own choice. */
const automatic = ["background", "moderation", "quality", "size"];

const isHint = (schema: JsonSchema, field: string) => hints.includes(field) && fieldSchema(schema, field) === undefined;

/** Whether `auto` is as good as no value: the model has no such value of its own. */
function isOmitted(schema: JsonSchema, field: string, value: unknown): boolean {
  if (value !== "auto" || !automatic.includes(field)) return false;
  const values = fieldSchema(schema, field)?.["enum"];
  return !(Array.isArray(values) && values.includes("auto"));
}

/** The body of a call for images without what the model does not take, and what goes without saying. */
export const withoutHints = (schema: JsonSchema, body: Input): Input =>
  Object.fromEntries(
    Object.entries(body).filter(([field, value]) => !isHint(schema, field) && !isOmitted(schema, field, value)),
  );

/** Some models of one image name its field `image_url`; on the routes it is `image`. */
export function withOwnImageField(schema: JsonSchema, body: Input): Input {
  const { image, ...others } = body;
  const isOwn = fieldSchema(schema, "image") !== undefined || fieldSchema(schema, "image_url") === undefined;
  if (image === undefined || isOwn || isSet(body["image_url"])) return body;
  return { ...others, image_url: Array.isArray(image) && image.length === 1 ? (image[0] as unknown) : image };
}

/** The fields of the body that have no effect on this model's images, for `x-ignored-params`. */
export const ignoredHints = (schema: JsonSchema, body: Input): readonly string[] =>
  [...hints.filter((field) => isHint(schema, field)), "user"].filter((field) => isSet(body[field]));
