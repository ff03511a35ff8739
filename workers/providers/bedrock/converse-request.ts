import { refuse } from "#formats";
import { type JsonObject, list, number, object, omitNullish, text } from "#json";
import { converters, shortId } from "../../conversion/index.ts";
import { foundationModel } from "./addresses.ts";

const imageFormats = new Map([
  ["image/png", "png"],
  ["image/jpeg", "jpeg"],
  ["image/jpg", "jpeg"],
  ["image/gif", "gif"],
  ["image/webp", "webp"],
]);

function imageBlock(source: JsonObject): JsonObject {
  const format = imageFormats.get(text(source.media_type).toLowerCase());
  if (source.type !== "base64" || format === undefined)
    return refuse("messages", "this model supports images as PNG, JPEG, GIF and WebP, not by a link");
  return { image: { format, source: { bytes: source.data } } };
}

function documentBlock(source: JsonObject, name: string): JsonObject {
  if (source.type === "url") return refuse("messages", "this model supports files as bytes, not by a link");
  const isText = source.type === "text";
  const bytes = isText ? Buffer.from(text(source.data)).toString("base64") : source.data;
  return { document: { format: isText ? "txt" : "pdf", name, source: { bytes } } };
}

interface Options {
  /** Tool calls and results go as text, because the API accepts their blocks only beside tools. */
  readonly asText: boolean;
  readonly isClaude: boolean;
  readonly callId: (id: unknown) => unknown;
  /** Documents need distinct names of plain characters; a file's own name may carry instructions for the model. */
  readonly documentName: () => string;
}

const textBlock = (content: string): JsonObject[] => (content.trim() ? [{ text: content }] : []);

const resultText = (content: unknown): string =>
  text(content) ||
  list(content)
    .map((block) => text(block.text))
    .join("\n");

function resultBlock(block: JsonObject, options: Options): JsonObject[] {
  const { tool_use_id, content, is_error } = block;
  if (options.asText) return textBlock(`Result of the tool call ${text(tool_use_id)}: ${resultText(content)}`);
  const blocks =
    typeof content === "string" ? textBlock(content) : list(content).flatMap((each) => convertBlock(each, options));
  return [
    {
      toolResult: {
        toolUseId: options.callId(tool_use_id),
        content: blocks.length > 0 ? blocks : [{ text: "(empty)" }],
        ...(is_error === true && { status: "error" }),
      },
    },
  ];
}

function convertBlock(block: JsonObject, options: Options): JsonObject[] {
  const { type, id, name, input, source } = block;
  switch (type) {
    case "text":
      return textBlock(text(block.text));
    case "image":
      return [imageBlock(object(source))];
    case "document":
      return [documentBlock(object(source), options.documentName())];
    case "tool_use":
      return options.asText
        ? textBlock(`Call ${text(id)} of the tool ${text(name)}: ${JSON.stringify(input)}`)
        : [{ toolUse: { toolUseId: options.callId(id), name, input } }];
    case "tool_result":
      return resultBlock(block, options);
    case "thinking":
      // Other models do not sign their reasoning, and unsigned reasoning must not come back.
      return options.isClaude
        ? [{ reasoningContent: { reasoningText: { text: block.thinking, signature: block.signature } } }]
        : [];
    case "redacted_thinking":
      return options.isClaude ? [{ reasoningContent: { redactedContent: block.data } }] : [];
    default:
      return [];
  }
}

function convertMessages(messages: unknown, options: Options): JsonObject[] {
  const converted: { role: unknown; content: JsonObject[] }[] = [];
  for (const { role, content } of list(messages)) {
    const blocks = list(content).flatMap((block) => convertBlock(block, options));
    if (blocks.length === 0) continue;
    const last = converted.at(-1);
    // A message between two of the same role may have had only reasoning.
    if (last && last.role === role) last.content.push(...blocks);
    else converted.push({ role, content: blocks });
  }
  return converted;
}

const toolSpec = ({ name, description, input_schema, strict }: JsonObject): JsonObject => ({
  toolSpec: {
    name,
    ...(text(description).trim() && { description }),
    inputSchema: { json: input_schema },
    ...(strict === true && { strict }),
  },
});

function toolConfig({ tools, tool_choice }: JsonObject): JsonObject | undefined {
  const { type, name } = object(tool_choice);
  if (list(tools).length === 0 || type === "none") return undefined;
  const choice = type === "tool" ? { tool: { name } } : type === "any" ? { any: {} } : undefined;
  return { tools: list(tools).map(toolSpec), ...(choice && { toolChoice: choice }) };
}

/** Fields that the API passes on to the model as they are. */
function modelFields(request: JsonObject, { reasoning_effort }: JsonObject, model: string): JsonObject | undefined {
  if (model.startsWith("anthropic.")) {
    const { effort } = object(request.output_config);
    const { top_k, thinking } = request;
    const fields = omitNullish({ top_k, thinking, output_config: effort === undefined ? undefined : { effort } });
    return Object.keys(fields).length > 0 ? fields : undefined;
  }
  const effort = novaEfforts.get(reasoning_effort);
  return effort !== undefined && model.startsWith("amazon.nova-2")
    ? { reasoningConfig: { type: "enabled", maxReasoningEffort: effort } }
    : undefined;
}

/** https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html */
const novaEfforts = new Map<unknown, string>([
  ["minimal", "low"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["xhigh", "high"],
  ["max", "high"],
]);

function outputConfig(request: JsonObject): JsonObject | undefined {
  const { schema } = object(object(request.output_config).format);
  if (schema === undefined) return undefined;
  const jsonSchema = { name: "answer", schema: JSON.stringify(schema) };
  return { textFormat: { type: "json_schema", structure: { jsonSchema } } };
}

/**
 * Converts a chat request for the Converse API
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html), whose messages have the structure of
 * Anthropic's. Throws `invalidValue` naming the chat field.
 */
export function converseRequest(chat: JsonObject): JsonObject {
  const model = foundationModel(text(chat.model));
  const { request } = converters.messages.requestFromChat(chat);
  const tools = toolConfig(request);
  let documents = 0;
  const messages = convertMessages(request.messages, {
    asText: tools === undefined,
    isClaude: model.startsWith("anthropic."),
    callId: model.startsWith("mistral.") ? shortId : (id) => id,
    documentName: () => `document-${++documents}`,
  });
  // Blocks, if one has a cache breakpoint.
  const system = Array.isArray(request.system)
    ? list(request.system).flatMap((block) => textBlock(text(block.text)))
    : textBlock(text(request.system));
  const isSampled = request.temperature !== undefined || request.top_p !== undefined;
  return omitNullish({
    messages,
    system: system.length > 0 ? system : undefined,
    inferenceConfig: omitNullish({
      maxTokens: request.max_tokens,
      temperature: request.temperature,
      // Claude alone refuses both, and the conversion for it drops one.
      topP: model.startsWith("anthropic.") || !isSampled ? request.top_p : number(chat.top_p),
      stopSequences: request.stop_sequences,
    }),
    toolConfig: tools,
    additionalModelRequestFields: modelFields(request, chat, model),
    outputConfig: outputConfig(request),
  });
}
