import { z } from "zod";
import { modelList, modelObject } from "../routes/model-views.ts";

/** The lists of models as Anthropic and Google have them. */

const messagesModel = z
  .looseObject({
    type: z.literal("model"),
    id: z.string(),
    display_name: z.string(),
    created_at: z.string().describe("RFC 3339"),
    max_input_tokens: z.int(),
    max_tokens: z.int(),
  })
  .meta({ id: "MessagesModel" });

const messagesModelList = z
  .looseObject({
    data: z.array(messagesModel),
    has_more: z.boolean(),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
  })
  .meta({ id: "MessagesModelList" });

export const geminiModel = z
  .looseObject({
    name: z.string().describe("models/provider/model, or the provider's own name"),
    displayName: z.string(),
    inputTokenLimit: z.int(),
    outputTokenLimit: z.int(),
    supportedGenerationMethods: z.array(z.string()),
  })
  .meta({ id: "GeminiModel" });

export const geminiModelList = z
  .looseObject({ models: z.array(geminiModel), nextPageToken: z.string().optional() })
  .meta({ id: "GeminiModelList" });

export const geminiModelQuery = z.object({
  pageSize: z.int32().min(0).optional().describe("0: the default, 50; more than 1000 is 1000"),
  pageToken: z.string().optional().describe("The `nextPageToken` of the page before"),
});

export const messagesModelQuery = z.object({
  limit: z.int().min(1).max(1000).optional().describe("The default is 20"),
  after_id: z.string().optional().describe("`last_id` of the page before"),
  before_id: z.string().optional().describe("`first_id` of the page after; not with `after_id`"),
});

/** By the headers of the request. */
export const anyModelList = z.union([modelList, messagesModelList, geminiModelList]);
export const anyModel = z.union([modelObject, messagesModel, geminiModel]);
