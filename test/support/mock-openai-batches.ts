import { randomUUID } from "node:crypto";
import { type Fields, isFields, jsonLines, pageOf, shuffled, unknownField } from "./mock-batches.ts";
import { type MockOpenai, mockError, startMockOpenai } from "./mock-openai.ts";
import {
  type BatchLine,
  checkLines,
  isCompleted,
  type LineError,
  type LineLimits,
  type LineOutcome,
  resultOf,
  usageOf,
} from "./mock-openai-batch-lines.ts";
import {
  createMockFiles,
  invalid,
  limitOf,
  type MockFiles,
  missingParameter,
  refusalOfExpiry,
  unknownParameter,
} from "./mock-openai-files.ts";
import type { MockOptions, MockRequest, Usual } from "./mock-provider.ts";

/**
 * The mock of OpenAI's API with `/v1/files` and `/v1/batches`, in the shapes of
 * https://platform.openai.com/docs/api-reference/batch. A batch moves only when the test says so:
 *
 *     const mock = await startMockOpenaiBatches();
 *     // The client uploads a file and creates a batch.
 *     const [batch] = mock.batches.all();
 *     mock.batches.complete(batch.id, { b: mockError(400, "No."), c: { text: "Yes." } });
 *
 * `mock.respondTo("POST /v1/batches", { lost: true })` creates a batch whose id no client learns;
 * `mock.respondTo(route, mockError(429, "Slow down.", { headers }))` refuses the next request of a route.
 */
export type MockOpenaiBatches = MockOpenai & { readonly files: MockFiles; readonly batches: OpenaiBatchControls };

/** Outcomes by custom_id. In a complete batch the lines that are not named are answered, in others they are unfinished. */
type Outcomes = Readonly<Record<string, LineOutcome>>;

/** All of these throw if the batch is in a state that does not lead there. */
export interface OpenaiBatchControls {
  /** All batches in the order of their creation. */
  all(): readonly MockBatch[];
  get(id: string): MockBatch;
  /** The requests of a batch that was validated. */
  lines(id: string): readonly BatchLine[];
  /** Validates: `in_progress`, or `failed` with the errors of the lines. */
  start(id: string): MockBatch;
  finalize(id: string): MockBatch;
  /** Ends the batch, after its validation if it was not validated; an invalid batch fails. */
  complete(id: string, outcomes?: Outcomes): MockBatch;
  expire(id: string, outcomes?: Outcomes): MockBatch;
  /** Ends a batch that a client cancelled. */
  finishCancel(id: string, outcomes?: Outcomes): MockBatch;
  /** Fails in validation. */
  fail(id: string, errors: readonly LineError[]): MockBatch;
}

type Status =
  | "validating"
  | "failed"
  | "in_progress"
  | "finalizing"
  | "completed"
  | "expired"
  | "cancelling"
  | "cancelled";

type Times = {
  [status in Exclude<Status, "validating"> as `${status}_at`]: number | null;
};

export interface MockBatch extends Times {
  readonly id: string;
  readonly object: "batch";
  readonly endpoint: string;
  model: string | null;
  errors: { readonly object: "list"; readonly data: readonly LineError[] } | null;
  readonly input_file_id: string;
  readonly completion_window: "24h";
  status: Status;
  output_file_id: string | null;
  error_file_id: string | null;
  readonly created_at: number;
  readonly expires_at: number;
  request_counts: { total: number; completed: number; failed: number };
  usage: ReturnType<typeof usageOf>;
  readonly metadata: unknown;
}

interface Options extends MockOptions, Partial<LineLimits> {
  /** The only valid API key. */
  readonly key?: string;
  /** The time in milliseconds. */
  readonly now?: () => number;
}

const endpoints = [
  "/v1/responses",
  "/v1/chat/completions",
  "/v1/embeddings",
  "/v1/completions",
  "/v1/moderations",
  "/v1/images/generations",
  "/v1/images/edits",
  "/v1/videos",
];
const terminal: readonly Status[] = ["failed", "completed", "expired", "cancelled"];

