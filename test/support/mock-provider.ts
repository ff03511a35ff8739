import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { type FormPart, fieldsOf, partsOf } from "./form-parts.ts";

/**
 * The base of every mock provider: an HTTP server that records requests, and responds as the test scripted or else as
 * the provider would. Nothing sleeps: where a response must wait, the test passes the promise that it waits for.
 *
 * Each provider has a file with its default responses and the encoding of its stream events:
 *
 *     export interface Answer extends ProviderAnswer { readonly text?: string }
 *     export const startMockAcme = (options?: MockOptions) =>
 *       startMockProvider<Answer>({ path: "/v1", frame: (event) => `data: ${JSON.stringify(event)}\n\n`, usual }, options);
 *     function usual({ method, path, headers, body }: MockRequest, { text = "Hi" }: Answer): Usual {
 *       if (headers["x-key"] === undefined) return { status: 401, body: { detail: "no key" } };
 *       return body["stream"] ? { events: [{ text }, { end: true }] } : { body: { text } };
 *     }
 *
 * `usual` returns a file as `events` of bytes and a `content-type` header. Jobs that last over several requests are in
 * a map that `usual` closes over and `reset` empties. A test scripts responses, `mock.respond({ status: 500 }, { cutAfter: 2 })`,
 * makes its calls, reads `mock.requests`, and calls `close()` at the end.
 */
export interface MockProvider<Answer extends ProviderAnswer = ProviderAnswer> {
  /** The base address, with the version's path if the provider has one. */
  readonly url: string;
  /** All that was received, in order of arrival. */
  readonly requests: readonly MockRequest[];
  /** The number of requests whose response has not ended. */
  inFlight(): number;
  /** The number of connections since the start. */
  connections(): number;
  /** Resolves with the request number `index` (from 0) as soon as its body has arrived. */
  request(index: number): Promise<MockRequest>;
  /** Scripts the responses of the next requests, one each. */
  respond(...answers: Answer[]): void;
  /** The same for the next requests of one route, such as `POST /v1/batches`. Other requests between them are unaffected. */
  respondTo(route: string, ...answers: Answer[]): void;
  /** The answer when none was scripted for a request, or what makes it; without an argument the usual one again. */
  always(answer?: Usually<Answer>): void;
  /** Forgets requests and scripts. */
  reset(): void;
  close(): Promise<void>;
}

/** An answer for any request, or what makes it. */
type Usually<Answer> = Answer | ((request: MockRequest) => Answer | Promise<Answer>);

export interface MockRequest {
  readonly method: string;
  /** The path with its query. */
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  /** The parsed JSON, or a form's text fields; otherwise empty. */
  readonly body: Record<string, unknown>;
  /** The parts of a form, in their order. */
  readonly form?: readonly FormPart[];
  /** The body as it came. */
  readonly bytes: Buffer;
  /** True when the client closed the connection before the answer had ended. */
  readonly aborted: boolean;
  /** The number of events of a stream written so far on this side. */
  readonly eventsSent: number;
  /** Resolves when the response has ended or the client has disconnected. */
  readonly closed: Promise<void>;
}

/** The parts of any provider's answer that a test may script. */
export interface ProviderAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Replaces the default response: an object is sent as JSON, text and bytes are sent unchanged. */
  readonly body?: unknown;
  /**
   * Instead of the usual events of a stream: an object is one event, text and bytes are written as they are. Those of a
   * generator are sent as they come.
   */
  readonly events?: readonly unknown[] | AsyncIterable<unknown>;
  /** The end of a stream waits for it, all of its events are out; of JSON the whole. */
  readonly beforeEnd?: Promise<unknown>;
  /** `false` ends the stream without the provider's last frame (`data: [DONE]`), if it has one. */
  readonly done?: false;
  /** Sent after the stream's last frame. */
  readonly trailing?: string;
  /** Nothing is sent before this resolves. `new Promise(() => {})` is silence forever. */
  readonly beforeHeaders?: Promise<unknown>;
  /** Delays the event of this number (from 0); the headers and the events before it are sent. */
  readonly beforeEvent?: Readonly<Record<number, Promise<unknown>>>;
  /** The connection is cut after this many events (in JSON, after half of the body); -1 cuts it before the headers. */
  readonly cutAfter?: number;
  /** The request takes effect, and the connection is cut before the headers of its response. */
  readonly lost?: true;
  /** Compresses the response as a whole. */
  readonly encoding?: "gzip" | "br";
}

