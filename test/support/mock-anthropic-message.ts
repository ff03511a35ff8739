import { type Cut, callsFor, type MockTool, sampleOf, textsOf, wordsOf } from "./mock-model.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The parts of the usual message that a test may script. */
export interface MessageScript {
  readonly text?: string;
  /** All blocks of the content, in place of the default ones. A stream sends each in parts. */
  readonly content?: readonly Fields[];
  readonly stopReason?: string;
  /** Overrides fields of the default usage; `false` omits it. */
  readonly usage?: Fields | false;
}

export interface MockMessage extends Fields {
  readonly content: readonly Fields[];
  readonly usage?: Fields;
}

/** The `message` for a request. */
export function messageOf(request: Fields, script: MessageScript): MockMessage {
  const calls = script.text === undefined && script.content === undefined ? toolCalls(request) : [];
  const said = stopped(request, script.text ?? textFor(request));
  const usual = [...thinkingFor(request), ...(calls.length > 0 ? calls : [textBlock(said.text)])];
  const { content = usual } = script;
  const { usage = {} } = script;
  return {
    id: "msg_mock",
    type: "message",
    role: "assistant",
    model: request["model"],
    content,
    container: null,
    diagnostics: null,
    stop_reason: script.stopReason ?? (content.some(({ type }) => type === "tool_use") ? "tool_use" : said.reason),
    stop_sequence: said.sequence,
    stop_details: null,
    ...(usage !== false && { usage: { ...usageOf(request, content), ...usage } }),
  };
}

const textBlock = (text: string): Fields => ({ type: "text", text });

const usageOf = (request: Fields, content: readonly Fields[]): Fields => ({
  input_tokens: wordsOf(textsOf(request).join(" ")).length,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: content.reduce((sum, block) => sum + Math.max(1, wordsOf(said(block)).length), 0),
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: "standard",
  inference_geo: null,
  speed: null,
});

function said({ text, thinking, input }: Fields): string {
  const prose = text ?? thinking;
  return typeof prose === "string" ? prose : JSON.stringify(input ?? "");
}

function textFor(request: Fields): string {
  const { format } = (request["output_config"] ?? {}) as { format?: { schema?: unknown } };
  if (format) return JSON.stringify(sampleOf(format.schema));
  const last = lastOf(request);
  const results = blocksOf(last).filter(({ type }) => type === "tool_result");
  const heard = textsOf(last).join(" ");
  return results.length > 0 ? `The tool said: ${heard}` : `You said: ${heard}`;
}

const lastOf = ({ messages }: Fields): Fields => (messages as readonly Fields[]).at(-1) ?? {};
const blocksOf = ({ content }: Fields): readonly Fields[] => (Array.isArray(content) ? content : []);

/** Each word is a token. */
function stopped(request: Fields, text: string): { text: string; reason: string; sequence: string | null } {
  const sequences = (request["stop_sequences"] ?? []) as readonly string[];
  const sequence = sequences.find((sequence) => text.includes(sequence));
  if (sequence !== undefined) return { text: text.slice(0, text.indexOf(sequence)), reason: "stop_sequence", sequence };
  const words = wordsOf(text);
  const cap = Number(request["max_tokens"]);
  const isCut = words.length > cap;
  return {
    text: isCut ? words.slice(0, cap).join("") : text,
    reason: isCut ? "max_tokens" : "end_turn",
    sequence: null,
  };
}

export const mockSignature = "c2lnbmF0dXJl";

const thinkingFor = ({ thinking }: Fields): readonly Fields[] => {
  const { type } = (thinking ?? {}) as Fields;
  return type === "enabled" || type === "adaptive"
    ? [{ type: "thinking", thinking: "Let me think about it.", signature: mockSignature }]
    : [];
};

function toolCalls(request: Fields): readonly Fields[] {
  const last = lastOf(request);
  if (blocksOf(last).some(({ type }) => type === "tool_result")) return [];
  const tools = ((request["tools"] ?? []) as readonly Fields[]).map(
    ({ name, input_schema }): MockTool => ({ name: String(name), schema: input_schema }),
  );
  const { type, name } = (request["tool_choice"] ?? {}) as Fields;
  if (type === "none") return [];
  const forced = type === "any" || type === "tool" ? { name } : undefined;
  const calls = callsFor(tools, textsOf(last).join(" "), forced);
  return calls.map((call, index) => ({
    type: "tool_use",
    id: `toolu_mock_${index}`,
    ...call,
    caller: { type: "direct" },
  }));
}

/** The whole stream of a message, with a ping at the provider's own position. */
export function messageEvents(whole: MockMessage, cutText: Cut = wordsOf, cutInput: Cut = halves): readonly Fields[] {
  const { content, stop_reason, stop_sequence, stop_details, usage, ...message } = whole;
  const begun = { ...message, content: [], stop_reason: null, stop_sequence: null, stop_details: null };
  const blocks = content.map((block, index) => blockEvents(block, index, cutText, cutInput));
  const [first = [], ...rest] = blocks;
  return [
    { type: "message_start", message: { ...begun, ...(usage && { usage: { ...usage, output_tokens: 1 } }) } },
    ...first.slice(0, 1),
    { type: "ping" },
    ...first.slice(1),
    ...rest.flat(),
    {
      type: "message_delta",
      delta: { stop_reason, stop_sequence, stop_details, container: null },
      ...(usage && { usage: deltaUsage(usage) }),
    },
    { type: "message_stop" },
  ];
}

const deltaUsage = ({
  input_tokens,
  cache_creation_input_tokens,
  cache_read_input_tokens,
  output_tokens,
  output_tokens_details,
  server_tool_use,
}: Fields): Fields => ({
  input_tokens,
  cache_creation_input_tokens,
  cache_read_input_tokens,
  output_tokens,
  output_tokens_details,
  server_tool_use,
});

function blockEvents(block: Fields, index: number, cutText: Cut, cutInput: Cut): Fields[] {
  const [start, deltas] = piecesOf(block, cutText, cutInput);
  return [
    { type: "content_block_start", index, content_block: start },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

/** The first event of a block, and its deltas. */
function piecesOf(block: Fields, cutText: Cut, cutInput: Cut): readonly [Fields, readonly Fields[]] {
  switch (block["type"]) {
    case "text":
      return [{ ...block, text: "" }, cutText(said(block)).map((text) => ({ type: "text_delta", text }))];
    case "thinking":
      return [
        { type: "thinking", thinking: "", signature: "" },
        [
          ...cutText(said(block)).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature: block["signature"] },
        ],
      ];
    case "tool_use":
    case "server_tool_use":
      return [{ ...block, input: {} }, ["", ...cutInput(JSON.stringify(block["input"]))].map(inputDelta)];
    default:
      return [block, []];
  }
}

const inputDelta = (partial_json: string): Fields => ({ type: "input_json_delta", partial_json });
function halves(text: string): readonly string[] {
  return [text.slice(0, text.length >> 1), text.slice(text.length >> 1)];
}
