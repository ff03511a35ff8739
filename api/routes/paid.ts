import {
  chatCodec,
  completionsCodec,
  embeddingsCodec,
  embeddingsJsonLimits,
  imagesCodec,
  inputTokensCodec,
  mediaCodec,
  moderationsCodec,
  rerankCodec,
  responsesCodec,
} from "#formats";
import type { PaidRoute } from "../paid-route.ts";
import { audioRoutes } from "./audio.ts";
import { imageRoutes } from "./images.ts";

/** The paid routes that have one path and accept only POST. Messages and Gemini have routers of their own. */
export const paidRoutes: readonly PaidRoute[] = [
  { endpoint: "/v1/chat/completions", job: "chat", codec: chatCodec, format: "chat" },
  { endpoint: "/v1/completions", job: "chat", codec: completionsCodec, format: "chat", framing: "completions" },
  { endpoint: "/v1/responses", job: "chat", codec: responsesCodec, format: "responses", refersToStored: true },
  {
    endpoint: "/v1/responses/input_tokens",
    job: "count",
    codec: inputTokensCodec,
    format: "responses",
    isFree: true,
    refersToStored: true,
  },
  { endpoint: "/v1/embeddings", job: "embeddings", codec: embeddingsCodec, jsonLimits: embeddingsJsonLimits },
  { endpoint: "/v1/moderations", job: "moderation", codec: moderationsCodec, isFree: true },
  { endpoint: "/v1/rerank", job: "rerank", codec: rerankCodec },
  // The path of Cohere's clients.
  { endpoint: "/v2/rerank", job: "rerank", codec: rerankCodec, serves: ({ task }) => task === "rerank" },
  {
    endpoint: "/v1/images/generations",
    job: "image",
    codec: imagesCodec,
    endsAtSyncTimeout: true,
    payable: true,
  },
  ...imageRoutes,
  {
    endpoint: "/v1/media/generations",
    job: "media",
    codec: mediaCodec,
    endsAtSyncTimeout: true,
    payable: true,
  },
  ...audioRoutes,
];
