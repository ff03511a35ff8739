import { z } from "zod";
import { countTokensRequest, messagesRequest, modelOrModels } from "#formats";
import { countHeaders, idempotencyKey, messagesRequestId, storedRoutedHeaders } from "../http/openapi/headers.ts";
import { type Group, operation, paidErrors } from "../http/openapi/operation.ts";
import { blocks, message, messageEvent } from "./messages-schemas.ts";

const clientHeaders = z.object({
  "anthropic-version": z.string().optional().describe("Any is accepted; sent on where the provider is Anthropic"),
  "anthropic-beta": z.string().optional().describe("Sent on where the provider is Anthropic"),
});

const native = {
  security: [{ anthropicKey: [] }, { bearer: [] }],
  errorFormat: "messages" as const,
  isCall: true,
};

const question = { model: "local/chat", messages: [{ role: "user", content: "Say hello." }] };
const weatherTool = {
  name: "get_weather",
  description: "The weather in a city",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

export const messages: Group = {
  name: "Messages",
  description: "Text in Anthropic's Messages format, by that provider's models unless the operator opens it to all",
  operations: {
    "POST /v1/messages": operation("createMessage", "A message, as JSON or as a stream", {
      ...native,
      params: { header: clientHeaders.extend(idempotencyKey.shape) },
      errors: [...paidErrors, 409],
      body: messagesRequest.extend(blocks).meta({ id: "MessagesRequest", override: modelOrModels }),
      examples: {
        text: { summary: "A question", value: { ...question, max_tokens: 100 } },
        stream: { summary: "A stream", value: { ...question, max_tokens: 100, stream: true } },
        tools: {
          summary: "A tool that the model must call",
          value: {
            model: "local/chat",
            max_tokens: 100,
            messages: [{ role: "user", content: [{ type: "text", text: "How is the weather in Oslo?" }] }],
            tools: [weatherTool],
            tool_choice: { type: "any" },
          },
        },
        toolResult: {
          summary: "The result of a tool",
          value: {
            model: "local/chat",
            max_tokens: 100,
            messages: [
              { role: "user", content: "How is the weather in Oslo?" },
              {
                role: "assistant",
                content: [{ type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Oslo" } }],
              },
              {
                role: "user",
                content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "Rain, 8 degrees" }],
              },
            ],
            tools: [weatherTool],
          },
        },
      },
      okOrEvents: ["The message, or its events", message, storedRoutedHeaders.extend(messagesRequestId)],
      event: messageEvent,
    }),
    "POST /v1/messages/count_tokens": operation("countMessageTokens", "The tokens of a message; free", {
      ...native,
      params: { header: clientHeaders },
      errors: paidErrors,
      body: countTokensRequest.extend(blocks).meta({ id: "CountTokensRequest", override: modelOrModels }),
      examples: { text: { summary: "A question", value: question } },
      ok: ["The count", z.object({ input_tokens: z.int() }), countHeaders.extend(messagesRequestId)],
    }),
  },
};
