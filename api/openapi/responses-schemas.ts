import { z } from "zod";
import { modelOrModels, responsesRequest } from "#formats";
import { unixSeconds } from "../http/openapi/operation.ts";
import { costUsd } from "../http/openapi/usage.ts";
import { jsonSchema } from "./chat-schemas.ts";

/**
 * The items and events of the Responses format that most clients use. The format is OpenAI's: items and fields that are not
 * here pass through where the provider speaks it.
 */

const inputText = z.looseObject({ type: z.literal("input_text"), text: z.string() }).meta({ id: "InputText" });
const inputImage = z
  .looseObject({
    type: z.literal("input_image"),
    image_url: z.string().nullish().describe("An https address, a data URL, or the id of an upload"),
    file_id: z.string().nullish().describe("The id of an upload"),
    detail: z.string().nullish(),
  })
  .meta({ id: "InputImage" });
const inputFile = z
  .looseObject({
    type: z.literal("input_file"),
    file_data: z.string().nullish(),
    file_url: z.string().nullish(),
    file_id: z.string().nullish().describe("The id of an upload"),
    filename: z.string().nullish(),
  })
  .meta({ id: "InputFile" });
const outputText = z
  .looseObject({
    type: z.literal("output_text"),
    text: z.string(),
    annotations: z.array(z.looseObject({ type: z.string() })).optional(),
    logprobs: z.array(z.looseObject({ token: z.string(), logprob: z.number() })).optional(),
  })
  .meta({ id: "OutputText" });
const refusal = z.looseObject({ type: z.literal("refusal"), refusal: z.string() }).meta({ id: "OutputRefusal" });
const outputPart = z.discriminatedUnion("type", [outputText, refusal]).meta({ id: "OutputPart" });

const status = z.enum(["in_progress", "completed", "incomplete"]);

const inputMessage = z
  .looseObject({
    type: z.literal("message").optional(),
    role: z.enum(["user", "assistant", "system", "developer"]),
    content: z.union([z.string(), z.array(z.union([inputText, inputImage, inputFile, outputText, refusal]))]),
  })
  .meta({ id: "InputMessage" });
const outputMessage = z
  .looseObject({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    status,
    content: z.array(outputPart),
  })
  .meta({ id: "OutputMessage" });
const functionCall = z
  .looseObject({
    id: z.string().nullish(),
    type: z.literal("function_call"),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string().describe("JSON, as the model wrote it"),
    status: status.nullish(),
  })
  .meta({ id: "FunctionCallItem" });
const functionOutput = z
  .looseObject({
    id: z.string().nullish(),
    type: z.literal("function_call_output"),
    call_id: z.string(),
    output: z.union([z.string(), z.array(z.union([inputText, inputImage, inputFile]))]),
  })
  .meta({ id: "FunctionCallOutputItem" });
const reasoning = z
  .looseObject({
    id: z.string().nullish(),
    type: z.literal("reasoning"),
    summary: z.array(z.looseObject({ type: z.literal("summary_text"), text: z.string() })),
    encrypted_content: z.string().nullish().describe("Send it back unchanged with the next turn"),
  })
  .meta({ id: "ReasoningItem" });
const reference = z
  .looseObject({ type: z.literal("item_reference"), id: z.string() })
  .meta({ id: "ItemReference", description: "An item that is stored for the account" });
const customCall = z
  .looseObject({
    id: z.string().nullish(),
    type: z.literal("custom_tool_call"),
    call_id: z.string(),
    name: z.string(),
    input: z.string(),
  })
  .meta({ id: "CustomToolCallItem" });
const otherCall = z
  .looseObject({
    type: z.enum(["tool_search_call", "apply_patch_call", "local_shell_call", "shell_call"]),
    call_id: z.string().nullish(),
  })
  .meta({ id: "OtherCallItem", description: "Of OpenAI's tools that the caller runs" });
const otherOutput = z
  .looseObject({
    type: z.enum([
      "custom_tool_call_output",
      "tool_search_output",
      "apply_patch_call_output",
      "local_shell_call_output",
      "shell_call_output",
      "additional_tools",
    ]),
    call_id: z.string().nullish(),
  })
  .meta({ id: "OtherOutputItem", description: "The results of those" });

const inputItem = z
  .union([inputMessage, functionCall, functionOutput, customCall, otherCall, otherOutput, reasoning, reference])
  .meta({ id: "InputItem" });
const outputItem = z
  .discriminatedUnion("type", [outputMessage, functionCall, customCall, otherCall, reasoning])
  .meta({ id: "OutputItem" });

