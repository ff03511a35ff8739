import { invalidValue, type ServiceError, toServiceError } from "#errors";
import { createJsonScan, type ParsedCall, parseRouted } from "#formats";
import { isTextPool, jobCatalog } from "#jobs";
import { isObject, type JsonObject } from "#json";
import type { BatchKind, LineProblem } from "./collections.ts";
import { batchEndpoint } from "./endpoints.ts";

/** The limit of a line, as of a request's body. */
export const maxLineBytes = 25 * 1024 * 1024;

/** A call of a batch. */
export interface ParsedLine {
  readonly customId: string;
  /** JSON of the body. */
  readonly text: string;
  readonly call: ParsedCall;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });
const fieldNames = ["custom_id", "method", "url", "body"];
const customIds: Readonly<Record<BatchKind, { readonly form: RegExp; readonly text: string }>> = {
  openai: { form: /^[^\0]{1,512}$/s, text: "a text of 1 to 512 characters without NUL" },
  anthropic: { form: /^[\w-]{1,64}$/, text: "a text of 1 to 64 letters, digits, - and _" },
};

/** A line that is no call. `code` is that of OpenAI's validation. */
export class LineRefused extends Error {
  override readonly name = "LineRefused";
  readonly problem: Omit<LineProblem, "line">;
  constructor(code: string, message: string, param: string | null = null) {
    super(message);
    this.problem = { code, message, param };
  }
}

function parseJson(content: Buffer, endpoint: string): unknown {
  const scan = createJsonScan(batchEndpoint(endpoint).limits);
  try {
    scan.push(content);
    return JSON.parse(utf8.decode(content));
  } catch (error) {
    if (error instanceof TypeError) throw new LineRefused("invalid_json_line", "The line is not UTF-8.");
    const { message, param } = toServiceError(error) as ServiceError;
    if (param !== undefined || !(error instanceof SyntaxError)) throw new LineRefused("invalid_json_line", message);
    throw new LineRefused("invalid_json_line", "The line is not JSON.");
  }
}

/** Fields that a call without a caller, or out of its time, cannot have. */
function withoutRefusedFields(endpoint: string, body: JsonObject): JsonObject {
  const refuse = (field: string, why: string) => {
    throw new LineRefused("invalid_value", `body.${field}: ${why}`, `body.${field}`);
  };
  if (body["stream"] === true) refuse("stream", "a call of a batch has no stream.");
  if (endpoint !== "/v1/responses") return body;
  if (body["background"] === true) refuse("background", "a call of a batch has no caller who waits.");
  if (body["previous_response_id"] != null) refuse("previous_response_id", "a call of a batch continues no response.");
  if (body["store"] === true) refuse("store", "responses of a batch are stored in its output only.");
  return { ...body, store: false };
}

/** Checks one line, without its model. Throws `LineRefused`. */
export function parseLine(
  { kind, endpoint }: { readonly kind: BatchKind; readonly endpoint: string },
  content: Buffer | undefined,
): ParsedLine {
  if (!content) throw new LineRefused("line_too_long", `The line has more than ${maxLineBytes} bytes.`);
  const line = parseJson(content, endpoint);
  if (!isObject(line)) throw new LineRefused("invalid_json_line", "The line is not a JSON object.");
  for (const name of fieldNames)
    if (line[name] === undefined) throw new LineRefused("missing_required_parameter", `${name} is missing.`, name);
  const unknown = Object.keys(line).find((name) => !fieldNames.includes(name));
  if (unknown !== undefined)
    throw new LineRefused("unknown_parameter", `${unknown} is not a field of a line.`, unknown);
  const { custom_id: customId, method, url, body: given } = line;
  const { form, text: described } = customIds[kind];
  // The store of lines would replace what is not Unicode.
  if (typeof customId !== "string" || !form.test(customId) || !customId.isWellFormed())
    throw new LineRefused("invalid_value", `custom_id must be ${described}.`, "custom_id");
  if (method !== "POST") throw new LineRefused("invalid_method", "method must be POST.", "method");
  if (url !== endpoint) throw new LineRefused("invalid_url", `url must be ${endpoint}, as in the batch.`, "url");
  if (!isObject(given)) throw new LineRefused("invalid_value", "body must be an object.", "body");
  const { codec, job } = batchEndpoint(endpoint);
  const value = withoutRefusedFields(endpoint, given);
  const text = JSON.stringify(value);
  try {
    const call = parseRouted(codec, value, Buffer.byteLength(text), isTextPool(jobCatalog[job].pool));
    if (call.buybackToken !== undefined) throw invalidValue("buyback_token", "buyback_token: omit this field.");
    return { customId, text, call };
  } catch (error) {
    const { code, message, param } = toServiceError(error);
    throw new LineRefused(code, message, param === undefined ? "body" : `body.${param}`);
  }
}
