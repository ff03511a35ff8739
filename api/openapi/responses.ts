import { z } from "zod";
import { countHeaders, storedRoutedHeaders } from "../http/openapi/headers.ts";
import { type Group, operation, paidErrors, pathId, storing } from "../http/openapi/operation.ts";
import { fullResponsesRequest, inputItems, response, responseEvent } from "./responses-schemas.ts";

const deletedResponse = z.object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) });
const ofResponse = pathId("resp_...");

const question = { model: "local/chat", input: "Say hello." };

export const responses: Group = {
  name: "Responses",
  description:
    "Text in OpenAI's Responses format, by that provider's models unless the operator opens it to all; stored for the account for 24 hours unless `store` is false",
  operations: {
    "POST /v1/responses": operation("createResponse", "A response, as JSON or as a stream", {
      ...storing,
      body: fullResponsesRequest,
      examples: {
        text: { summary: "A question", value: question },
        stream: { summary: "A stream that is not stored", value: { ...question, stream: true, store: false } },
        tools: {
          summary: "A function that the model must call",
          value: {
            model: "local/chat",
            input: [{ role: "user", content: [{ type: "input_text", text: "How is the weather in Oslo?" }] }],
            tools: [
              {
                type: "function",
                name: "get_weather",
                parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
              },
            ],
            tool_choice: "required",
          },
        },
      },
      okOrEvents: ["The response, or its events", response, storedRoutedHeaders],
      event: responseEvent,
    }),
    "POST /v1/responses/input_tokens": operation("countResponseTokens", "The input tokens of a response; free", {
      isCall: true,
      errors: paidErrors,
      body: fullResponsesRequest,
      examples: { text: { summary: "A question", value: question } },
      ok: ["The count", z.object({ object: z.literal("response.input_tokens"), input_tokens: z.int() }), countHeaders],
    }),
    "GET /v1/responses/{id}": operation("getResponse", "A stored response of the account", {
      params: ofResponse,
      ok: ["The response", response],
      errors: [400, 401, 404, 500, 503],
    }),
    "DELETE /v1/responses/{id}": operation("deleteResponse", "Delete a stored response at once", {
      params: ofResponse,
      ok: ["It is gone", deletedResponse],
      errors: [401, 404, 500, 503],
    }),
    "GET /v1/responses/{id}/input_items": operation(
      "listInputItems",
      "The input of a stored response, with all that it referred to",
      {
        params: {
          ...ofResponse,
          query: z.object({
            limit: z.int().min(1).max(100).optional(),
            after: z.string().min(1).max(200).optional().describe("`last_id` of the page before"),
            order: z.enum(["asc", "desc"]).optional().describe("The default is desc"),
          }),
        },
        ok: ["A page of items", inputItems],
        errors: [400, 401, 404, 500, 503],
      },
    ),
  },
};
