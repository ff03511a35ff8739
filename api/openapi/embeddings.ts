import { z } from "zod";
import { embeddingsRequest } from "#formats";
import { storedCallHeaders } from "./headers.ts";
import { operation, storing } from "./operation.ts";
import { usage } from "./usage.ts";

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

export const embeddings = {
  "POST /v1/embeddings": operation("createEmbeddings", "Embeddings of a text, or of up to 256 texts", {
    ...storing,
    body: embeddingsRequest,
    ok: ["The embeddings", embeddingsResponse, storedCallHeaders],
  }),
};