export async function startMockOpenaiBatches({
  key = "sk-batches",
  now = Date.now,
  maxLines = 50_000,
  maxBytes = 200_000_000,
  ...options
}: Options = {}): Promise<MockOpenaiBatches> {
  const seconds = () => Math.floor(now() / 1000);
  const files = createMockFiles(seconds);
  const batches = new Map<string, MockBatch>();
  const lines = new Map<string, readonly BatchLine[]>();
  const outputSeconds = new Map<string, number>();

  function create({ headers, body }: MockRequest): Usual {
    const refused = refusalOfNew(headers["content-type"], body);
    if (refused) return refused;
    const file = files.find(body["input_file_id"]);
    if (!file)
      return mockError(404, `No such File object: ${String(body["input_file_id"])}`, { param: "input_file_id" });
    if (file.purpose !== "batch")
      return invalid("input_file_id", `Expected a file with the purpose 'batch', not '${file.purpose}'.`);
    const created_at = seconds();
    const batch: MockBatch = {
      id: `batch_${randomUUID().replaceAll("-", "")}`,
      object: "batch",
      endpoint: String(body["endpoint"]),
      model: null,
      errors: null,
      input_file_id: file.id,
      completion_window: "24h",
      status: "validating",
      output_file_id: null,
      error_file_id: null,
      created_at,
      in_progress_at: null,
      expires_at: created_at + 86_400,
      finalizing_at: null,
      completed_at: null,
      failed_at: null,
      expired_at: null,
      cancelling_at: null,
      cancelled_at: null,
      request_counts: { total: 0, completed: 0, failed: 0 },
      usage: usageOf([]),
      metadata: body["metadata"] ?? null,
    };
    batches.set(batch.id, batch);
    const expiry = body["output_expires_after"] as { seconds: number } | undefined;
    if (expiry) outputSeconds.set(batch.id, expiry.seconds);
    return { body: batch };
  }

  function list({ searchParams: query }: URL): Usual {
    const limit = limitOf(query, 20, 100);
    if (limit === undefined) return invalid("limit", "Expected an integer from 1 to 100.");
    const after = query.get("after");
    if (after !== null && !batches.has(after)) return notFound(after);
    return { body: { object: "list", ...pageOf([...batches.values()].toReversed(), { after, limit }) } };
  }

  function cancel(batch: MockBatch): Usual {
    if (terminal.includes(batch.status)) return mockError(409, `Cannot cancel a batch with status '${batch.status}'.`);
    if (batch.status !== "cancelling") move(batch, "cancelling");
    return { body: batch };
  }

  function answer(request: MockRequest): Usual | undefined {
    const url = new URL(request.path, "http://mock");
    if (request.headers.authorization?.startsWith("Bearer ") && request.headers.authorization !== `Bearer ${key}`)
      return mockError(401, "Incorrect API key provided.", { code: "invalid_api_key" });
    if (!/^\/v1\/(?:files|batches)(?:\/|$)/.test(url.pathname) || !request.headers.authorization) return undefined;
    if (url.pathname.startsWith("/v1/files")) return files.answer(request, url);
    const [, id, cancels] = /^\/v1\/batches(?:\/([^/]+)(\/cancel)?)?$/.exec(url.pathname) ?? [];
    const route = `${request.method} ${id === undefined ? "batches" : cancels ? "cancel" : "batch"}`;
    if (route === "POST batches") return create(request);
    if (route === "GET batches") return list(url);
    const batch = batches.get(id ?? "");
    if (!batch) return notFound(id ?? "");
    if (route === "GET batch") return { body: batch };
    return route === "POST cancel" ? cancel(batch) : mockError(405, `Method not allowed: ${request.method}`);
  }

  const move = (batch: MockBatch, status: Exclude<Status, "validating">) => {
    batch.status = status;
    batch[`${status}_at`] = seconds();
    return batch;
  };

  function get(id: string, ...expected: readonly Status[]): MockBatch {
    const batch = batches.get(id);
    if (!batch) throw new Error(`no batch ${id}`);
    if (expected.length > 0 && !expected.includes(batch.status)) throw new Error(`the batch is ${batch.status}`);
    return batch;
  }

  function fail(id: string, data: readonly LineError[]): MockBatch {
    const batch = get(id, "validating", "cancelling");
    batch.errors = { object: "list", data };
    return move(batch, "failed");
  }

  /** Reads the input file, which a client may then delete; false if it is invalid. */
  function validate(batch: MockBatch): boolean {
    const content = files.find(batch.input_file_id)?.content ?? Buffer.alloc(0);
    const checked = checkLines(content, batch.endpoint, { maxLines, maxBytes });
    if (checked.errors.length > 0) {
      fail(batch.id, checked.errors);
      return false;
    }
    lines.set(batch.id, checked.lines);
    batch.model = String(checked.lines[0]?.body["model"]);
    batch.request_counts.total = checked.lines.length;
    return true;
  }

  function start(id: string): MockBatch {
    const batch = get(id, "validating");
    return validate(batch) ? move(batch, "in_progress") : batch;
  }

  /** Writes the results, and moves to the last state. */
  function end(batch: MockBatch, status: "completed" | "expired" | "cancelled", outcomes: Outcomes): MockBatch {
    const asked = lines.get(batch.id);
    // A client cancelled it before its validation.
    if (!asked) return validate(batch) ? end(batch, status, outcomes) : batch;
    const unknown = unknownField(
      outcomes,
      asked.map(({ custom_id }) => custom_id),
    );
    if (unknown !== undefined) throw new Error(`no line ${unknown}`);
    const usual = status === "completed" ? {} : "unfinished";
    const results = asked.flatMap((line) => resultOf(line, outcomes[line.custom_id] ?? usual, `batch_${status}`) ?? []);
    const [done, failed] = [results.filter(isCompleted), results.filter((result) => !isCompleted(result))];
    const write = (kept: typeof results, name: string) => {
      if (kept.length === 0) return null;
      const rows = shuffled(kept).map((row) => ({ id: `batch_req_${randomUUID().replaceAll("-", "")}`, ...row }));
      const content = Buffer.from(jsonLines(rows));
      return files.add(
        { content, filename: `${batch.id}_${name}.jsonl`, purpose: "batch_output" },
        outputSeconds.get(batch.id),
      ).id;
    };
    batch.output_file_id = write(done, "output");
    batch.error_file_id = write(failed, "error");
    // No public source says whether unfinished lines count as failed; here they do not.
    const counted = failed.filter(({ error }) => !error?.code.startsWith("batch_"));
    batch.request_counts = { total: asked.length, completed: done.length, failed: counted.length };
    batch.usage = usageOf(results);
    if (status !== "cancelled" && batch.finalizing_at === null) move(batch, "finalizing");
    return move(batch, status);
  }

  const controls: OpenaiBatchControls = {
    all: () => [...batches.values()],
    get: (id) => get(id),
    lines: (id) => lines.get(id) ?? [],
    start,
    finalize: (id) => move(get(id, "in_progress"), "finalizing"),
    complete(id, outcomes = {}) {
      const batch = get(id, "validating", "in_progress", "finalizing");
      if (batch.status === "validating") start(id);
      return batch.status === "failed" ? batch : end(batch, "completed", outcomes);
    },
    expire: (id, outcomes = {}) => end(get(id, "in_progress", "finalizing"), "expired", outcomes),
    finishCancel: (id, outcomes = {}) => end(get(id, "cancelling"), "cancelled", outcomes),
    fail,
  };
  const reset = () => {
    files.stored.clear();
    batches.clear();
    lines.clear();
    outputSeconds.clear();
  };
  const mock = await startMockOpenai({ ...options, routes: { answer, reset } });
  return Object.assign(mock, { files, batches: controls });
}

