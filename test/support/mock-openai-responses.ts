import { type Cut, callsFor, type MockTool, sampleOf, textsOf, wordsOf } from "./mock-model.ts";
import { doesReason, refusalOf } from "./mock-openai-responses-refusals.ts";
import type { MockRequest, Usual } from "./mock-provider.ts";

/** `POST /v1/responses` of the mock OpenAI server: https://platform.openai.com/docs/api-reference/responses. */

type Fields = Readonly<Record<string, unknown>>;

/** The parts of the usual response that a test may script. */
export interface ResponseScript {
  /** The response's id, instead of the usual one. */
  readonly id?: string;
  /** All items of the output, in place of the default ones. A stream sends each in parts. */
  readonly output?: readonly Fields[];
  /** The reason why the response breaks off early. */
  readonly incomplete?: "max_output_tokens" | "content_filter";
  /** The error of the response: a stream fails after its output, JSON with a status of 200. */
  readonly failed?: Fields;
}

/**
 * The response without a script: it thinks if the model reasons, calls the tools that are forced or named in the
 * prompt, fills the text's required schema, or says `usual`.
 */
export function responsesAnswer(
  { body }: MockRequest,
  { id, text, usage, output, incomplete, failed }: ResponseScript & { text?: string; usage?: Fields | false },
  usual: string,
): Usual {
  const refusal = refusalOf(body);
  if (refusal) return refusal;
  const items = (output ?? outputFor(body, text, usual)).map((item, index) => ({
    ...item,
    id: item["id"] ?? idOf(item, index),
  }));
  const status = failed ? "failed" : incomplete ? "incomplete" : "completed";
  const begun = { ...responseOf(body), ...(id !== undefined && { id }) };
  const response = {
    ...begun,
    status,
    error: failed ?? null,
    incomplete_details: incomplete ? { reason: incomplete } : null,
    output: items,
    usage: failed || usage === false ? null : (usage ?? usageOf(body, items)),
  };
  return body["stream"] === true ? { events: responseEvents(begun, response) } : { body: response };
}

/** The whole stream of a response. */
function responseEvents(begun: Fields, response: Fields, cut: Cut = wordsOf): readonly Fields[] {
  const events: Fields[] = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...(response["output"] as readonly Fields[]).flatMap((item, at) => itemEvents(item, at, cut)),
    { type: `response.${String(response["status"])}`, response },
  ];
  return events.map((event, sequence_number) => ({ ...event, sequence_number }));
}

const idOf = ({ type }: Fields, index: number) =>
  `${{ message: "msg", function_call: "fc", reasoning: "rs" }[String(type)] ?? "item"}_mock_${index}`;

const textPart = (text: string): Fields => ({ type: "output_text", text, annotations: [], logprobs: [] });

const responseOf = (body: Fields): Fields => ({
  id: "resp_mock",
  object: "response",
  created_at: 1_700_000_000,
  status: "in_progress",
  background: false,
  error: null,
  incomplete_details: null,
  instructions: body["instructions"] ?? null,
  max_output_tokens: body["max_output_tokens"] ?? null,
  metadata: body["metadata"] ?? {},
  model: body["model"],
  output: [],
  parallel_tool_calls: body["parallel_tool_calls"] ?? true,
  previous_response_id: null,
  reasoning: body["reasoning"] ?? { effort: null, summary: null },
  service_tier: "default",
  store: body["store"] ?? true,
  temperature: body["temperature"] ?? 1,
  text: body["text"] ?? { format: { type: "text" } },
  tool_choice: body["tool_choice"] ?? "auto",
  tools: body["tools"] ?? [],
  top_p: body["top_p"] ?? 1,
  truncation: "disabled",
  usage: null,
});

function outputFor(body: Fields, text: string | undefined, usual: string): readonly Fields[] {
  const { format } = (body["text"] ?? {}) as { format?: Fields };
  const said = format?.["type"] === "json_schema" ? JSON.stringify(sampleOf(format["schema"])) : usual;
  const calls = text === undefined ? toolCalls(body) : [];
  const message = { type: "message", role: "assistant", status: "completed", content: [textPart(text ?? said)] };
  return [...reasoningFor(body), ...(calls.length > 0 ? calls : [message])];
}

