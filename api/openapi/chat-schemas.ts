import { z } from "zod";
import { chatRequest, modelOrModels } from "#formats";
import { unixSeconds } from "../http/openapi/operation.ts";
import { usage } from "../http/openapi/usage.ts";

/**
 * The chat format in full. The service checks less than this of a request: fields that it does not know pass through to
 * providers that speak the format.
 */

export const cacheControl = z
  .looseObject({ type: z.literal("ephemeral"), ttl: z.enum(["5m", "1h"]).nullish() })
  .nullish()
  .describe("Caches the prompt up to here, for models that cache on request");

export const jsonSchema = z.record(z.string(), z.unknown()).meta({ id: "JsonSchema", description: "A JSON Schema" });

const textPart = z
  .looseObject({ type: z.literal("text"), text: z.string(), cache_control: cacheControl })
  .meta({ id: "TextPart" });
const imagePart = z
  .looseObject({
    type: z.literal("image_url"),
    image_url: z.looseObject({
      url: z.string().describe("An https address, a data URL, or the id of an upload, `upl_...`"),
      detail: z.enum(["auto", "low", "high", "original"]).nullish(),
    }),
    cache_control: cacheControl,
  })
  .meta({ id: "ImagePart" });
const audioPart = z
  .looseObject({
    type: z.literal("input_audio"),
    input_audio: z.looseObject({
      data: z.string().describe("Base64, or the id of an upload"),
      format: z.string().nullish().meta({ example: "wav" }),
    }),
  })
  .meta({ id: "AudioPart" });
const filePart = z
  .looseObject({
    type: z.literal("file"),
    file: z.looseObject({
      file_data: z.string().nullish().describe("A data URL, or base64"),
      file_id: z.string().nullish().describe("The id of an upload"),
      filename: z.string().nullish(),
    }),
  })
  .meta({ id: "FilePart" });
const refusalPart = z.looseObject({ type: z.literal("refusal"), refusal: z.string() }).meta({ id: "RefusalPart" });

const userPart = z.discriminatedUnion("type", [textPart, imagePart, audioPart, filePart]).meta({ id: "ContentPart" });
const assistantPart = z.discriminatedUnion("type", [textPart, refusalPart]).meta({ id: "AssistantContentPart" });

const functionCall = z
  .looseObject({
    id: z.string(),
    type: z.literal("function"),
    function: z.looseObject({ name: z.string(), arguments: z.string().describe("JSON, as the model wrote it") }),
  })
  .meta({ id: "FunctionToolCall" });
const customCall = z
  .looseObject({
    id: z.string(),
    type: z.literal("custom"),
    custom: z.looseObject({ name: z.string(), input: z.string() }),
  })
  .meta({ id: "CustomToolCall" });
const toolCall = z.discriminatedUnion("type", [functionCall, customCall]).meta({ id: "ToolCall" });

const reasoning = {
  reasoning_content: z.string().nullish().describe("What the model thought, of models that show it"),
  reasoning_details: z
    .array(z.looseObject({ type: z.string() }))
    .nullish()
    .describe("The same with the provider's signatures; send it back unchanged with the next turn"),
};

const systemMessage = z
  .looseObject({
    role: z.enum(["system", "developer"]),
    content: z.union([z.string(), z.array(textPart)]).nullish(),
    name: z.string().nullish(),
  })
  .meta({ id: "SystemMessage" });
const userMessage = z
  .looseObject({
    role: z.literal("user"),
    content: z.union([z.string(), z.array(userPart)]).nullish(),
    name: z.string().nullish(),
  })
  .meta({ id: "UserMessage" });
const assistantMessage = z
  .looseObject({
    role: z.literal("assistant"),
    content: z.union([z.string(), z.array(assistantPart)]).nullish(),
    refusal: z.string().nullish(),
    name: z.string().nullish(),
    tool_calls: z.array(toolCall).nullish(),
    ...reasoning,
  })
  .meta({ id: "AssistantMessage" });
const toolMessage = z
  .looseObject({
    role: z.literal("tool"),
    tool_call_id: z.string().nullish().describe("The `id` of the call; many models need it"),
    content: z.union([z.string(), z.array(userPart)]).nullish(),
  })
  .meta({ id: "ToolMessage" });
const message = z
  .discriminatedUnion("role", [systemMessage, userMessage, assistantMessage, toolMessage])
  .meta({ id: "Message" });