const tool = z
  .discriminatedUnion("type", [
    z.looseObject({
      type: z.literal("function"),
      name: z.string(),
      description: z.string().nullish(),
      parameters: jsonSchema.nullish(),
      strict: z.boolean().nullish(),
    }),
    z.looseObject({ type: z.literal("custom"), name: z.string(), description: z.string().nullish() }),
    z.looseObject({
      type: z.literal("namespace"),
      name: z.string(),
      tools: z.array(z.looseObject({ type: z.string() })),
    }),
    z.looseObject({ type: z.enum(["tool_search", "apply_patch", "local_shell", "shell"]) }),
  ])
  .meta({ id: "ResponsesTool" });

const toolChoice = z
  .union([
    z.enum(["none", "auto", "required"]),
    z.looseObject({ type: z.enum(["function", "custom"]), name: z.string() }),
    z.looseObject({ type: z.literal("allowed_tools"), mode: z.string(), tools: z.array(z.looseObject({})) }),
    z.looseObject({ type: z.enum(["apply_patch", "shell"]) }),
  ])
  .meta({ id: "ResponsesToolChoice" });

const textFormat = z
  .union([
    z.looseObject({ type: z.enum(["text", "json_object"]) }),
    z.looseObject({
      type: z.literal("json_schema"),
      name: z.string(),
      schema: jsonSchema,
      strict: z.boolean().nullish(),
    }),
  ])
  .meta({ id: "TextFormat" });

export const fullResponsesRequest = responsesRequest
  .extend({
    input: z.union([z.string(), z.array(inputItem).min(1)]),
    tools: z.array(tool).nullish().describe("Functions and other tools that the caller runs"),
    tool_choice: toolChoice.nullish(),
    text: z.looseObject({ format: textFormat.nullish(), verbosity: z.string().nullish() }).nullish(),
  })
  .meta({ id: "ResponsesRequest", override: modelOrModels });

const usage = z
  .looseObject({
    input_tokens: z.int(),
    input_tokens_details: z.looseObject({ cached_tokens: z.int() }),
    output_tokens: z.int(),
    output_tokens_details: z.looseObject({ reasoning_tokens: z.int() }),
    total_tokens: z.int(),
    cost_usd: costUsd,
  })
  .meta({ id: "ResponsesUsage" });

export const response = z
  .looseObject({
    id: z.string(),
    object: z.literal("response"),
    created_at: unixSeconds,
    model: z.string(),
    status: z.enum(["in_progress", "completed", "incomplete", "failed"]),
    error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
    incomplete_details: z.looseObject({ reason: z.string() }).nullable(),
    output: z.array(outputItem),
    previous_response_id: z.string().nullish(),
    store: z
      .boolean()
      .optional()
      .describe(
        "Always false: the provider stores nothing. This service stores the response unless the request said `false`",
      ),
    usage: usage.nullable().describe("null until the end"),
  })
  .meta({ id: "ResponsesAnswer" });

export const inputItems = z
  .object({
    object: z.literal("list"),
    data: z.array(z.looseObject({ id: z.string(), type: z.string() })),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  })
  .meta({ id: "InputItemList" });

const event = <Type extends string, Shape extends z.ZodRawShape>(type: Type, shape: Shape) =>
  z.looseObject({ type: z.literal(type), sequence_number: z.int(), ...shape });
const ofItem = { output_index: z.int(), item: outputItem };
const inItem = { item_id: z.string(), output_index: z.int() };
const inPart = { ...inItem, content_index: z.int() };

export const responseEvent = z
  .discriminatedUnion("type", [
    event("response.created", { response }),
    event("response.in_progress", { response }),
    event("response.output_item.added", ofItem),
    event("response.output_item.done", ofItem),
    event("response.content_part.added", { ...inPart, part: outputPart }),
    event("response.content_part.done", { ...inPart, part: outputPart }),
    event("response.output_text.delta", { ...inPart, delta: z.string() }),
    event("response.output_text.done", { ...inPart, text: z.string() }),
    event("response.refusal.delta", { ...inPart, delta: z.string() }),
    event("response.function_call_arguments.delta", { ...inItem, delta: z.string() }),
    event("response.function_call_arguments.done", { ...inItem, arguments: z.string() }),
    event("response.reasoning_summary_text.delta", { ...inItem, summary_index: z.int(), delta: z.string() }),
    event("response.completed", { response }),
    event("response.incomplete", { response }),
    event("response.failed", { response }),
    event("error", { code: z.string().nullable(), message: z.string(), param: z.string().nullable() }),
  ])
  .meta({
    id: "ResponsesEvent",
    description: "The data of one event, whose name is its `type`; OpenAI's models also send others",
  });
