import { createDocument, type ZodOpenApiOperationObject } from "zod-openapi";
import { audio } from "./audio.ts";
import { chat } from "./chat.ts";
import { embeddings } from "./embeddings.ts";
import { gemini } from "./gemini.ts";
import { images } from "./images.ts";
import { media } from "./media.ts";
import { messages } from "./messages.ts";
import { models } from "./models.ts";
import { responses } from "./responses.ts";
import { uploads } from "./uploads.ts";

const operations = {
  ...chat,
  ...messages,
  ...responses,
  ...gemini,
  ...embeddings,
  ...images,
  ...media,
  ...audio,
  ...uploads,
  ...models,
};

function groupByPath() {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const [name, described] of Object.entries(operations)) {
    const [method = "", path = ""] = name.split(" ");
    paths[path] = { ...paths[path], [method.toLowerCase()]: described };
  }
  return paths;
}

/** OpenAPI 3.1 of the public interface, generated from the schemas that validate requests. */
export const openApiDocument = (serverUrl: string) =>
  createDocument({
    openapi: "3.1.0",
    info: {
      title: "Inference service",
      version: "1.0.0",
      description:
        "Text, image, video, audio and embedding models behind one address and one key, prepaid by balance. Images and media also without a key, paid one by one by x402, where the service takes that.",
    },
    servers: [{ url: serverUrl }],
    security: [{ bearer: [] }],
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        anthropicKey: { type: "apiKey", in: "header", name: "x-api-key" },
        geminiKey: { type: "apiKey", in: "header", name: "x-goog-api-key" },
        geminiQueryKey: { type: "apiKey", in: "query", name: "key" },
      },
    },
    paths: groupByPath(),
  });