const functionTool = z
  .looseObject({
    type: z.literal("function"),
    function: z.looseObject({
      name: z.string().min(1).max(64),
      description: z.string().nullish(),
      parameters: jsonSchema.nullish(),
      strict: z.boolean().nullish(),
    }),
    cache_control: cacheControl,
  })
  .meta({ id: "FunctionTool" });
const customTool = z
  .looseObject({
    type: z.literal("custom"),
    custom: z.looseObject({
      name: z.string(),
      description: z.string().nullish(),
      format: z.looseObject({ type: z.string() }).nullish(),
    }),
  })
  .meta({ id: "CustomTool" });
const tool = z.discriminatedUnion("type", [functionTool, customTool]).meta({ id: "Tool" });

const toolChoice = z
  .union([
    z.enum(["none", "auto", "required"]),
    z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: z.string() }) }),
    z.looseObject({ type: z.literal("custom"), custom: z.looseObject({ name: z.string() }) }),
    z.looseObject({ type: z.literal("allowed_tools"), allowed_tools: z.looseObject({}) }),
  ])
  .meta({ id: "ToolChoice" });

const responseFormat = z
  .discriminatedUnion("type", [
    z.looseObject({ type: z.literal("text") }),
    z.looseObject({ type: z.literal("json_object") }),
    z.looseObject({
      type: z.literal("json_schema"),
      json_schema: z.looseObject({
        name: z.string(),
        description: z.string().nullish(),
        schema: jsonSchema.optional(),
        strict: z.boolean().nullish(),
      }),
    }),
  ])
  .meta({ id: "ResponseFormat" });

/** What the service checks, with the parts that it passes on. */
export const fullChatRequest = chatRequest
  .extend({
    messages: z.array(message).min(1),
    tools: z.array(tool).nullish().describe("Works where the model supports tools"),
    tool_choice: toolChoice.nullish(),
    response_format: responseFormat.nullish().describe("Where the model supports it"),
    stream_options: z
      .looseObject({ include_usage: z.boolean().nullish() })
      .nullish()
      .describe("The last chunk of a stream has usage in any case"),
    reasoning_effort: z.string().nullish().meta({ example: "low" }).describe("Of models that reason"),
    frequency_penalty: z.number().min(-2).max(2).nullish(),
    presence_penalty: z.number().min(-2).max(2).nullish(),
    logit_bias: z.record(z.string(), z.number()).nullish(),
    metadata: z.looseObject({}).nullish(),
    user: z.string().nullish(),
    modalities: z.array(z.enum(["text", "audio"])).nullish(),
    audio: z.looseObject({ voice: z.unknown(), format: z.string() }).nullish(),
  })
  .meta({
    id: "ChatRequest",
    description: "More fields are allowed: they are the model's own",
    override: modelOrModels,
  });

const finishReason = z
  .string()
  .nullable()
  .describe("`stop`, `length`, `tool_calls`, `content_filter`, or the provider's own");

const tokenLogprob = z.looseObject({ token: z.string(), logprob: z.number() });
const logprobs = z
  .looseObject({ content: z.array(tokenLogprob.extend({ top_logprobs: z.array(tokenLogprob).nullish() })).nullish() })
  .nullish();

const answerMessage = assistantMessage.extend({ content: z.string().nullable() }).meta({ id: "AnswerMessage" });

export const chatResponse = z
  .looseObject({
    id: z.string(),
    object: z.literal("chat.completion"),
    created: unixSeconds,
    model: z.string(),
    choices: z.array(z.looseObject({ index: z.int(), message: answerMessage, logprobs, finish_reason: finishReason })),
    usage,
  })
  .meta({ id: "ChatResponse" });

/** The first delta of a call has its id, type and name. */
const toolCallDelta = z.looseObject({
  index: z.int(),
  id: z.string().optional(),
  type: z.string().optional(),
  function: z.looseObject({ name: z.string().nullish(), arguments: z.string().nullish() }).optional(),
});

export const chatChunk = z
  .looseObject({
    id: z.string(),
    object: z.literal("chat.completion.chunk"),
    created: unixSeconds,
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        delta: z.looseObject({
          role: z.literal("assistant").optional().describe("Only in the first"),
          content: z.string().nullish(),
          refusal: z.string().nullish(),
          tool_calls: z.array(toolCallDelta).nullish(),
          ...reasoning,
        }),
        logprobs,
        finish_reason: finishReason,
      }),
    ),
    usage: usage.nullish().describe("Of the last chunk, whose `choices` is empty"),
  })
  .meta({
    id: "ChatChunk",
    description: "The data of one event. After the last chunk comes `[DONE]`; a failure is an event with an `Error`",
  });
