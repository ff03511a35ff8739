import { z } from "zod";
import { embeddingsRequest } from "#formats";
import { answeringModel, storedCallHeaders } from "../http/openapi/headers.ts";
import { type Group, operation, storing } from "../http/openapi/operation.ts";
import { usage } from "../http/openapi/usage.ts";

const embeddingsResponse = z
  .object({
    object: z.literal("list"),
    model: z.string(),
    data: z.array(
      z.object({
        object: z.literal("embedding"),
        index: z.int(),
        embedding: z.union([z.array(z.number()), z.string().describe("base64 of little-endian float32")]),
      }),
    ),
    usage,
  })
  .meta({ id: "EmbeddingsResponse" });

export const embeddings: Group = {
  name: "Embeddings",
  description: "Vectors of texts in OpenAI's format",
  operations: {
    "POST /v1/embeddings": operation("createEmbeddings", "Embeddings of a text, or of up to 256 texts", {
      ...storing,
      body: embeddingsRequest,
      examples: {
        texts: { summary: "Two texts", value: { model: "local/embeddings", input: ["one", "two"], dimensions: 4 } },
        base64: {
          summary: "A text, in base64",
          value: { model: "local/embeddings", input: "one", encoding_format: "base64", dimensions: 4 },
        },
      },
      ok: ["The embeddings", embeddingsResponse, storedCallHeaders.extend(answeringModel)],
    }),
  },
};
