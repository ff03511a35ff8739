import { z } from "zod";
import { requestId } from "./headers.ts";
import { anyModel, anyModelList, geminiModelQuery, messagesModelQuery } from "./model-lists.ts";
import { type Group, operation, pathId } from "./operation.ts";

const formatHeaders = z.object({
  "anthropic-version": z.string().optional().describe("Any: the answer and its errors are Anthropic's"),
  "x-goog-api-key": z.string().optional().describe("Any: the answer and its errors are Google's; it is not checked"),
  "x-goog-api-client": z.string().optional().describe("The same, as Google's clients send it"),
});

const byHeader = {
  ...requestId,
  "request-id": z.string().optional().describe("The same as `x-request-id`, in Anthropic's format"),
  Vary: z.literal("anthropic-version, x-goog-api-key, x-goog-api-client"),
};

const description =
  "The headers of the request choose the format: `anthropic-version` Anthropic's, else `x-goog-api-key` or `x-goog-api-client` Google's, else this service's own.";

export const models: Group = {
  name: "Models",
  description: "The models that can be called now, with their prices; no key is needed",
  operations: {
    "GET /v1/models": operation("listModels", "Every model that can be called now", {
      description: `${description} Only the last is whole; the others come in pages, whose parameters it ignores.`,
      security: [],
      params: { header: formatHeaders, query: messagesModelQuery.extend(geminiModelQuery.shape) },
      ok: ["`ModelList`, `MessagesModelList` or `GeminiModelList`", anyModelList, z.object(byHeader)],
      errorFormat: "byHeader",
      errors: [400],
    }),
    "GET /v1/models/{id}": operation("getModel", "One model; the slash is part of the id", {
      description,
      security: [],
      params: { ...pathId("local/chat"), header: formatHeaders },
      ok: ["`Model`, `MessagesModel` or `GeminiModel`", anyModel, z.object(byHeader)],
      errorFormat: "byHeader",
      errors: [404],
    }),
  },
};
