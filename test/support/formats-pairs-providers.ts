import type { Format } from "#formats";

export type Json = Readonly<Record<string, unknown>>;

/** The content of a response, in any format. */
export interface Said {
  readonly reasoning: string;
  /** The state of its reasoning, readable only by its provider. */
  readonly state: string;
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly args: Json }[];
  readonly finish: "stop" | "length" | "tool_calls" | "content_filter";
  readonly usage: {
    readonly input: number;
    readonly cached: number;
    readonly output: number;
    readonly reasoning: number;
  };
}

/** Splits a text into the pieces of a stream. */
export type Cut = (text: string) => readonly string[];

/** A provider's whole response and its stream's events, according to its public reference. */
interface Provider {
  whole(said: Said): Json;
  events(said: Said, cut: Cut): Json[];
}

const created = 1_700_000_000;
const providersId = "req_abc";

const chatUsage = ({ input, cached, output, reasoning }: Said["usage"]): Json => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: { cached_tokens: cached },
  completion_tokens_details: { reasoning_tokens: reasoning },
});

/** The first of each list, then the second of each: servers interleave parallel calls this way. */
function inTurns<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((each) => each.slice(at, at + 1))).flat();
}

const chat: Provider = {
  whole: ({ reasoning, text, refusal, calls, finish, usage }) => ({
    id: providersId,
    object: "chat.completion",
    created,
    model: "providers-model",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text || null,
          refusal: refusal || null,
          ...(reasoning && { reasoning_content: reasoning }),
          ...(calls.length > 0 && {
            tool_calls: calls.map(({ id, name, args }) => ({
              id,
              type: "function",
              function: { name, arguments: JSON.stringify(args) },
            })),
          }),
        },
        finish_reason: finish,
      },
    ],
    usage: chatUsage(usage),
  }),
  events({ reasoning, text, refusal, calls, finish, usage }, cut) {
    const chunk = (delta: Json, finish_reason: string | null = null): Json => ({
      id: providersId,
      object: "chat.completion.chunk",
      created,
      model: "providers-model",
      choices: [{ index: 0, delta, finish_reason }],
    });
    const deltas = calls.map(({ id, name, args }, index) => [
      { index, id, type: "function", function: { name, arguments: "" } },
      ...cut(JSON.stringify(args)).map((piece) => ({ index, function: { arguments: piece } })),
    ]);
    return [
      chunk({ role: "assistant", content: "" }),
      ...cut(reasoning).map((piece) => chunk({ reasoning_content: piece })),
      ...cut(text).map((piece) => chunk({ content: piece })),
      ...cut(refusal).map((piece) => chunk({ refusal: piece })),
      ...inTurns<Json>(deltas).map((delta) => chunk({ tool_calls: [delta] })),
      chunk({}, finish),
      { ...chunk({}), choices: [], usage: chatUsage(usage) },
    ];
  },
};

const stopReasons = { stop: "end_turn", length: "max_tokens", tool_calls: "tool_use", content_filter: "refusal" };

function messagesBlocks({ reasoning, state, text, calls }: Said) {
  return [
    ...(reasoning ? [{ type: "thinking", thinking: reasoning, signature: state }] : []),
    ...(text ? [{ type: "text", text, citations: null }] : []),
    ...calls.map(({ id, name, args }) => ({ type: "tool_use", id, name, input: args })),
  ];
}

const messagesStop = ({ finish, refusal }: Said): Json => ({
  stop_reason: stopReasons[finish],
  stop_sequence: null,
  stop_details: refusal ? { type: "refusal", category: null, explanation: refusal } : null,
});

const messagesUsage = ({ input, cached, output, reasoning }: Said["usage"]): Json => ({
  input_tokens: input - cached,
  cache_read_input_tokens: cached,
  cache_creation_input_tokens: 0,
  output_tokens: output,
  output_tokens_details: { thinking_tokens: reasoning },
});

const blank = { id: "msg_abc", type: "message", role: "assistant", model: "providers-model" };