/** The response without a script. */
export type Usual = Pick<ProviderAnswer, "status" | "headers" | "body" | "events" | "done">;

interface Provider<Answer extends ProviderAnswer> {
  /** The path of the base address. */
  readonly path?: string;
  /** Headers of every response. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The response to a request with neither `body` nor `events` scripted; its status wins over the script's. */
  usual(request: MockRequest, scripted: Answer): Usual | Promise<Usual>;
  /** One event of a stream. */
  frame(event: object): string;
  /** The end of a stream, after its events. */
  lastFrame?(request: MockRequest): string;
  /** Clears the provider's own state. */
  reset?(): void;
}

export interface MockOptions {
  readonly port?: number;
  /** `false` disables recording in `requests`. */
  readonly record?: boolean;
  readonly routes?: FurtherRoutes;
}

/** Routes in front of a provider's own. */
export interface FurtherRoutes {
  /** Returns undefined for a request that the provider's own routes answer. */
  answer(request: MockRequest): Usual | undefined;
  reset(): void;
}

export async function startMockProvider<Answer extends ProviderAnswer>(
  own: Provider<Answer>,
  { port = 0, record = true, routes: further }: MockOptions = {},
): Promise<MockProvider<Answer>> {
  const provider = further ? inFrontOf(own, further) : own;
  let requests: Recorded[] = [];
  let script: Answer[] = [];
  const routes = new Map<string, Answer[]>();
  const nothing = {} as Answer;
  let usual: Usually<Answer> = nothing;
  let open = 0;
  const waiting = new Map<number, (request: MockRequest) => void>();

  const server = createServer((incoming, outgoing) => {
    const parts: Buffer[] = [];
    incoming.on("data", (part: Buffer) => parts.push(part));
    incoming.on("end", () => {
      const request = receive(incoming, outgoing, parts);
      const route = routes.size > 0 ? `${request.method} ${request.path.split("?", 1)[0]}` : "";
      const scripted = routes.get(route)?.shift() ?? script.shift();
      const answer = scripted ?? (typeof usual === "function" ? usual(request) : usual);
      if (record) {
        requests.push(request);
        waiting.get(requests.length - 1)?.(request);
      }
      open++;
      outgoing.once("close", () => open--);
      reply(provider, request, outgoing, answer).catch((error: unknown) => outgoing.destroy(error as Error));
    });
  });
  let connections = 0;
  server.on("connection", () => connections++);
  // An idle connection must not be closed just as its owner sends the next request.
  server.keepAliveTimeout = 120_000;
  await new Promise<void>((resolve) => server.listen({ port, host: "127.0.0.1", backlog: 2_048 }, resolve));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${provider.path ?? ""}`,
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
    respondTo: (route, ...answers) => {
      routes.set(route, [...(routes.get(route) ?? []), ...answers]);
    },
    always: (answer = nothing) => {
      usual = answer;
    },
    reset: () => {
      requests = [];
      script = [];
      routes.clear();
      usual = nothing;
      waiting.clear();
      provider.reset?.();
    },
    close: () => stop(server),
  };
}

const inFrontOf = <Answer extends ProviderAnswer>(own: Provider<Answer>, further: FurtherRoutes): Provider<Answer> => ({
  ...own,
  usual: (request, scripted) => further.answer(request) ?? own.usual(request, scripted),
  reset() {
    own.reset?.();
    further.reset();
  },
});

interface Recorded extends MockRequest {
  aborted: boolean;
  eventsSent: number;
}

function receive(incoming: IncomingMessage, outgoing: ServerResponse, parts: Buffer[]): Recorded {
  const bytes = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  const request: Recorded = {
    method: incoming.method ?? "",
    path: incoming.url ?? "",
    headers: incoming.headers,
    ...contentOf(incoming.headers["content-type"] ?? "", bytes),
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

function contentOf(type: string, bytes: Buffer): Pick<MockRequest, "body" | "form" | "bytes"> {
  if (type.startsWith("multipart/")) {
    const form = partsOf(type, bytes);
    return { body: fieldsOf(form), form, bytes };
  }
  const isJson = bytes.length > 0 && type.startsWith("application/json");
  return { body: isJson ? JSON.parse(bytes.toString("utf8")) : {}, bytes };
}

async function reply<Answer extends ProviderAnswer>(
  provider: Provider<Answer>,
  request: Recorded,
  outgoing: ServerResponse,
  given: Answer | Promise<Answer>,
): Promise<void> {
  const scripted = given instanceof Promise ? await given : given;
  if (scripted.beforeHeaders) await scripted.beforeHeaders;
  if (scripted.cutAfter === -1) return cut(outgoing);
  const isScripted = scripted.body !== undefined || scripted.events !== undefined;
  const made = isScripted ? {} : provider.usual(request, scripted);
  const usual = made instanceof Promise ? await made : made;
  if (scripted.lost) return cut(outgoing);
  const headers = { ...provider.headers, ...usual.headers, ...scripted.headers };
  const answer: ProviderAnswer = { ...scripted, ...usual, headers };
  if (answer.events === undefined) {
    if (answer.beforeEnd) await answer.beforeEnd;
    return sendWhole(outgoing, answer);
  }
  const frameOf = (event: unknown) => {
    if (Buffer.isBuffer(event)) return event;
    return Buffer.from(typeof event === "string" ? event : provider.frame(event as object));
  };
  const last = answer.done === false ? undefined : provider.lastFrame?.(request);
  const ends = [last, answer.trailing].flatMap((more) => (more ? [Buffer.from(more)] : []));
  const { events } = answer;
  const all = !(Symbol.asyncIterator in events) ? [...events, ...ends] : ends.length > 0 ? ended(events, ends) : events;
  await sendStream(outgoing, answer, all, frameOf, () => request.eventsSent++);
}

async function* ended(events: AsyncIterable<unknown>, ends: readonly unknown[]) {
  yield* events;
  yield* ends;
}

function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve, reject) => server.close((error) => (error ? reject(error) : resolve())));
}

function sendWhole(outgoing: ServerResponse, answer: ProviderAnswer): void {
  const { status = 200, headers, body, encoding, cutAfter } = answer;
  const text = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const bytes = compress(Buffer.from(text ?? ""), encoding);
  outgoing.writeHead(status, {
    "content-type": "application/json",
    "content-length": bytes.length,
    ...(encoding && { "content-encoding": encoding }),
    ...headers,
  });
  if (cutAfter === undefined) return void outgoing.end(bytes);
  outgoing.write(bytes.subarray(0, bytes.length >> 1), () => cut(outgoing));
}

async function sendStream(
  outgoing: ServerResponse,
  { status = 200, headers, encoding, beforeEvent, beforeEnd, cutAfter }: ProviderAnswer,
  events: readonly unknown[] | AsyncIterable<unknown>,
  frameOf: (event: unknown) => Buffer,
  onSent: () => void,
): Promise<void> {
  outgoing.writeHead(status, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    ...(encoding && { "content-encoding": encoding }),
    ...headers,
  });
  if (encoding) return void outgoing.end(compress(Buffer.concat(await Array.fromAsync(events, frameOf)), encoding));
  outgoing.flushHeaders();
  const iterator = Symbol.asyncIterator in events ? events[Symbol.asyncIterator]() : events.values();
  for (let index = 0; ; index++) {
    const next = iterator.next();
    // Events that are there are written in one turn.
    const { done, value } = next instanceof Promise ? await next : next;
    if (done) break;
    const frame = frameOf(value);
    const gate = beforeEvent?.[index];
    if (gate) await gate;
    if (outgoing.destroyed) return;
    if (index === cutAfter) return cut(outgoing);
    // The last bytes before a cut must be sent before the connection closes.
    if (index + 1 === cutAfter) await new Promise<void>((sent) => outgoing.write(frame, () => sent()));
    else if (!outgoing.write(frame)) await drained(outgoing);
    onSent();
  }
  if (beforeEnd) await beforeEnd;
  outgoing.end();
}

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

const compress = (bytes: Buffer, encoding: ProviderAnswer["encoding"]) =>
  encoding === "gzip" ? gzipSync(bytes) : encoding === "br" ? brotliCompressSync(bytes) : bytes;

/** A connection that breaks: no end of the response, a reset towards the client. */
function cut(outgoing: ServerResponse): void {
  outgoing.destroy(new Error("cut by the script"));
  outgoing.socket?.resetAndDestroy();
}
