import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { type FormPart, fieldsOf, isMedia, mediaAnswer, partsOf } from "./mock-openai-media.ts";

/**
 * Stands where the OpenAI API would be: `POST /v1/chat/completions` (JSON and streams), `POST /v1/embeddings`, images,
 * speech, transcriptions and videos (mock-openai-media.ts), in the shapes of
 * https://platform.openai.com/docs/api-reference. Without a script it answers as OpenAI does; a test scripts
 * one answer a request with `respond`, or all further ones with `always`. Nothing sleeps: where an answer must wait, the
 * test gives the promise it waits for.
 */
export interface MockOpenai {
  /** The base address, with `/v1`. */
  readonly url: string;
  /** What was received, in order of arrival. */
  readonly requests: readonly MockRequest[];
  /** Requests whose answer has not ended. */
  inFlight(): number;
  /** Connections that were ever made. */
  connections(): number;
  /** Resolves with the request number `index` (from 0) as soon as its body is there. */
  request(index: number): Promise<MockRequest>;
  /** Answers for the next requests, one each. */
  respond(...answers: Answer[]): void;
  /** The answer when none was scripted for a request; without an argument the usual one again. */
  always(answer?: Answer): void;
  /** Forgets requests and scripts. */
  reset(): void;
  close(): Promise<void>;
}

export interface MockRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  /** Of a form: its text fields. */
  readonly body: Record<string, unknown>;
  /** The parts of a form, in their order. */
  readonly form?: readonly FormPart[];
  /** True when the client closed the connection before the answer had ended. */
  readonly aborted: boolean;
  /** Events of a stream that are out, as far as this side knows. */
  readonly eventsSent: number;
  /** Resolves when the answer has ended or the client has left. */
  readonly closed: Promise<void>;
}

export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of the usual answer: an object is sent as JSON, text and bytes as they are. */
  readonly body?: unknown;
  /** Instead of the usual chunks of a stream: an object is one event, text and bytes are written as they are. */
  readonly events?: readonly unknown[];
  /** What the usual answer says. A stream sends one chunk a word. */
  readonly text?: string;
  /** `false`: the usual answer without its usage. */
  readonly usage?: Readonly<Record<string, unknown>> | false;
  /** The end of a stream waits for it; `data: [DONE]` is out. */
  readonly beforeEnd?: Promise<unknown>;
  /** `false`: the stream ends without `data: [DONE]`. */
  readonly done?: false;
  /** Nothing is sent before this resolves. `new Promise(() => {})` is silence forever. */
  readonly beforeHeaders?: Promise<unknown>;
  /** The event of this number (from 0) waits for its promise; the headers and the events before it are out. */
  readonly beforeEvent?: Readonly<Record<number, Promise<unknown>>>;
  /** The connection is cut after so many events (of JSON: after half of the body); -1 cuts it before the headers. */
  readonly cutAfter?: number;
  /** Compresses the answer as a whole. */
  readonly encoding?: "gzip" | "br";
  /** Of a new video: what the looks at it tell, one each; the last one stays. Else it is done at the first look. */
  readonly states?: readonly string[];
  /** Of a new video: why it fails in the end. */
  readonly error?: unknown;
}

export const mockText = "Hello there, how may I help you today?";
const created = 1_700_000_000;
const id = "chatcmpl-mock";

/** Tokens of the mock: words, so that a test can count them by eye. */
const wordsOf = (text: string) => text.match(/\s*\S+/g) ?? [];
export const mockUsage = (text = mockText) => {
  const completion = wordsOf(text).length;
  return {
    prompt_tokens: 9,
    completion_tokens: completion,
    total_tokens: 9 + completion,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  };
};

/** An error in OpenAI's shape. */
export const mockError = (
  status: number,
  message: string,
  more: { type?: string; code?: string | null; param?: string | null; headers?: Record<string, string> } = {},
): Answer => ({
  status,
  headers: more.headers ?? {},
  body: {
    error: {
      message,
      type: more.type ?? (status < 500 ? "invalid_request_error" : "server_error"),
      param: more.param ?? null,
      code: more.code ?? null,
    },
  },
});

