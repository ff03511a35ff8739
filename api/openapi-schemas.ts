import { z } from "zod";
import { errorKinds } from "#errors";
import { chatRequest } from "#formats";

/**
 * Answers and headers that have no schema elsewhere, because nothing validates them. Those of the native formats are defined
 * by their providers and have only the fields that this service reads.
 */

const unixSeconds = z.int().describe("unix seconds");

/** docs/api/inference.md, "Error body". */
export const errorBody = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.enum([...new Set(Object.values(errorKinds).map(({ type }) => type))]),
      code: z.enum(Object.keys(errorKinds)).nullable(),
      param: z.string().nullable().describe("The field at fault"),
    }),
    request_id: z.string(),
  })
  .meta({ id: "Error" });

export const messagesError = z
  .object({
    type: z.literal("error"),
    error: z.object({ type: z.string(), message: z.string() }),
    request_id: z.string(),
  })
  .meta({ id: "MessagesError" });

export const geminiError = z
  .object({ error: z.object({ code: z.int(), message: z.string(), status: z.string() }) })
  .meta({ id: "GeminiError" });

export const idempotencyKey = z.object({
  "Idempotency-Key": z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("The same key and body joins the running work or gets its answer, for 24 hours; a stream ignores it"),
});

export const replayed = z
  .literal("true")
  .optional()
  .describe("The stored answer of an earlier request with the same Idempotency-Key, whose id `x-request-id` names");

export const callHeaders = z.object({
  "x-request-id": z.string(),
  "x-xm-cost-usd": z.string().optional().describe("What the request cost; absent on streams"),
  "x-xm-model": z.string().optional().describe("The model that answered, of a request with a list of models"),
});

export const ignoredParams = z.string().optional().describe("Hints that the model or its upstream does not take");

export const nativeHeaders = callHeaders.extend({ "x-ignored-params": ignoredParams });

export const countHeaders = z.object({
  "x-request-id": z.string(),
  "x-xm-token-count": z.enum(["provider", "estimate"]).describe("Who counted"),
});

export const fileConditions = z.object({
  Range: z.string().optional().describe("The part of the file, such as `bytes=0-1023`; several parts are ignored"),
  "If-Range": z.string().optional().describe("Sends the whole file if it is not the one with this `ETag`"),
  "If-None-Match": z.string().optional().describe("304 if the file has this `ETag`"),
});

export const fileHeaders = z.object({
  ETag: z.string(),
  "Accept-Ranges": z.literal("bytes"),
  "Content-Disposition": z.string().describe("With a name; `attachment` for what browsers do not show"),
});

export const partHeaders = fileHeaders.extend({ "Content-Range": z.string() });

const usage = z.looseObject({
  prompt_tokens: z.int(),
  completion_tokens: z.int().optional(),
  total_tokens: z.int(),
});

export const chatResponse = z
  .looseObject({
    id: z.string(),
    object: z.literal("chat.completion"),
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        message: chatRequest.shape.messages.element,
        finish_reason: z.string().nullable(),
      }),
    ),
    usage,
  })
  .meta({ id: "ChatResponse" });

export const completion = z
  .object({
    id: z.string(),
    object: z.literal("text_completion"),
    created: unixSeconds,
    model: z.string(),
    choices: z.array(
      z.object({ text: z.string(), index: z.int(), logprobs: z.null(), finish_reason: z.string().nullable() }),
    ),
    usage,
  })
  .meta({ id: "CompletionResponse" });

const typed = z.array(z.looseObject({ type: z.string() }));

export const message = z
  .looseObject({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: z.string(),
    content: typed,
    stop_reason: z.string().nullable(),
    usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int() }),
  })
  .meta({ id: "MessagesAnswer" });

export const response = z
  .looseObject({
    id: z.string(),
    object: z.literal("response"),
    model: z.string(),
    status: z.string(),
    output: typed,
    usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() }),
  })
  .meta({ id: "ResponsesAnswer" });

export const deletedResponse = z.object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) });

export const inputItems = z.object({
  object: z.literal("list"),
  data: z.array(z.looseObject({ id: z.string(), type: z.string() })),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
});

