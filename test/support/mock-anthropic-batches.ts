import { randomUUID } from "node:crypto";
import {
  type Answer,
  anthropicAnswer,
  type MockAnthropic,
  mockAnthropicError,
  startMockAnthropic,
} from "./mock-anthropic.ts";
import { type Fields, isFields, jsonLines, lineRequest, pageOf, shuffled, unknownField } from "./mock-batches.ts";
import type { MockOptions, MockRequest, Usual } from "./mock-provider.ts";

/**
 * The mock of Anthropic's API with `/v1/messages/batches`, in the shapes of
 * https://platform.claude.com/docs/en/api/messages/batches. A batch ends only when the test says so:
 *
 *     const mock = await startMockAnthropicBatches();
 *     // The client creates a batch.
 *     const [batch] = mock.batches.all();
 *     mock.batches.end(batch.id, { b: mockAnthropicError(529, "Overloaded"), c: "expired" });
 *
 * `respondTo` refuses or loses the next request of a route, as in mock-openai-batches.ts.
 */
export type MockAnthropicBatches = MockAnthropic & { readonly batches: AnthropicBatchControls };

/**
 * The result of a request: an answer as in mock-anthropic.ts, `{}` being the usual one. A request that is `missing` is
 * in no result.
 */
type Outcome = Answer | "canceled" | "expired" | "missing";

export interface AnthropicBatchControls {
  /** All batches in the order of their creation. */
  all(): readonly MockMessageBatch[];
  get(id: string): MockMessageBatch;
  /**
   * Ends a batch, with outcomes by custom_id. The requests that are not named succeed, or are canceled if a client
   * canceled the batch. Throws if it has ended.
   */
  end(id: string, outcomes?: Readonly<Record<string, Outcome>>): MockMessageBatch;
  /** Ends a batch at the end of its 24 hours: the requests that are not named are expired. */
  expire(id: string, outcomes?: Readonly<Record<string, Outcome>>): MockMessageBatch;
  /** The requests of a batch. */
  requests(id: string): readonly BatchRequest[];
  /** The lines of the results, which a test may replace. */
  readonly results: Map<string, string>;
}

const resultTypes = ["succeeded", "errored", "canceled", "expired"] as const;

export interface MockMessageBatch {
  readonly id: string;
  readonly type: "message_batch";
  processing_status: "in_progress" | "canceling" | "ended";
  request_counts: Record<"processing" | (typeof resultTypes)[number], number>;
  readonly created_at: string;
  readonly expires_at: string;
  ended_at: string | null;
  cancel_initiated_at: string | null;
  archived_at: string | null;
  /** A test may replace it by an address elsewhere. */
  results_url: string | null;
}

export interface BatchRequest {
  readonly custom_id: string;
  readonly params: Fields;
}

interface Options extends MockOptions {
  /** The only valid API key, in `x-api-key` or, as the official client sends it, as a bearer token. */
  readonly key?: string;
  /** The time in milliseconds. */
  readonly now?: () => number;
  readonly maxRequests?: number;
  readonly maxBytes?: number;
}