const notFound = (id: string): Usual => mockError(404, `No batch found with id '${id}'.`);

function refusalOfNew(contentType: string | undefined, body: Fields): Usual | undefined {
  if (!contentType?.startsWith("application/json"))
    return mockError(415, "Unsupported Content-Type, expected 'application/json'.", {
      code: "unsupported_content_type",
    });
  const required = ["input_file_id", "endpoint", "completion_window"];
  const missing = required.find((field) => body[field] === undefined);
  if (missing) return missingParameter(missing);
  const extra = unknownField(body, [...required, "metadata", "output_expires_after"]);
  if (extra) return unknownParameter(extra);
  const { endpoint, completion_window, metadata, output_expires_after: expiry } = body;
  if (!endpoints.includes(String(endpoint))) return invalid("endpoint", `Expected one of ${endpoints.join(", ")}.`);
  if (completion_window !== "24h") return invalid("completion_window", "Expected '24h'.");
  if (metadata != null && !isMetadata(metadata))
    return invalid("metadata", "Expected at most 16 texts of 512 characters, with names of 64.");
  if (expiry === undefined) return undefined;
  return isFields(expiry)
    ? refusalOfExpiry(expiry, "output_expires_after")
    : invalid("output_expires_after", "Expected an object.");
}

const isMetadata = (value: unknown): boolean =>
  isFields(value) &&
  Object.keys(value).length <= 16 &&
  Object.entries(value).every(([name, text]) => name.length <= 64 && typeof text === "string" && text.length <= 512);
