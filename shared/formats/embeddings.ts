import { z } from "zod";
import { object } from "#json";
import { chatCodec } from "./chat/codec.ts";
import { validate } from "./errors.ts";
import { estimatedBytesPerToken, textCall } from "./measure.ts";
import { modelOrModels, routingFields } from "./routing-fields.ts";
import type { Codec, ParsedCall } from "./types.ts";

const maxInputs = 256;
/** Clients such as LangChain send larger batches by default. */
const tooMany = `must have at most ${maxInputs} inputs: lower the batch size of your client (LangChain: chunk_size)`;
const input = z.string().min(1, "must not be empty");
const texts = z.union([input, z.array(input).min(1).max(maxInputs, tooMany)]);

/** The maximum for one input in OpenAI's models. */
const maxTokens = 8_192;
/** Checked by hand, because zod takes a second for two million numbers. */
const isTokens = (value: unknown): value is readonly number[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= maxTokens &&
  value.every((each) => Number.isInteger(each) && each >= 0 && each < 2 ** 31);
const tokens = z.custom<readonly number[]>(isTokens, `must be 1 to ${maxTokens} tokens, which are whole numbers`).meta({
  override: { type: "array", items: { type: "integer", minimum: 0 }, minItems: 1, maxItems: maxTokens },
});
const tokenLists = z.array(tokens).min(1).max(maxInputs, tooMany);

/** The request of docs/api/inference.md, "EmbeddingsRequest". Unknown fields pass through. */
export const embeddingsRequest = z
  .looseObject({
    model: z.string().min(1),
    input: z
      .union([...texts.options, tokens, tokenLists])
      .describe("One text, the tokens of one text, or up to 256 of either"),
    encoding_format: z.enum(["float", "base64"]).nullish(),
    dimensions: z.int().positive().max(65_536).nullish(),
    ...routingFields,
  })
  .meta({ id: "EmbeddingsRequest", override: modelOrModels });

/** Each accepts one kind of input, so that errors are about that kind. */
const textRequest = embeddingsRequest.extend({ input: texts });
const tokenRequest = embeddingsRequest.extend({ input: tokens.transform((one) => [one]) });
const tokenListRequest = embeddingsRequest.extend({ input: tokenLists });

function parse(body: unknown, bodyBytes: number): ParsedCall {
  const { input } = object(body);
  const first: unknown = Array.isArray(input) ? input[0] : undefined;
  if (typeof first === "number" || Array.isArray(first)) {
    const { model, input: lists } = validate(Array.isArray(first) ? tokenListRequest : tokenRequest, body);
    const count = lists.reduce((sum, each) => sum + each.length, 0);
    return textCall(model, count * estimatedBytesPerToken, { inputBytes: count, messages: lists.length });
  }
  const { model, input: given } = validate(textRequest, body);
  const all = [given].flat();
  const textBytes = all.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return textCall(model, textBytes, { inputBytes: bodyBytes, messages: all.length });
}

export const embeddingsCodec: Codec = { ...chatCodec, parse };