/** One `chat.completion.chunk`; the choice is left out for a chunk that carries the usage alone. */
export const mockChunk = (
  delta: object | undefined,
  finishReason: string | null = null,
  more: object = {},
): Record<string, unknown> => ({
  id,
  object: "chat.completion.chunk",
  created,
  model: "mock-model",
  system_fingerprint: "fp_mock",
  choices: delta === undefined ? [] : [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
  ...more,
});

export async function startMockOpenai(options: { port?: number; record?: boolean } = {}): Promise<MockOpenai> {
  let requests: Recorded[] = [];
  let script: Answer[] = [];
  let usual: Answer = {};
  let open = 0;
  const waiting = new Map<number, (request: MockRequest) => void>();
  const jobs: Parameters<typeof mediaAnswer>[2] = new Map();

  const server = createServer((incoming, outgoing) => {
    const parts: Buffer[] = [];
    incoming.on("data", (part: Buffer) => parts.push(part));
    incoming.on("end", () => {
      const request = receive(incoming, outgoing, parts);
      const answer = script.shift() ?? usual;
      if (options.record !== false) {
        requests.push(request);
        waiting.get(requests.length - 1)?.(request);
      }
      open++;
      outgoing.once("close", () => open--);
      reply(request, outgoing, answer, jobs).catch((error: unknown) => outgoing.destroy(error as Error));
    });
  });
  let connections = 0;
  server.on("connection", () => connections++);
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get requests() {
      return requests;
    },
    inFlight: () => open,
    connections: () => connections,
    request: (index) => {
      const there = requests[index];
      return there ? Promise.resolve(there) : new Promise((resolve) => waiting.set(index, resolve));
    },
    respond: (...answers) => {
      script.push(...answers);
    },
    always: (answer = {}) => {
      usual = answer;
    },
    reset: () => {
      requests = [];
      script = [];
      usual = {};
      waiting.clear();
      jobs.clear();
    },
    close: () => stop(server),
  };
}

interface Recorded extends MockRequest {
  aborted: boolean;
  eventsSent: number;
}

function receive(incoming: IncomingMessage, outgoing: ServerResponse, parts: Buffer[]): Recorded {
  const bytes = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  const type = incoming.headers["content-type"] ?? "";
  const form = type.startsWith("multipart/") ? partsOf(type, bytes) : undefined;
  const text = form ? "" : bytes.toString("utf8");
  const request: Recorded = {
    method: incoming.method ?? "",
    path: incoming.url ?? "",
    headers: incoming.headers,
    body: form ? fieldsOf(form) : text === "" ? {} : (JSON.parse(text) as Record<string, unknown>),
    ...(form && { form }),
    aborted: false,
    eventsSent: 0,
    closed: new Promise((resolve) =>
      outgoing.once("close", () => {
        request.aborted = !outgoing.writableFinished && !outgoing.errored;
        resolve();
      }),
    ),
  };
  return request;
}

async function reply(
  request: Recorded,
  outgoing: ServerResponse,
  scripted: Answer,
  jobs: Parameters<typeof mediaAnswer>[2],
): Promise<void> {
  if (scripted.beforeHeaders) await scripted.beforeHeaders;
  if (scripted.cutAfter === -1) return cut(outgoing);
  const plain = scripted.body === undefined && scripted.events === undefined;
  const refusal = plain ? refusalOf(request) : undefined;
  const answer = plain && !refusal && isMedia(request) ? usualMedia(request, scripted, jobs) : scripted;
  const streams = (request.body.stream === true && answer.body === undefined) || answer.events !== undefined;
  if (refusal || !streams) {
    const { status = 200, body, headers } = refusal ?? { ...answer, body: answer.body ?? jsonOf(request, answer) };
    return sendWhole(outgoing, status, headers, body, answer);
  }
  await sendStream(request, outgoing, answer, answer.events ?? eventsOf(request, answer));
}

function usualMedia(request: MockRequest, scripted: Answer, jobs: Parameters<typeof mediaAnswer>[2]): Answer {
  const usual = mediaAnswer(request, scripted, jobs);
  return { ...usual, ...scripted, headers: { ...usual.headers, ...scripted.headers } };
}

function refusalOf(request: MockRequest): Answer | undefined {
  const { method, path, headers, body } = request;
  if (!headers.authorization?.startsWith("Bearer ")) {
    return mockError(401, "You didn't provide an API key.", { type: "invalid_request_error" });
  }
  if (isMedia(request)) return undefined;
  if (method !== "POST" || !(path === "/v1/chat/completions" || path === "/v1/embeddings")) {
    return mockError(404, `Invalid URL (${method} ${path})`);
  }
  if (typeof body.model !== "string") return mockError(400, "you must provide a model parameter");
  if (body.stream_options !== undefined && body.stream !== true) {
    return mockError(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled.", {
      param: "stream_options",
    });
  }
  return undefined;
}