export const generated = z
  .looseObject({
    candidates: z.array(z.looseObject({})).optional(),
    usageMetadata: z
      .looseObject({ promptTokenCount: z.int().optional(), totalTokenCount: z.int().optional() })
      .optional(),
    modelVersion: z.string().optional(),
  })
  .meta({ id: "GeminiAnswer" });

export const geminiModel = z.looseObject({ name: z.string() });

export const embeddingsResponse = z
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

const contentEmbedding = z.object({ values: z.array(z.number()) }).meta({ id: "ContentEmbedding" });
const usageMetadata = z.object({ promptTokenCount: z.int() });

export const embedded = z.object({ embedding: contentEmbedding, usageMetadata }).meta({ id: "EmbedContentResponse" });

export const batchEmbedded = z
  .object({ embeddings: z.array(contentEmbedding), usageMetadata })
  .meta({ id: "BatchEmbedContentsResponse" });

export const imageResponse = z
  .object({
    created: unixSeconds,
    expires_at: z.int().describe("unix seconds; when the files are deleted, 24 hours after creation"),
    data: z.array(
      z.looseObject({
        url: z.url().optional(),
        b64_json: z.string().optional(),
        revised_prompt: z.string().optional(),
        expires_at: unixSeconds,
      }),
    ),
  })
  .meta({ id: "ImageResponse" });

export const mediaResponse = z
  .object({
    id: z.string(),
    object: z.literal("media.generation"),
    created: unixSeconds,
    model: z.string(),
    expires_at: unixSeconds,
    output: z.looseObject({}).describe("What the model says beside its files, such as a transcript"),
    files: z.array(z.looseObject({ url: z.url(), content_type: z.string(), bytes: z.int(), expires_at: unixSeconds })),
  })
  .meta({ id: "MediaResponse" });

export const transcript = z
  .looseObject({
    text: z.string(),
    language: z.string().optional(),
    duration: z.number().optional().describe("Seconds"),
    segments: z.array(z.looseObject({ start: z.number(), end: z.number(), text: z.string() })).optional(),
  })
  .meta({ id: "Transcript", description: "What the model says of the recording" });

/** docs/api/inference.md, "Payment-required body": x402 version 2. */
export const paymentRequired = z
  .object({
    x402Version: z.literal(2),
    error: z
      .string()
      .describe("Why: no payment came, or what came was none for this request")
      .meta({ example: "PAYMENT-SIGNATURE header is required" }),
    resource: z.object({
      url: z.string(),
      description: z.string().meta({ example: "One call of local/image" }),
      mimeType: z.string().meta({ example: "application/json" }),
    }),
    accepts: z
      .array(
        z.object({
          scheme: z.literal("exact"),
          network: z.string().describe("CAIP-2").meta({ example: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp" }),
          asset: z
            .string()
            .describe("The mint of USDC")
            .meta({ example: "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v" }),
          amount: z.string().describe("Units of it: of 1 USD there are 1,000,000").meta({ example: "40000" }),
          payTo: z.string().describe("The wallet that is paid"),
          maxTimeoutSeconds: z
            .int()
            .positive()
            .describe("How long a payment may be underway once it is signed")
            .meta({ example: 60 }),
          extra: z.object({
            feePayer: z.string().describe("Who pays the network's fee"),
            memo: z.string().describe("Names the quote; the payment carries it"),
            paymentFlow: z.literal("upfront"),
          }),
        }),
      )
      .length(1),
  })
  .meta({ id: "PaymentRequired" });

export const paymentSignature = z
  .string()
  .optional()
  .describe(
    "Without a key: an x402 payment, version 2, of what the 402 asked for, in base64; good for this very request alone, and again for 24 hours",
  );

export const paymentResponse = z
  .string()
  .optional()
  .describe("What became of the payment that came with the request, in base64; also on errors after it was taken");

export const paymentHeaders = z.object({
  "PAYMENT-REQUIRED": z.string().optional().describe("The body in base64, for x402 clients; without a key"),
  "PAYMENT-RESPONSE": paymentResponse,
});
