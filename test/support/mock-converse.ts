import { type MessageScript, type MockMessage, messageEvents, messageOf } from "./mock-anthropic-message.ts";

type Fields = Readonly<Record<string, unknown>>;
const list = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value : []);
const object = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});

const imageFormats: readonly unknown[] = ["png", "jpeg", "gif", "webp"];
const isBase64 = (value: unknown) =>
  typeof value === "string" && Buffer.from(value, "base64").toString("base64") === value;
const fields = new Set(
  (
    "messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields performanceConfig outputConfig " +
    "additionalModelResponseFieldPaths requestMetadata serviceTier"
  ).split(" "),
);

/**
 * The message with which Converse refuses a request, as
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html and its users report. Returns undefined
 * for a request that it takes.
 */
export function converseRefusal(model: string, body: Fields): string | undefined {
  const unknown = Object.keys(body).find((field) => !fields.has(field));
  if (unknown) return `Unexpected field type: ${unknown}`;
  const messages = list(body["messages"]);
  if (messages[0]?.["role"] !== "user") return "A conversation must start with a user message. Try again.";
  const repeated = messages.findIndex(({ role }, m) => m > 0 && messages[m - 1]?.["role"] === role);
  if (repeated > 0) return `A conversation must alternate between user and assistant roles (messages.${repeated}).`;
  return (
    list(body["system"]).map(blankText("system")).find(Boolean) ??
    limitRefusal(object(body["inferenceConfig"])) ??
    toolRefusal(object(body["toolConfig"])) ??
    messages.map((message, m) => messageRefusal(model, body, message, m, messages[m - 1])).find(Boolean)
  );
}

const blankText = (at: string) => (block: Fields, position: number) =>
  typeof block["text"] === "string" && block["text"].trim() === ""
    ? `The text field in the ContentBlock object at ${at}.${position} is blank. Add text to the text field, and try again.`
    : undefined;

function limitRefusal({ maxTokens, temperature, topP, stopSequences }: Fields): string | undefined {
  if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && Number(maxTokens) >= 1))
    return "maxTokens: must be >= 1";
  for (const value of [temperature, topP])
    if (value !== undefined && !(Number(value) >= 0 && Number(value) <= 1)) return "temperature, topP: must be <= 1";
  return stopSequences !== undefined && list(stopSequences).length > 4 ? "stopSequences: at most 4" : undefined;
}

function toolRefusal({ tools, toolChoice }: Fields): string | undefined {
  if (tools === undefined) return toolChoice === undefined ? undefined : "toolConfig.tools: is required";
  for (const { toolSpec } of list(tools)) {
    const { name, description, inputSchema } = object(toolSpec);
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(name))) return "toolConfig.tools.0.member.toolSpec.name: invalid";
    if (description === "") return "toolConfig.tools.0.member.toolSpec.description: must not be empty";
    if (object(object(inputSchema)["json"])["type"] !== "object") return "inputSchema.json.type: must be object";
  }
  return list(tools).length > 0 ? undefined : "toolConfig.tools: must have at least one tool";
}

const idsIn = (content: unknown, kind: "toolUse" | "toolResult") =>
  list(content).flatMap((block) => (block[kind] ? [String(object(block[kind])["toolUseId"])] : []));

function messageRefusal(
  model: string,
  { toolConfig }: Fields,
  { role, content }: Fields,
  m: number,
  before: Fields | undefined,
): string | undefined {
  if (list(content).length === 0)
    return `The content field in the Message object at messages.${m} is empty. Add a ContentBlock object and try again.`;
  const blank = list(content)
    .map(blankText(`messages.${m}.content`))
    .find(Boolean);
  if (blank) return blank;
  const ids = [...idsIn(content, "toolUse"), ...idsIn(content, "toolResult")];
  if (ids.length > 0 && toolConfig === undefined)
    return "The toolConfig field must be defined when using toolUse and toolResult content blocks.";
  const isInvalid = model.includes("mistral") && ids.some((id) => !/^[a-zA-Z0-9]{9}$/.test(id));
  if (isInvalid) return "toolUseId: must match [a-zA-Z0-9]{9}";
  if (!model.includes("anthropic.") && list(content).some((block) => "reasoningContent" in block))
    return "This model doesn't support the reasoningContent.reasoningText field.";
  const calls = idsIn(before?.["content"], "toolUse").toSorted();
  if (role === "user" && calls.join() !== idsIn(content, "toolResult").toSorted().join())
    return `Expected toolResult blocks at messages.${m}.content for the following Ids: ${calls.join(", ")}`;
  return list(content).map(blockRefusal).find(Boolean);
}