const messages: Provider = {
  whole: (said) => ({
    ...blank,
    content: messagesBlocks(said),
    ...messagesStop(said),
    usage: messagesUsage(said.usage),
  }),
  events(said, cut) {
    const { output_tokens: _, ...before } = messagesUsage(said.usage);
    const start = { ...blank, content: [], stop_reason: null, stop_sequence: null, stop_details: null };
    const blocks = messagesBlocks(said).flatMap((block, index): Json[] => {
      const delta = (of: Json) => ({ type: "content_block_delta", index, delta: of });
      const begin = (content_block: Json) => ({ type: "content_block_start", index, content_block });
      const end = { type: "content_block_stop", index };
      if ("thinking" in block)
        return [
          begin({ ...block, thinking: "", signature: "" }),
          ...cut(block.thinking).map((thinking) => delta({ type: "thinking_delta", thinking })),
          delta({ type: "signature_delta", signature: block.signature }),
          end,
        ];
      if ("text" in block)
        return [
          begin({ ...block, text: "" }),
          ...cut(block.text).map((text) => delta({ type: "text_delta", text })),
          end,
        ];
      return [
        begin({ ...block, input: {} }),
        delta({ type: "input_json_delta", partial_json: "" }),
        ...cut(JSON.stringify(block.input)).map((partial_json) => delta({ type: "input_json_delta", partial_json })),
        end,
      ];
    });
    return [
      { type: "message_start", message: { ...start, usage: { ...before, output_tokens: 1 } } },
      ...blocks,
      { type: "message_delta", delta: messagesStop(said), usage: messagesUsage(said.usage) },
      { type: "message_stop" },
    ];
  },
};

function responsesItems({ reasoning, state, text, refusal, calls }: Said, status: string) {
  const content = [
    ...(text ? [{ type: "output_text", text, annotations: [], logprobs: [] }] : []),
    ...(refusal ? [{ type: "refusal", refusal }] : []),
  ];
  return [
    ...(reasoning
      ? [
          {
            id: "rs_1",
            type: "reasoning",
            summary: [{ type: "summary_text", text: reasoning }],
            encrypted_content: state,
          },
        ]
      : []),
    ...(content.length > 0 ? [{ id: "msg_1", type: "message", role: "assistant", status, content }] : []),
    ...calls.map(({ id, name, args }, c) => ({
      id: `fc_${c}`,
      type: "function_call",
      status,
      call_id: id,
      name,
      arguments: JSON.stringify(args),
    })),
  ];
}

const responsesUsage = ({ input, cached, output, reasoning }: Said["usage"]): Json => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning },
  total_tokens: input + output,
});

function responsesWhole(said: Said): Json {
  const reasons: Record<string, string> = { length: "max_output_tokens", content_filter: "content_filter" };
  const reason = reasons[said.finish];
  const status = reason ? "incomplete" : "completed";
  return {
    id: "resp_abc",
    object: "response",
    created_at: created,
    model: "providers-model",
    status,
    error: null,
    incomplete_details: reason ? { reason } : null,
    output: responsesItems(said, status),
    usage: responsesUsage(said.usage),
  };
}