function jsonOf({ path, body }: MockRequest, { text = mockText, usage }: Answer): unknown {
  if (path === "/v1/embeddings") return embeddingsOf(body);
  return {
    id,
    object: "chat.completion",
    created,
    model: body.model,
    choices: Array.from({ length: choicesOf(body) }, (_, index) => ({
      index,
      message: { role: "assistant", content: text, refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: "stop",
    })),
    ...(usage !== false && { usage: usage ?? mockUsage(text) }),
    service_tier: "default",
    system_fingerprint: "fp_mock",
  };
}

const choicesOf = (body: MockRequest["body"]) => (typeof body.n === "number" ? body.n : 1);

/** Vectors of 8 numbers, or as many as `dimensions` asks for: text number i points along axis i. */
function embeddingsOf(body: MockRequest["body"]): unknown {
  const inputs = Array.isArray(body.input) ? body.input : [body.input];
  const dimensions = typeof body.dimensions === "number" ? body.dimensions : 8;
  const words = inputs.reduce((sum: number, input) => sum + wordsOf(String(input)).length, 0);
  const data = inputs.map((_, index) => {
    const vector = Array.from({ length: dimensions }, (_, at) => (at === index % dimensions ? 1 : 0));
    const embedding =
      body.encoding_format === "base64" ? Buffer.from(new Float32Array(vector).buffer).toString("base64") : vector;
    return { object: "embedding", index, embedding };
  });
  return { object: "list", data, model: body.model, usage: { prompt_tokens: words, total_tokens: words } };
}

function eventsOf({ body }: MockRequest, { text = mockText, usage }: Answer): unknown[] {
  const options = body.stream_options as { include_usage?: boolean } | undefined;
  const wantsUsage = options?.include_usage === true && usage !== false;
  const common = { model: body.model, ...(wantsUsage && { usage: null }) };
  const events: unknown[] = [];
  for (let index = 0; index < choicesOf(body); index++) {
    const add = (delta: object, finish: string | null = null) =>
      events.push(
        mockChunk(delta, finish, {
          ...common,
          choices: [{ index, delta, logprobs: null, finish_reason: finish }],
        }),
      );
    add({ role: "assistant", content: "", refusal: null });
    for (const word of wordsOf(text)) add({ content: word });
    add({}, "stop");
  }
  if (wantsUsage) events.push(mockChunk(undefined, null, { ...common, usage: usage ?? mockUsage(text) }));
  return events;
}

function sendWhole(
  outgoing: ServerResponse,
  status: number,
  headers: Answer["headers"],
  body: unknown,
  answer: Answer,
): void {
  const text = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const bytes = compress(Buffer.from(text), answer.encoding);
  outgoing.writeHead(status, {
    "content-type": "application/json",
    "content-length": bytes.length,
    "x-request-id": "req_mock",
    ...(answer.encoding && { "content-encoding": answer.encoding }),
    ...headers,
  });
  if (answer.cutAfter === undefined) return void outgoing.end(bytes);
  outgoing.write(bytes.subarray(0, bytes.length >> 1), () => cut(outgoing));
}

async function sendStream(
  request: Recorded,
  outgoing: ServerResponse,
  answer: Answer,
  events: readonly unknown[],
): Promise<void> {
  outgoing.writeHead(answer.status ?? 200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-request-id": "req_mock",
    ...(answer.encoding && { "content-encoding": answer.encoding }),
    ...answer.headers,
  });
  const frames = events.map(frameOf);
  if (answer.done !== false) frames.push(Buffer.from("data: [DONE]\n\n"));
  if (answer.encoding) return void outgoing.end(compress(Buffer.concat(frames), answer.encoding));
  outgoing.flushHeaders();
  for (const [index, frame] of frames.entries()) {
    const gate = answer.beforeEvent?.[index];
    if (gate) await gate;
    if (outgoing.destroyed) return;
    if (index === answer.cutAfter) return cut(outgoing);
    // The last bytes before a cut must be out before the connection goes.
    if (index + 1 === answer.cutAfter) await new Promise<void>((sent) => outgoing.write(frame, () => sent()));
    else if (!outgoing.write(frame)) await drained(outgoing);
    request.eventsSent++;
  }
  if (answer.beforeEnd) await answer.beforeEnd;
  outgoing.end();
}

const frameOf = (event: unknown): Buffer =>
  typeof event === "string" || Buffer.isBuffer(event)
    ? Buffer.from(event)
    : Buffer.from(`data: ${JSON.stringify(event)}\n\n`);

const drained = (outgoing: ServerResponse) =>
  new Promise<void>((resolve) => {
    const done = () => {
      outgoing.off("drain", done);
      outgoing.off("close", done);
      resolve();
    };
    outgoing.once("drain", done);
    outgoing.once("close", done);
  });

const compress = (bytes: Buffer, encoding: Answer["encoding"]) =>
  encoding === "gzip" ? gzipSync(bytes) : encoding === "br" ? brotliCompressSync(bytes) : bytes;

/** A connection that breaks: no end of the answer, a reset towards the client. */
function cut(outgoing: ServerResponse): void {
  outgoing.destroy(new Error("cut by the script"));
  outgoing.socket?.resetAndDestroy();
}

function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve, reject) => server.close((error) => (error ? reject(error) : resolve())));
}