function blockRefusal(block: Fields): string | undefined {
  const { image, document, toolUse, toolResult } = block;
  if (Object.keys(block).length !== 1) return "ContentBlock: must have exactly one member";
  const { format, source, name } = object(image ?? document);
  if ((image || document) && !isBase64(object(source)["bytes"])) return "source.bytes: must be base64";
  if (image && !imageFormats.includes(format)) return `image.format: ${String(format)} is not a format`;
  if (document && !/^[\w()[\]-]+( [\w()[\]-]+)*$/.test(String(name)))
    return "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets.";
  if (toolUse && (typeof object(toolUse)["input"] !== "object" || Array.isArray(object(toolUse)["input"])))
    return "The format of the value at toolUse.input is invalid. Provide a json object for the field and try again.";
  return toolResult ? list(object(toolResult)["content"]).map(blockRefusal).find(Boolean) : undefined;
}

/** The same request as Anthropic's, for the model behind the mocks. */
const asMessages = ({ messages, system, inferenceConfig, toolConfig, outputConfig }: Fields): Fields => {
  const { maxTokens = 4_096, stopSequences } = object(inferenceConfig);
  const { tools, toolChoice } = object(toolConfig);
  const { tool, any } = object(toolChoice);
  const { structure } = object(object(outputConfig)["textFormat"]);
  const schema = object(object(structure)["jsonSchema"])["schema"];
  return {
    max_tokens: maxTokens,
    stop_sequences: stopSequences,
    system: list(system).map((block) => ({ type: "text", ...block })),
    messages: list(messages).map(({ role, content }) => ({ role, content: list(content).map(asBlock) })),
    tools: list(tools).map(({ toolSpec }) => {
      const { name, inputSchema } = object(toolSpec);
      return { name, input_schema: object(inputSchema)["json"] };
    }),
    ...(tool !== undefined && { tool_choice: { type: "tool", ...object(tool) } }),
    ...(any !== undefined && { tool_choice: { type: "any" } }),
    ...(typeof schema === "string" && { output_config: { format: { schema: JSON.parse(schema) as unknown } } }),
  };
};

function asBlock({ text, toolUse, toolResult }: Fields): Fields {
  if (text !== undefined) return { type: "text", text };
  if (toolUse) return { type: "tool_use", ...object(toolUse) };
  return toolResult ? { type: "tool_result", content: list(object(toolResult)["content"]).map(asBlock) } : {};
}

/** Usage as Converse reports it: cached tokens are no part of the input. */
const usageOf = ({ usage = {} }: MockMessage): Fields => ({
  inputTokens: usage["input_tokens"],
  outputTokens: usage["output_tokens"],
  totalTokens: Number(usage["input_tokens"]) + Number(usage["output_tokens"]),
  cacheReadInputTokens: usage["cache_read_input_tokens"],
  cacheWriteInputTokens: usage["cache_creation_input_tokens"],
});

/** The answer of a mock's message to this request: whole, and as the events of a stream. */
export function converseAnswer(model: string, body: Fields, script: MessageScript) {
  const message = messageOf(asMessages(body), script);
  // Mistral writes ids of its own form.
  const idOf = (id: unknown) => (model.includes("mistral") ? String(id).replace(/\W|_/g, "").slice(-9) : id);
  const whole = {
    output: {
      message: {
        role: "assistant",
        content: message.content.map(({ type, text, id, name, input, thinking }) => {
          if (type === "tool_use") return { toolUse: { toolUseId: idOf(id), name, input } };
          return type === "thinking" ? { reasoningContent: { reasoningText: { text: thinking } } } : { text };
        }),
      },
    },
    stopReason: message["stop_reason"],
    usage: usageOf(message),
    metrics: { latencyMs: 12 },
  };
  return { whole, events: eventsOf(message, idOf) };
}

type Event = readonly [type: string, payload: Fields];

function eventsOf(message: MockMessage, idOf: (id: unknown) => unknown): readonly Event[] {
  const events = messageEvents(message).flatMap(({ type, index: contentBlockIndex, content_block, delta }): Event[] => {
    switch (type) {
      case "message_start":
        return [["messageStart", { role: "assistant" }]];
      case "content_block_start": {
        const { type: kind, id, name } = object(content_block);
        // Text and reasoning begin without an event.
        return kind === "tool_use"
          ? [["contentBlockStart", { contentBlockIndex, start: { toolUse: { toolUseId: idOf(id), name } } }]]
          : [];
      }
      case "content_block_delta": {
        const { type: kind, text, partial_json, thinking } = object(delta);
        if (kind === "signature_delta") return [];
        const reasoningContent = { text: thinking };
        const toolUse = { input: partial_json };
        const converted =
          kind === "text_delta" ? { text } : kind === "thinking_delta" ? { reasoningContent } : { toolUse };
        return [["contentBlockDelta", { contentBlockIndex, delta: converted }]];
      }
      case "content_block_stop":
        return [["contentBlockStop", { contentBlockIndex }]];
      case "message_stop":
        return [["messageStop", { stopReason: message["stop_reason"] }]];
      default:
        return [];
    }
  });
  return [...events, ["metadata", { usage: usageOf(message), metrics: { latencyMs: 12 } }]];
}
