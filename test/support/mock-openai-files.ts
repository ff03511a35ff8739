import { randomUUID } from "node:crypto";
import { pageOf } from "./mock-batches.ts";
import { mockError } from "./mock-openai.ts";
import type { MockRequest, Usual } from "./mock-provider.ts";

/** `/v1/files` of OpenAI's stand-in for batches. */

export interface MockFile {
  readonly id: string;
  readonly object: "file";
  readonly created_at: number;
  readonly expires_at?: number;
  readonly filename: string;
  readonly purpose: string;
  readonly status: "processed";
  readonly status_details: null;
  /** A test may replace it. */
  content: Buffer;
}

export interface MockFiles {
  /** All files that were not deleted, by their ids. A test may remove some. */
  readonly stored: Map<string, MockFile>;
  /** A file that did not expire. */
  find(id: unknown): MockFile | undefined;
  add(file: Pick<MockFile, "content" | "filename" | "purpose">, livesSeconds?: number): MockFile;
  answer(request: MockRequest, url: URL): Usual;
}

const purposes = ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"];
const fields = ["file", "purpose", "expires_after[anchor]", "expires_after[seconds]"];
const dayS = 86_400;

/** `seconds` is the time. */
export function createMockFiles(seconds: () => number): MockFiles {
  const stored = new Map<string, MockFile>();
  const find = (id: unknown) => {
    const file = stored.get(String(id));
    return file?.expires_at !== undefined && file.expires_at <= seconds() ? undefined : file;
  };
  const add: MockFiles["add"] = (file, livesSeconds) => {
    const created_at = seconds();
    const added: MockFile = {
      id: `file-${randomUUID().replaceAll("-", "")}`,
      object: "file",
      created_at,
      ...(livesSeconds !== undefined && { expires_at: created_at + livesSeconds }),
      ...file,
      status: "processed",
      status_details: null,
    };
    stored.set(added.id, added);
    return added;
  };

  function upload({ headers, form = [] }: MockRequest): Usual {
    if (!headers["content-type"]?.startsWith("multipart/form-data"))
      return mockError(415, "Unsupported Content-Type, expected 'multipart/form-data'.", {
        code: "unsupported_content_type",
      });
    const extra = form.find(({ name }) => !fields.includes(name))?.name;
    if (extra !== undefined) return unknownParameter(extra);
    const textOf = (field: string) => form.find(({ name }) => name === field)?.bytes.toString();
    const missing = ["file", "purpose"].find((field) => textOf(field) === undefined);
    if (missing) return missingParameter(missing);
    const purpose = textOf("purpose") ?? "";
    if (!purposes.includes(purpose)) return invalid("purpose", `'${purpose}' is not one of ${purposes.join(", ")}.`);
    const file = form.find(({ name }) => name === "file");
    if (!file?.filename) return invalid("file", "Expected a file with a name.");
    if (file.bytes.length === 0) return invalid("file", "File is empty.");
    if (purpose === "batch" && !file.filename.endsWith(".jsonl"))
      return invalid("file", "Invalid file format for Batch API. Must be .jsonl");
    const anchor = textOf("expires_after[anchor]");
    const lives = textOf("expires_after[seconds]");
    if (anchor !== undefined || lives !== undefined) {
      const refused = refusalOfExpiry({ anchor, seconds: Number(lives) }, "expires_after");
      if (refused) return refused;
    }
    const usualSeconds = purpose === "batch" ? 30 * dayS : undefined;
    const { filename, bytes: content } = file;
    return { body: rendered(add({ filename, purpose, content }, lives === undefined ? usualSeconds : Number(lives))) };
  }

  function list({ searchParams: query }: URL): Usual {
    const limit = limitOf(query, 10_000, 10_000);
    if (limit === undefined) return invalid("limit", "Expected an integer from 1 to 10000.");
    const purpose = query.get("purpose");
    const files = [...stored.values()]
      .filter(({ id }) => find(id))
      .filter((file) => !purpose || file.purpose === purpose);
    const ordered = query.get("order") === "asc" ? files : files.toReversed();
    return { body: { object: "list", ...pageOf(ordered.map(rendered), { after: query.get("after"), limit }) } };
  }

  return {
    stored,
    find,
    add,
    answer(request, url) {
      const [, id, content] = /^\/v1\/files(?:\/([^/]+)(\/content)?)?$/.exec(url.pathname) ?? [];
      const route = `${request.method} ${id === undefined ? "files" : content ? "content" : "file"}`;
      if (route === "POST files") return upload(request);
      if (route === "GET files") return list(url);
      const file = find(id);
      if (id !== undefined && !file) return mockError(404, `No such File object: ${id}`, { param: "id" });
      if (file && route === "GET file") return { body: rendered(file) };
      if (file && route === "GET content")
        return { headers: { "content-type": "application/octet-stream" }, body: file.content };
      if (file && route === "DELETE file") {
        stored.delete(file.id);
        return { body: { id: file.id, object: "file", deleted: true } };
      }
      return mockError(405, `Method not allowed: ${request.method} ${url.pathname}`);
    },
  };
}

const rendered = ({ content, ...file }: MockFile) => ({ ...file, bytes: content.length });

export const unknownParameter = (param: string): Usual =>
  mockError(400, `Unknown parameter: '${param}'.`, { param, code: "unknown_parameter" });

export const missingParameter = (param: string): Usual =>
  mockError(400, `Missing required parameter: '${param}'.`, { param, code: "missing_required_parameter" });

export const invalid = (param: string, message: string): Usual =>
  mockError(400, `Invalid '${param}': ${message}`, { param, code: "invalid_value" });

/** Undefined for a limit out of range. */
export function limitOf(query: URLSearchParams, usual: number, max: number): number | undefined {
  const limit = Number(query.get("limit") ?? usual);
  return Number.isInteger(limit) && limit >= 1 && limit <= max ? limit : undefined;
}

export function refusalOfExpiry({ anchor, seconds, ...more }: Readonly<Record<string, unknown>>, param: string) {
  if (anchor !== "created_at") return invalid(`${param}.anchor`, "Expected 'created_at'.");
  const isInRange = Number.isInteger(seconds) && Number(seconds) >= 3600 && Number(seconds) <= 30 * dayS;
  if (!isInRange) return invalid(`${param}.seconds`, "Expected an integer from 3600 to 2592000.");
  const extra = Object.keys(more)[0];
  return extra === undefined ? undefined : unknownParameter(`${param}.${extra}`);
}
