import {
  chatCodec,
  chatRequest,
  completionsCodec,
  completionsRequest,
  embeddingsCodec,
  embeddingsJsonLimits,
  embeddingsRequest,
  mediaCodec,
  mediaRequest,
  moderationRequest,
  moderationsCodec,
  rerankCodec,
  rerankRequest,
} from "#formats";
import { refTo, requestOf } from "../http/openapi/formats/index.ts";
import { answeringModel, cachedCallHeaders, routedHeaders, storedRoutedHeaders } from "../http/openapi/headers.ts";
import type { Group } from "../http/openapi/operation.ts";
import type { PaidRoute } from "../paid-route.ts";
import { audio } from "./audio.ts";
import { fileOperations } from "./files.ts";
import { gemini, geminiRouteAt } from "./gemini.ts";
import { images } from "./images.ts";
import { messages } from "./messages.ts";
import { type DescribedRoute, paid, payableHeaders } from "./paid-operation.ts";
import { responses } from "./responses.ts";

const chat = {
  name: "Chat",
  description: "Text in OpenAI's chat-completions format, with every chat model",
  routes: [
    paid(
      { endpoint: "/v1/chat/completions", job: "chat", codec: chatCodec, format: "chat", cacheable: true },
      {
        operationId: "createChatCompletion",
        summary: "Create a chat completion, as JSON or as a stream",
        body: requestOf("ChatRequest", chatRequest, "Further fields are allowed as parameters of the model"),
        okOrEvents: [
          "The completion or, with `stream: true`, server-sent events whose last chunk contains the usage",
          refTo("ChatResponse"),
          storedRoutedHeaders,
        ],
        event: refTo("ChatChunk"),
      },
    ),
    paid(
      {
        endpoint: "/v1/completions",
        job: "chat",
        codec: completionsCodec,
        format: "chat",
        framing: "completions",
        cacheable: true,
      },
      {
        operationId: "createCompletion",
        summary:
          "Create a completion in OpenAI's legacy format, with every chat model; the prompt becomes a user message",
        body: completionsRequest,
        okOrEvents: [
          "The completion or, with `stream: true`, server-sent events whose last one contains the usage",
          refTo("CompletionResponse"),
          storedRoutedHeaders,
        ],
        event: refTo("CompletionChunk"),
      },
    ),
  ],
};

const embeddings = {
  name: "Embeddings",
  description: "Embeddings of texts in OpenAI's format",
  routes: [
    paid(
      {
        endpoint: "/v1/embeddings",
        job: "embeddings",
        codec: embeddingsCodec,
        jsonLimits: embeddingsJsonLimits,
        cacheable: true,
      },
      {
        operationId: "createEmbeddings",
        summary: "Create embeddings of one text or of up to 256 texts",
        body: embeddingsRequest,
        ok: ["The embeddings", refTo("EmbeddingsResponse"), cachedCallHeaders.extend(answeringModel)],
      },
    ),
  ],
};

const moderations = {
  name: "Moderations",
  description: "Detection of harmful texts and images, in OpenAI's format; free",
  routes: [
    paid(
      { endpoint: "/v1/moderations", job: "moderation", codec: moderationsCodec, isFree: true, cacheable: true },
      {
        operationId: "createModeration",
        summary: "Classify harmful texts or images by category; free",
        body: moderationRequest,
        ok: ["The moderations", refTo("ModerationResponse"), routedHeaders],
      },
    ),
  ],
};

const rerankOperation = {
  body: rerankRequest,
  ok: ["The results", refTo("RerankResponse"), storedRoutedHeaders],
} satisfies Partial<Parameters<typeof paid>[1]>;
const rerank = {
  name: "Rerank",
  description: "Ranking of documents by their relevance to a query, in Cohere's and Jina's format",
  routes: [
    paid(
      { endpoint: "/v1/rerank", job: "rerank", codec: rerankCodec, cacheable: true },
      {
        ...rerankOperation,
        operationId: "rerank",
        summary: "Rank documents by relevance; priced per search or per token",
      },
    ),
    paid(
      {
        endpoint: "/v2/rerank",
        job: "rerank",
        codec: rerankCodec,
        serves: ({ task }) => task === "rerank",
        cacheable: true,
      },
      {
        ...rerankOperation,
        operationId: "rerankV2",
        summary: "Rank documents by relevance, at the path of Cohere's clients",
      },
    ),
  ],
};

const media = {
  name: "Media",
  description:
    "Video, audio and other media through one endpoint, and the files that models generate. This is a preview: requests and responses may change",
  routes: [
    paid(
      {
        endpoint: "/v1/media/generations",
        job: "media",
        codec: mediaCodec,
        endsAtSyncTimeout: true,
        payable: true,
      },
      {
        operationId: "createMedia",
        summary: "Generate video, audio and other media, priced per unit of output",
        body: mediaRequest,
        ok: ["The generated media", refTo("MediaResponse"), payableHeaders],
      },
    ),
  ],
  operations: fileOperations,
};

interface PaidGroup {
  readonly name: string;
  readonly description: string;
  readonly routes: readonly DescribedRoute[];
  /** The operations of other routes. */
  readonly operations?: Group["operations"];
}

const groups: readonly PaidGroup[] = [
  chat,
  messages,
  responses,
  gemini,
  embeddings,
  moderations,
  rerank,
  images,
  media,
  audio,
];

export const paidGroups: readonly Group[] = groups.map(({ name, description, routes, operations }) => ({
  name,
  description,
  operations: {
    ...Object.fromEntries(routes.map(({ endpoint, operation }) => [`POST ${endpoint}`, operation])),
    ...operations,
  },
}));

/** The paid route of a call's endpoint. */
export function paidRouteAt(endpoint: string): PaidRoute | undefined {
  if (endpoint.startsWith("/v1beta/")) return geminiRouteAt(endpoint);
  return groups.flatMap(({ routes }): readonly PaidRoute[] => routes).find((each) => each.endpoint === endpoint);
}

/** The paid routes that have one path and accept only POST. Messages and Gemini have their own routers. */
export const paidRoutes: readonly PaidRoute[] = groups
  .filter((group) => group !== messages)
  .flatMap(({ routes }) => routes);
