import { z } from "zod";
import { cacheControl, jsonSchema } from "./chat-schemas.ts";

/**
 * The blocks and events of the Messages format that most clients use. The format is Anthropic's: blocks and fields that are
 * not here pass through where the provider speaks it.
 */

const textBlock = z
  .looseObject({ type: z.literal("text"), text: z.string(), cache_control: cacheControl })
  .meta({ id: "TextBlock" });

const source = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("base64"), media_type: z.string(), data: z.string() }),
  z.looseObject({ type: z.literal("url"), url: z.string().describe("An https address, or the id of an upload") }),
  z.looseObject({ type: z.literal("text"), media_type: z.literal("text/plain"), data: z.string() }),
]);
const imageBlock = z
  .looseObject({ type: z.literal("image"), source, cache_control: cacheControl })
  .meta({ id: "ImageBlock" });
const documentBlock = z
  .looseObject({ type: z.literal("document"), source, title: z.string().nullish(), cache_control: cacheControl })
  .meta({ id: "DocumentBlock" });
const toolUseBlock = z
  .looseObject({
    type: z.literal("tool_use"),
    id: z.string(),
    name: z.string(),
    input: z.record(z.string(), z.unknown()),
  })
  .meta({ id: "ToolUseBlock" });
const toolResultBlock = z
  .looseObject({
    type: z.literal("tool_result"),
    tool_use_id: z.string(),
    content: z
      .union([z.string(), z.array(z.discriminatedUnion("type", [textBlock, imageBlock, documentBlock]))])
      .nullish(),
    is_error: z.boolean().nullish(),
  })
  .meta({ id: "ToolResultBlock" });
const thinkingBlock = z
  .looseObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() })
  .meta({ id: "ThinkingBlock" });
const redactedBlock = z
  .looseObject({ type: z.literal("redacted_thinking"), data: z.string() })
  .meta({ id: "RedactedThinkingBlock" });

const inputBlock = z
  .discriminatedUnion("type", [
    textBlock,
    imageBlock,
    documentBlock,
    toolUseBlock,
    toolResultBlock,
    thinkingBlock,
    redactedBlock,
  ])
  .meta({ id: "InputBlock", description: "Other blocks pass through where the provider is Anthropic" });
const outputBlock = z
  .discriminatedUnion("type", [textBlock, toolUseBlock, thinkingBlock, redactedBlock])
  .meta({ id: "OutputBlock" });

const inputMessage = z
  .looseObject({
    role: z.enum(["user", "assistant", "system"]),
    content: z.union([z.string(), z.array(inputBlock)]),
  })
  .meta({ id: "MessagesMessage" });

const tool = z
  .looseObject({
    type: z.string().nullish().describe("`custom` or none: a tool that the caller runs"),
    name: z.string(),
    description: z.string().nullish(),
    input_schema: jsonSchema.optional(),
    cache_control: cacheControl,
  })
  .meta({ id: "MessagesTool" });

const toolChoice = z
  .discriminatedUnion("type", [
    z.looseObject({ type: z.enum(["auto", "any"]), disable_parallel_tool_use: z.boolean().nullish() }),
    z.looseObject({ type: z.literal("tool"), name: z.string(), disable_parallel_tool_use: z.boolean().nullish() }),
    z.looseObject({ type: z.literal("none") }),
  ])
  .meta({ id: "MessagesToolChoice" });

/** Fields of a request that the service checks in less detail. */
export const blocks = {
  messages: z.array(inputMessage).min(1),
  system: z.union([z.string(), z.array(textBlock)]).nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: toolChoice.nullish(),
};

const tokens = z.int().nullish();
const usage = z
  .looseObject({
    input_tokens: z.int().describe("Without those of the cache"),
    output_tokens: z.int(),
    cache_creation_input_tokens: tokens,
    cache_read_input_tokens: tokens,
  })
  .meta({ id: "MessagesUsage" });

export const message = z
  .looseObject({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: z.string(),
    content: z.array(outputBlock),
    stop_reason: z
      .string()
      .nullable()
      .describe("`end_turn`, `max_tokens`, `stop_sequence`, `tool_use`, `refusal`, or another of the provider"),
    stop_sequence: z.string().nullable(),
    usage,
  })
  .meta({ id: "MessagesAnswer" });

const delta = z
  .discriminatedUnion("type", [
    z.looseObject({ type: z.literal("text_delta"), text: z.string() }),
    z.looseObject({ type: z.literal("input_json_delta"), partial_json: z.string() }),
    z.looseObject({ type: z.literal("thinking_delta"), thinking: z.string() }),
    z.looseObject({ type: z.literal("signature_delta"), signature: z.string() }),
  ])
  .meta({ id: "MessagesDelta" });

const event = <Type extends string, Shape extends z.ZodRawShape>(type: Type, shape: Shape) =>
  z.looseObject({ type: z.literal(type), ...shape });

export const messageEvent = z
  .discriminatedUnion("type", [
    event("message_start", { message }),
    event("content_block_start", { index: z.int(), content_block: outputBlock }),
    event("content_block_delta", { index: z.int(), delta }),
    event("content_block_stop", { index: z.int() }),
    event("message_delta", {
      delta: z.looseObject({ stop_reason: z.string().nullable(), stop_sequence: z.string().nullable() }),
      usage: z.looseObject({ output_tokens: z.int() }),
    }),
    event("message_stop", {}),
    event("ping", {}),
    event("error", { error: z.looseObject({ type: z.string(), message: z.string() }) }),
  ])
  .meta({ id: "MessagesEvent", description: "The data of one event, whose name is its `type`" });