function itemEvents(item: ReturnType<typeof responsesItems>[number], output_index: number, cut: Cut): Json[] {
  const at = { item_id: item.id, output_index };
  const added = (begun: Json): Json => ({ type: "response.output_item.added", output_index, item: begun });
  const done: Json = { type: "response.output_item.done", output_index, item };
  if ("summary" in item) {
    const here = { ...at, summary_index: 0 };
    const text = item.summary[0]?.text ?? "";
    const part = { type: "summary_text", text };
    return [
      added({ ...item, summary: [], encrypted_content: item.encrypted_content }),
      { type: "response.reasoning_summary_part.added", ...here, part: { ...part, text: "" } },
      ...cut(text).map((delta) => ({ type: "response.reasoning_summary_text.delta", ...here, delta })),
      { type: "response.reasoning_summary_text.done", ...here, text },
      { type: "response.reasoning_summary_part.done", ...here, part },
      done,
    ];
  }
  if ("call_id" in item)
    return [
      added({ ...item, status: "in_progress", arguments: "" }),
      ...cut(item.arguments).map((delta) => ({ type: "response.function_call_arguments.delta", ...at, delta })),
      { type: "response.function_call_arguments.done", ...at, name: item.name, arguments: item.arguments },
      done,
    ];
  const parts = item.content.flatMap((part, content_index): Json[] => {
    const here = { ...at, content_index };
    const said =
      "text" in part
        ? [
            { type: "response.content_part.added", ...here, part: { ...part, text: "" } },
            ...cut(part.text).map((delta) => ({ type: "response.output_text.delta", ...here, delta, logprobs: [] })),
            { type: "response.output_text.done", ...here, text: part.text, logprobs: [] },
          ]
        : [
            { type: "response.content_part.added", ...here, part: { ...part, refusal: "" } },
            ...cut(part.refusal).map((delta) => ({ type: "response.refusal.delta", ...here, delta })),
            { type: "response.refusal.done", ...here, refusal: part.refusal },
          ];
    return [...said, { type: "response.content_part.done", ...here, part }];
  });
  return [added({ ...item, status: "in_progress", content: [] }), ...parts, done];
}

const responses: Provider = {
  whole: responsesWhole,
  events(said, cut) {
    const response = responsesWhole(said);
    const begun = { ...response, status: "in_progress", incomplete_details: null, output: [], usage: null };
    const items = responsesItems(said, response["status"] as string);
    return [
      { type: "response.created", response: begun },
      { type: "response.in_progress", response: begun },
      ...items.flatMap((item, at) => itemEvents(item, at, cut)),
      { type: `response.${String(response["status"])}`, response },
    ].map((event, sequence_number) => ({ ...event, sequence_number }));
  },
};

const finishReasons = { stop: "STOP", length: "MAX_TOKENS", tool_calls: "STOP", content_filter: "SAFETY" };

const geminiEnd = ({ finish, refusal }: Said): Json => ({
  finishReason: finishReasons[finish],
  ...(refusal && { finishMessage: refusal }),
});

const geminiUsage = ({ input, cached, output, reasoning }: Said["usage"]): Json => ({
  promptTokenCount: input,
  cachedContentTokenCount: cached,
  candidatesTokenCount: output - reasoning,
  thoughtsTokenCount: reasoning,
  totalTokenCount: input + output,
});

const geminiCalls = ({ calls, state }: Said): Json[] =>
  calls.map(({ id, name, args }, c) => ({
    functionCall: { id, name, args },
    ...(c === 0 && { thoughtSignature: state }),
  }));

const of = { modelVersion: "providers-model", responseId: providersId };
const content = (parts: readonly Json[]): Json => ({ parts: parts.length > 0 ? parts : [{ text: "" }], role: "model" });

const gemini: Provider = {
  whole: (said) => ({
    ...of,
    candidates: [
      {
        index: 0,
        content: content([
          ...(said.reasoning ? [{ text: said.reasoning, thought: true }] : []),
          ...(said.text ? [{ text: said.text }] : []),
          ...geminiCalls(said),
        ]),
        ...geminiEnd(said),
      },
    ],
    usageMetadata: geminiUsage(said.usage),
  }),
  events(said, cut) {
    const { promptTokenCount } = geminiUsage(said.usage);
    const event = (parts: readonly Json[], end: Json = {}, usage: Json = { promptTokenCount }): Json => ({
      ...of,
      candidates: [{ index: 0, content: content(parts), ...end }],
      usageMetadata: usage,
    });
    return [
      ...cut(said.reasoning).map((text) => event([{ text, thought: true }])),
      ...cut(said.text).map((text) => event([{ text }])),
      ...geminiCalls(said).map((part) => event([part])),
      event([], geminiEnd(said), geminiUsage(said.usage)),
    ];
  },
};

export const providers: Readonly<Record<Format, Provider>> = { chat, messages, responses, gemini };
