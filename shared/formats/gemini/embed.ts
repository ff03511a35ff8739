import { z } from "zod";
import { invalidValue } from "#errors";
import { type JsonObject, list, object, refuseDeep, text } from "#json";
import { validate } from "../errors.ts";
import { textCall } from "../measure.ts";
import { routingFields } from "../routing-fields.ts";
import type { Codec } from "../types.ts";
import { geminiCodec } from "./codec.ts";
import { formedBatchEmbed, formedEmbed } from "./field-names.ts";

const embedPart = z.strictObject({ text: z.string().min(1, "must not be empty") });

/** Fields are in camelCase. Other fields, such as `taskType` and `title`, are ignored. */
const embedding = z.looseObject({
  content: z.looseObject({ parts: z.array(embedPart).min(1) }),
  outputDimensionality: z.int().positive().max(65_536).nullish(),
});

export const embedContentRequest = embedding.extend(routingFields).meta({ id: "EmbedContentRequest" });

export const batchEmbedContentsRequest = z
  .looseObject({ requests: z.array(embedding).min(1).max(256), ...routingFields })
  .meta({ id: "BatchEmbedContentsRequest" });

type EmbedVerb = "embedContent" | "batchEmbedContents";

/** Serves the models of `/v1/embeddings`. */
export const geminiEmbedCodec = (model: string, verb: EmbedVerb): Codec => ({
  ...geminiCodec(model, false, false),
  parse(body, bodyBytes) {
    refuseDeep(body);
    const requests =
      verb === "embedContent"
        ? [validate(embedContentRequest, formedEmbed(body))]
        : validate(batchEmbedContentsRequest, formedBatchEmbed(body)).requests;
    const dimensions = requests[0]?.outputDimensionality ?? undefined;
    const other = requests.findIndex((each) => (each.outputDimensionality ?? undefined) !== dimensions);
    if (other !== -1) {
      const param = `requests[${other}].outputDimensionality`;
      throw invalidValue(param, `${param}: must be the same in every request.`);
    }
    const texts = requests.flatMap(({ content }) => content.parts.map((part) => part.text));
    const textBytes = texts.reduce((sum, each) => sum + Buffer.byteLength(each), 0);
    return textCall(model, textBytes, { inputBytes: bodyBytes, messages: requests.length });
  },
});

const usedFields: readonly string[] = ["model", "content", "outputDimensionality"];

/** Converts a checked request to one for `/v1/embeddings`, and returns its remaining fields. */
export function embeddingsRequestOf(body: unknown, isBatch: boolean) {
  const requests = isBatch ? list(object(formedBatchEmbed(body))["requests"]) : [object(formedEmbed(body))];
  const dimensions = requests[0]?.["outputDimensionality"] ?? undefined;
  const request: JsonObject = {
    input: requests.map(({ content }) =>
      list(object(content)["parts"])
        .map((part) => text(part["text"]))
        .join("\n"),
    ),
    encoding_format: "float",
    ...(dimensions !== undefined && { dimensions }),
  };
  const others = requests.flatMap((each) => Object.entries(each).filter(([name]) => !usedFields.includes(name)));
  return { request, others };
}