export async function startMockAnthropicBatches({
  key = "sk-ant-batches",
  now = Date.now,
  maxRequests = 100_000,
  maxBytes = 256_000_000,
  ...options
}: Options = {}): Promise<MockAnthropicBatches> {
  const batches = new Map<string, MockMessageBatch>();
  const requests = new Map<string, readonly BatchRequest[]>();
  const results = new Map<string, string>();
  const headersOfLine = { "x-api-key": key, "anthropic-version": "2023-06-01" };
  const time = (after = 0) => new Date(now() + after).toISOString();

  function create({ headers, body, bytes }: MockRequest): Usual {
    if (!headers["content-type"]?.startsWith("application/json"))
      return mockAnthropicError(400, "content-type: must be application/json");
    if (bytes.length > maxBytes) return mockAnthropicError(413, "Request exceeds the maximum size");
    const problem = problemOf(body, maxRequests);
    if (problem) return mockAnthropicError(400, problem);
    const asked = body["requests"] as readonly BatchRequest[];
    const batch: MockMessageBatch = {
      id: `msgbatch_${randomUUID().replaceAll("-", "")}`,
      type: "message_batch",
      processing_status: "in_progress",
      request_counts: { processing: asked.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
      created_at: time(),
      expires_at: time(86_400_000),
      ended_at: null,
      cancel_initiated_at: null,
      archived_at: null,
      results_url: null,
    };
    batches.set(batch.id, batch);
    requests.set(batch.id, asked);
    return { body: batch };
  }

  function list({ searchParams: query }: URL): Usual {
    const limit = Number(query.get("limit") ?? 20);
    if (!Number.isInteger(limit) || limit < 1 || limit > 1000)
      return mockAnthropicError(400, "limit: Input should be from 1 to 1000");
    const [after, before] = [query.get("after_id"), query.get("before_id")];
    if (after !== null && before !== null)
      return mockAnthropicError(400, "Only one of `before_id` and `after_id` may be given");
    const unknown = [after, before].find((id) => id !== null && !batches.has(id));
    if (unknown) return mockAnthropicError(404, `${unknown} not found`);
    return { body: pageOf([...batches.values()].toReversed(), { after, before, limit }) };
  }

  function onBatch(route: string, batch: MockMessageBatch): Usual {
    const hasEnded = batch.processing_status === "ended";
    switch (route) {
      case "GET ":
        return { body: batch };
      case "POST /cancel":
        if (hasEnded) return mockAnthropicError(400, `Batch ${batch.id} cannot be canceled because it has ended.`);
        batch.processing_status = "canceling";
        batch.cancel_initiated_at ??= time();
        return { body: batch };
      case "DELETE ":
        if (!hasEnded) return mockAnthropicError(400, `Batch ${batch.id} cannot be deleted while it is processing.`);
        for (const map of [batches, requests, results]) map.delete(batch.id);
        return { body: { id: batch.id, type: "message_batch_deleted" } };
      case "GET /results": {
        const lines = results.get(batch.id);
        if (lines === undefined) return mockAnthropicError(404, `Batch ${batch.id} has no available results.`);
        return { headers: { "content-type": "application/x-jsonl" }, body: lines };
      }
      default:
        return mockAnthropicError(405, "Method Not Allowed");
    }
  }

  function answer(request: MockRequest): Usual | undefined {
    const { method, path, headers } = request;
    const given = headers["x-api-key"] ?? headers.authorization?.replace(/^Bearer /, "");
    if (given !== undefined && given !== key) return mockAnthropicError(401, "invalid x-api-key");
    const url = new URL(path, "http://mock");
    const [found, id, of = ""] =
      /^\/v1\/messages\/batches(?:\/([^/]+)(\/cancel|\/results)?)?$/.exec(url.pathname) ?? [];
    if (found === undefined) return undefined;
    if (given === undefined) return mockAnthropicError(401, "x-api-key header is required");
    if (headers["anthropic-version"] === undefined)
      return mockAnthropicError(400, "anthropic-version: header is required");
    if (id === undefined && method === "POST") return create(request);
    if (id === undefined && method === "GET") return list(url);
    const batch = batches.get(id ?? "");
    return batch ? onBatch(`${method} ${of}`, batch) : mockAnthropicError(404, `${id} not found`);
  }

  function resultFor({ params }: BatchRequest, outcome: Exclude<Outcome, "missing">) {
    if (typeof outcome === "string") return { type: outcome };
    const usual =
      outcome.body === undefined
        ? anthropicAnswer(lineRequest("/v1/messages", params, headersOfLine), outcome)
        : outcome;
    const isError = (usual.status ?? outcome.status ?? 200) >= 400;
    return isError
      ? { type: "errored" as const, error: usual.body }
      : { type: "succeeded" as const, message: usual.body };
  }

  function get(id: string): MockMessageBatch {
    const batch = batches.get(id);
    if (!batch) throw new Error(`no batch ${id}`);
    return batch;
  }

  function end(id: string, outcomes: Readonly<Record<string, Outcome>>, others: Outcome): MockMessageBatch {
    const batch = get(id);
    if (batch.processing_status === "ended") throw new Error("the batch has ended");
    const asked = requests.get(id) ?? [];
    const unknown = unknownField(
      outcomes,
      asked.map(({ custom_id }) => custom_id),
    );
    if (unknown !== undefined) throw new Error(`no request ${unknown}`);
    const lines = asked.flatMap((request) => {
      const outcome = outcomes[request.custom_id] ?? others;
      return outcome === "missing" ? [] : [{ custom_id: request.custom_id, result: resultFor(request, outcome) }];
    });
    const count = (type: string) => lines.filter(({ result }) => result.type === type).length;
    const counts = Object.fromEntries(resultTypes.map((type) => [type, count(type)]));
    batch.request_counts = { ...batch.request_counts, processing: 0, ...counts };
    batch.processing_status = "ended";
    batch.ended_at = time();
    batch.results_url = `${mock.url}/v1/messages/batches/${id}/results`;
    results.set(id, jsonLines(shuffled(lines)));
    return batch;
  }

  const reset = () => {
    for (const map of [batches, requests, results]) map.clear();
  };
  const mock = await startMockAnthropic({ ...options, routes: { answer, reset } });
  return Object.assign(mock, {
    batches: {
      all: () => [...batches.values()],
      get,
      end: (id: string, outcomes = {}) => end(id, outcomes, get(id).cancel_initiated_at === null ? {} : "canceled"),
      expire: (id: string, outcomes = {}) => end(id, outcomes, "expired"),
      requests: (id: string) => requests.get(id) ?? [],
      results,
    } satisfies AnthropicBatchControls,
  });
}

/** Messages in the words of the server's validation where users report it: https://github.com/anthropics/anthropic-sdk-python/issues/984 */
function problemOf(body: Fields, maxRequests: number): string | undefined {
  const extra = unknownField(body, ["requests"]);
  if (extra) return `${extra}: Extra inputs are not permitted`;
  const { requests } = body;
  if (!Array.isArray(requests)) return "requests: Field required";
  if (requests.length === 0) return "requests: List should have at least 1 item";
  if (requests.length > maxRequests) return `requests: List should have at most ${maxRequests} items`;
  const seen = new Set<unknown>();
  for (const [index, request] of requests.entries()) {
    const problem = problemOfRequest(request, seen);
    if (problem) return `requests.${index}${problem}`;
  }
  return undefined;
}

/** Other problems of the params are found when the request runs, and are in its result. */
function problemOfRequest(request: unknown, seen: Set<unknown>): string | undefined {
  if (!isFields(request)) return ": Input should be an object";
  const extra = unknownField(request, ["custom_id", "params"]);
  if (extra) return `.${extra}: Extra inputs are not permitted`;
  const { custom_id, params } = request;
  if (typeof custom_id !== "string") return ".custom_id: Field required";
  if (custom_id.length > 64) return ".custom_id: String should have at most 64 characters";
  if (!/^[a-zA-Z0-9_-]+$/.test(custom_id)) return ".custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'";
  if (seen.has(custom_id)) return ".custom_id: must be unique";
  seen.add(custom_id);
  if (!isFields(params)) return ".params: Field required";
  if (params["stream"] === true) return ".params.stream: Streaming is not supported in batches";
  const { max_tokens } = params;
  const isCap = typeof max_tokens === "number" && Number.isInteger(max_tokens) && max_tokens >= 1;
  return isCap ? undefined : ".params.max_tokens: Input should be greater than or equal to 1";
}