function reasoningFor({ model, reasoning, include }: Fields): readonly Fields[] {
  if (!doesReason(model) || (reasoning as Fields | undefined)?.["effort"] === "none") return [];
  const isStored = Array.isArray(include) && include.includes("reasoning.encrypted_content");
  const summary = [{ type: "summary_text", text: "Let me think about it." }];
  return [{ type: "reasoning", summary, ...(isStored && { encrypted_content: "ZW5jcnlwdGVk" }) }];
}

function toolCalls({ input, tools, tool_choice }: Fields): readonly Fields[] {
  const last: unknown = Array.isArray(input) ? input.at(-1) : input;
  if (tool_choice === "none" || (last as Fields)["type"] === "function_call_output") return [];
  const known = ((tools ?? []) as readonly Fields[])
    .filter(({ type }) => type === "function")
    .map(({ name, parameters }): MockTool => ({ name: String(name), schema: parameters }));
  const forced =
    tool_choice === "required" ? {} : typeof tool_choice === "object" ? (tool_choice as Fields) : undefined;
  return callsFor(known, textsOf(last).join(" "), forced).map(({ name, input }, index) => ({
    type: "function_call",
    status: "completed",
    call_id: `call_mock_${index}`,
    name,
    arguments: JSON.stringify(input),
  }));
}

const usageOf = (body: Fields, items: readonly Fields[]): Fields => {
  const input = wordsOf(textsOf([body["instructions"], body["input"]]).join(" ")).length;
  const reasoning = wordsOf(textsOf(items.map(({ summary }) => summary)).join(" ")).length;
  const output = reasoning + items.reduce((sum, item) => sum + wordsOf(saidBy(item)).length, 0);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
};

const saidBy = ({ content, arguments: args }: Fields): string =>
  typeof args === "string" ? args : textsOf(content).join(" ");

/** The events of one item, from its beginning to its end. */
function itemEvents(item: Fields, output_index: number, cut: Cut): Fields[] {
  const at = { item_id: item["id"], output_index };
  const begun = { ...item, ...emptied(item) };
  return [
    { type: "response.output_item.added", output_index, item: begun },
    ...contentEvents(item, at, cut),
    { type: "response.output_item.done", output_index, item },
  ];
}

function emptied({ type }: Fields): Fields {
  if (type === "message") return { status: "in_progress", content: [] };
  if (type === "function_call") return { status: "in_progress", arguments: "" };
  return type === "reasoning" ? { summary: [] } : {};
}

function contentEvents(item: Fields, at: Fields, cut: Cut): readonly Fields[] {
  switch (item["type"]) {
    case "message":
      return (item["content"] as readonly Fields[]).flatMap((part, content_index) =>
        partEvents(part, { ...at, content_index }, cut),
      );
    case "function_call": {
      const args = String(item["arguments"]);
      const type = "response.function_call_arguments";
      return [
        ...deltas(`${type}.delta`, cut(args), at),
        { type: `${type}.done`, ...at, name: item["name"], arguments: args },
      ];
    }
    case "reasoning":
      return (item["summary"] as readonly Fields[]).flatMap((part, summary_index) =>
        summaryEvents(part, { ...at, summary_index }, cut),
      );
    default:
      return [];
  }
}

function partEvents(part: Fields, at: Fields, cut: Cut): readonly Fields[] {
  const field = part["type"] === "refusal" ? "refusal" : "text";
  const type = field === "refusal" ? "response.refusal" : "response.output_text";
  const logprobs = field === "text" ? { logprobs: [] } : {};
  const text = String(part[field]);
  return [
    { type: "response.content_part.added", ...at, part: { ...part, [field]: "" } },
    ...deltas(`${type}.delta`, cut(text), { ...at, ...logprobs }),
    { type: `${type}.done`, ...at, ...logprobs, [field]: text },
    { type: "response.content_part.done", ...at, part },
  ];
}

function summaryEvents(part: Fields, at: Fields, cut: Cut): readonly Fields[] {
  const type = "response.reasoning_summary";
  const text = String(part["text"]);
  return [
    { type: `${type}_part.added`, ...at, part: { ...part, text: "" } },
    ...deltas(`${type}_text.delta`, cut(text), at),
    { type: `${type}_text.done`, ...at, text },
    { type: `${type}_part.done`, ...at, part },
  ];
}

const deltas = (type: string, pieces: readonly string[], at: Fields): readonly Fields[] =>
  pieces.map((delta) => ({ type, ...at, delta }));
