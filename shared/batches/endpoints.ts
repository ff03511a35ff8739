import {
  type Codec,
  chatCodec,
  completionsCodec,
  embeddingsCodec,
  embeddingsJsonLimits,
  type Format,
  imagesCodec,
  type JsonLimits,
  jsonLimits,
  messagesCodec,
  moderationsCodec,
  responsesCodec,
} from "#formats";
import type { PaidJobName } from "#jobs";

interface BatchEndpoint {
  readonly job: PaidJobName;
  readonly codec: Codec;
  readonly format?: Format;
  readonly limits: JsonLimits;
}

/** The endpoints whose calls a batch may consist of. */
const endpoints: Readonly<Record<string, BatchEndpoint>> = {
  "/v1/chat/completions": { job: "chat", codec: chatCodec, format: "chat", limits: jsonLimits },
  "/v1/responses": { job: "chat", codec: responsesCodec, format: "responses", limits: jsonLimits },
  "/v1/messages": { job: "chat", codec: messagesCodec, format: "messages", limits: jsonLimits },
  "/v1/completions": { job: "chat", codec: completionsCodec, format: "chat", limits: jsonLimits },
  "/v1/embeddings": { job: "embeddings", codec: embeddingsCodec, limits: embeddingsJsonLimits },
  "/v1/moderations": { job: "moderation", codec: moderationsCodec, limits: jsonLimits },
  "/v1/images/generations": { job: "image", codec: imagesCodec, limits: jsonLimits },
};
export const batchEndpoints: readonly string[] = Object.keys(endpoints);

export function batchEndpoint(path: string): BatchEndpoint {
  const endpoint = Object.hasOwn(endpoints, path) ? endpoints[path] : undefined;
  if (!endpoint) throw new TypeError(`no batches of ${path}`);
  return endpoint;
}
