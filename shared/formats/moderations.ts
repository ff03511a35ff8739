import { z } from "zod";
import { requestTooLarge } from "#errors";
import { isSet, type JsonObject } from "#json";
import { chatCodec } from "./chat/codec.ts";
import { validate } from "./errors.ts";
import { textCall } from "./measure.ts";
import { routingFields } from "./routing-fields.ts";
import type { Codec } from "./types.ts";

/** Calls are free, so their size is limited: images are sent as links, or as small data URLs. */
const limitBytes = 1024 * 1024;
const maxInputs = 256;
const maxParts = 32;

const part = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({
    type: z.literal("image_url"),
    image_url: z.object({
      url: z.string().regex(/^(https?:\/\/|data:image\/)/i, "must be an http or https link, or a data URL of an image"),
    }),
  }),
]);
const texts = z.array(z.string()).min(1).max(maxInputs);
const parts = z.array(part).min(1).max(maxParts);

/** The request of docs/api/inference.md, "ModerationRequest". */
export const moderationRequest = z
  .looseObject({
    model: z.string().min(1).nullish().describe("Default: the first moderation model that can be called"),
    input: z.union([z.string(), texts, parts]).describe("One text, up to 256 texts, or the parts of one input"),
    ...routingFields,
  })
  .meta({ id: "ModerationRequest" });

/** Each accepts one kind of input, so that errors are about that kind. */
const textRequest = moderationRequest.extend({ input: z.union([z.string(), texts]) });
const partsRequest = moderationRequest.extend({ input: parts });

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);

export function moderationOf(body: unknown) {
  const given: unknown = isSet(body) ? (body as JsonObject)["input"] : undefined;
  const hasParts = isList(given) && typeof given[0] === "object";
  const { model, input, ...others } = validate(hasParts ? partsRequest : textRequest, body);
  return {
    model: model ?? undefined,
    input,
    /** The parts of an input share one result. */
    results: isList(input) && !hasParts ? input.length : 1,
    /** Fields without a meaning here, by name. */
    others: Object.entries<unknown>(others),
  };
}

export const moderationsCodec: Codec = {
  ...chatCodec,
  parse(body, bodyBytes) {
    if (bodyBytes > limitBytes) throw requestTooLarge(limitBytes);
    const { model = "", results } = moderationOf(body);
    return textCall(model, bodyBytes, { inputBytes: bodyBytes, messages: results });
  },
};
