import { type Fields, isFields, lineRequest, unknownField } from "./mock-batches.ts";
import { type Answer, openaiAnswer } from "./mock-openai.ts";

/** The lines of OpenAI's batch files: their validation, and their results. */

export interface BatchLine {
  readonly custom_id: string;
  readonly url: string;
  readonly body: Fields;
}

export interface LineError {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly line: number | null;
}

export interface LineLimits {
  readonly maxLines: number;
  readonly maxBytes: number;
}

const maxEmbeddingInputs = 50_000;

/** The codes and messages are those that users report where there are any; no client may depend on them. */
export function checkLines(
  content: Buffer,
  endpoint: string,
  { maxLines, maxBytes }: LineLimits,
): { lines: BatchLine[]; errors: LineError[] } {
  const whole = (code: string, message: string) => ({
    lines: [],
    errors: [{ code, message, param: null, line: null }],
  });
  if (content.length > maxBytes) return whole("file_too_large", `The file is larger than ${maxBytes} bytes.`);
  const texts = content.toString("utf8").split("\n");
  if (texts.at(-1) === "") texts.pop();
  if (texts.length === 0) return whole("empty_file", "The input file is empty.");
  if (texts.length > maxLines) return whole("too_many_tasks", `The file has more than ${maxLines} lines.`);
  const lines: BatchLine[] = [];
  const errors: LineError[] = [];
  const seen = new Set<unknown>();
  for (const [index, text] of texts.entries()) {
    const line = parsed(text);
    const [code, message, param = null] = problemOf(line, endpoint, seen, lines[0]?.body["model"]) ?? [];
    if (code && message) errors.push({ code, message, param, line: index + 1 });
    else lines.push(line as unknown as BatchLine);
  }
  const inputs = lines.reduce((sum, { body: { input } }) => sum + (Array.isArray(input) ? input.length : 1), 0);
  if (endpoint === "/v1/embeddings" && inputs > maxEmbeddingInputs)
    return whole("too_many_embedding_inputs", `The file has more than ${maxEmbeddingInputs} inputs.`);
  return errors.length > 0 ? { lines: [], errors } : { lines, errors };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Problem = readonly [code: string, message: string, param?: string];

function problemOf(line: unknown, endpoint: string, seen: Set<unknown>, model: unknown): Problem | undefined {
  if (!isFields(line)) return ["invalid_json_line", "This line is not parseable as valid JSON."];
  const fields = ["custom_id", "method", "url", "body"];
  const missing = fields.find((field) => line[field] === undefined);
  if (missing) return ["missing_required_parameter", `Missing required parameter: '${missing}'.`, missing];
  const extra = unknownField(line, fields);
  if (extra) return ["unknown_parameter", `Unknown parameter: '${extra}'.`, extra];
  const { custom_id, method, url, body } = line;
  if (typeof custom_id !== "string" || custom_id === "") return ["invalid_value", "Expected a text.", "custom_id"];
  if (seen.has(custom_id))
    return ["duplicate_custom_id", `The custom_id '${custom_id}' for this request is a duplicate.`, "custom_id"];
  seen.add(custom_id);
  if (method !== "POST") return ["invalid_method", "The method must be POST.", "method"];
  if (url !== endpoint) return ["invalid_url", "The URL provided for this request does not match the batch.", "url"];
  if (!isFields(body)) return ["invalid_value", "Expected an object.", "body"];
  if (typeof body["model"] !== "string")
    return ["missing_required_parameter", "Missing required parameter: 'body.model'.", "body.model"];
  if (model !== undefined && body["model"] !== model)
    return ["mismatched_model", "The model of this request does not match those of the others.", "body.model"];
  return body["stream"] === true
    ? ["invalid_value", "Streaming is not supported in the Batch API.", "body.stream"]
    : undefined;
}

/**
 * The result of a line: an answer as in mock-openai.ts, `{}` being the usual one. A line that is `unfinished` when the
 * batch ends has the error of that end, one that `timed-out` has `request_timeout`, and one that is `missing` is in
 * neither file.
 */
export type LineOutcome = Answer | "unfinished" | "timed-out" | "missing";

export interface LineResult {
  readonly custom_id: string;
  readonly response: { readonly status_code: number; readonly request_id: string; readonly body: unknown } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** `ended` is the code of the error of unfinished lines. */
export function resultOf(
  { custom_id, url, body }: BatchLine,
  outcome: LineOutcome,
  ended: string,
): LineResult | undefined {
  if (outcome === "missing") return undefined;
  if (outcome === "unfinished")
    return { custom_id, response: null, error: { code: ended, message: messages[ended] ?? "" } };
  if (outcome === "timed-out")
    return { custom_id, response: null, error: { code: "request_timeout", message: "This request timed out." } };
  const isScripted = outcome.body !== undefined;
  const usual = isScripted ? outcome : openaiAnswer(lineRequest(url, body, { authorization: "Bearer line" }), outcome);
  const status_code = usual.status ?? outcome.status ?? 200;
  return { custom_id, response: { status_code, request_id: `req_${custom_id}`, body: usual.body }, error: null };
}

const messages: Readonly<Record<string, string>> = {
  batch_expired: "This request could not be executed before the completion window expired.",
  batch_cancelled: "This request was not executed because the batch was cancelled.",
};

export const isCompleted = ({ response }: LineResult): boolean => response !== null && response.status_code < 400;

const numberOf = (value: unknown, ...path: readonly string[]): number => {
  const found = path.reduce<unknown>((at, field) => (isFields(at) ? at[field] : undefined), value);
  return typeof found === "number" ? found : 0;
};

/** The usage of the batch is the sum of its completed lines. */
export function usageOf(results: readonly LineResult[]) {
  const usages = results.filter(isCompleted).map(({ response }) => (response?.body as Fields | undefined)?.["usage"]);
  const sum = (...paths: readonly (readonly string[])[]) =>
    usages.reduce<number>((total, usage) => total + paths.reduce((all, path) => all + numberOf(usage, ...path), 0), 0);
  const input_tokens = sum(["input_tokens"], ["prompt_tokens"]);
  const output_tokens = sum(["output_tokens"], ["completion_tokens"]);
  return {
    input_tokens,
    input_tokens_details: {
      cached_tokens: sum(["input_tokens_details", "cached_tokens"], ["prompt_tokens_details", "cached_tokens"]),
    },
    output_tokens,
    output_tokens_details: {
      reasoning_tokens: sum(
        ["output_tokens_details", "reasoning_tokens"],
        ["completion_tokens_details", "reasoning_tokens"],
      ),
    },
    total_tokens: input_tokens + output_tokens,
  };
}
