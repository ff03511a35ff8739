/**
 * Any server of OpenAI's chat-completions and embeddings interface (https://platform.openai.com/docs/api-reference).
 * Bodies pass as they are, but for what makes a stream tell its usage. What comes back is hostile until it is parsed:
 * an answer has at most 64 MB, an event of a stream 8 MB, redirects are not followed. Other errors than the request's own
 * never show the caller what the maker said.
 */
import { pipeline, Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Clock } from "#platform/clock";
import { createHttpClient, type HttpAnswer } from "#platform/http";
import { writeJson } from "../json.ts";
import { type JsonObject, type Provider, type UpstreamCall, UpstreamFailure } from "../provider.ts";
import { eventData } from "./events.ts";
import { failureInside, failureOf } from "./failures.ts";

const answerLimitBytes = 64 * 1024 * 1024;
const errorLimitBytes = 64 * 1024;

export interface OpenaiTarget {
  /** With its path: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** Sent as the bearer, if the upstream takes one. */
  readonly apiKey: string | undefined;
  /** Calls in flight at most. */
  readonly concurrency: number;
  /** It keeps chat answers unless it is told not to. */
  readonly storesAnswers: boolean;
}

export function createOpenai(target: OpenaiTarget, { clock }: { clock: Clock }): Provider {
  const base = new URL(target.baseUrl);
  const root = base.pathname.replace(/\/+$/, "");
  const http = createHttpClient({ origin: base.origin, connections: target.concurrency, clock });

  const send = async (path: string, body: object, { signal, log }: UpstreamCall, accept: string) => {
    const headers = {
      "content-type": "application/json",
      accept,
      "accept-encoding": "identity",
      "user-agent": "inference-service",
      ...(target.apiKey !== undefined && { authorization: `Bearer ${target.apiKey}` }),
    };
    const answer = await http
      .post({ path: `${root}${path}${base.search}`, headers, body: writeJson(body), signal })
      .catch((error: unknown) => broken(error, signal));
    log.debug({ status: answer.status, upstreamRequestId: answer.headers["x-request-id"] }, "upstream answered");
    if (answer.status < 200 || answer.status > 299) throw await refusal(answer, signal, clock);
    return answer;
  };

  const json = async (path: string, body: object, call: UpstreamCall, field: "choices" | "data") => {
    const answer = await send(path, body, call, "application/json");
    const parsed = parse(await whole(answer, answerLimitBytes, call.signal));
    const list = parsed[field];
    if (Array.isArray(list) && list.every(isObject)) return parsed;
    // Some proxies answer 200 with an error inside.
    if (parsed.error != null) throw failureInside(parsed, clock);
    throw new UpstreamFailure("unavailable", `an answer without ${field}`);
  };

  // Tenants share the operator's key: nothing of theirs is kept at the maker. Most servers do not know the field.
  const storeNothing = (body: Readonly<Record<string, unknown>>) =>
    target.storesAnswers || "store" in body ? { ...body, store: false } : body;

  /** What came before a failure is still delivered. */
  const readEvents = (events: readonly string[]) => {
    const chunks: JsonObject[] = [];
    try {
      for (const data of events) {
        if (data === "[DONE]") return { chunks, done: true };
        if (data === "") continue;
        const chunk = parse(data);
        if (chunk.error != null) throw failureInside(chunk, clock);
        checkChoices(chunk);
        chunks.push(chunk);
      }
      return { chunks, done: false };
    } catch (failure) {
      return { chunks, done: false, failure };
    }
  };

  return {
    chat: (call) => {
      const { stream: _, stream_options: __, ...body } = call.body;
      return json("/chat/completions", storeNothing(body), call, "choices");
    },
    streamChat: async function* (call) {
      const options = { ...(call.body.stream_options as object | null | undefined), include_usage: true };
      const body = storeNothing({ ...call.body, stream: true, stream_options: options });
      const answer = await send("/chat/completions", body, call, "text/event-stream");
      const type = answer.headers["content-type"] ?? "";
      if (type.startsWith("application/json"))
        throw failureInside(parse(await whole(answer, errorLimitBytes, call.signal)), clock);
      let finished = false;
      try {
        for await (const events of eventData(decoded(answer))) {
          const { chunks, done, failure } = readEvents(events);
          finished ||= chunks.some(finishes);
          if (chunks.length > 0) yield chunks;
          if (failure !== undefined) throw failure;
          if (done) return;
        }
      } catch (error) {
        broken(error, call.signal);
      }
      // Some servers leave [DONE] out. One that broke off in the middle may end its stream just as well.
      if (!finished) throw new UpstreamFailure("unavailable", "the stream ended before its end");
    },
    embed: (call) => json("/embeddings", call.body, call, "data"),
    close: () => http.close(),
  };
}

function checkChoices({ choices }: JsonObject): void {
  if (choices !== undefined && !(Array.isArray(choices) && choices.every(isObject)))
    throw new UpstreamFailure("unavailable", "a chunk whose choices are no list of objects");
}

const finishes = ({ choices }: JsonObject): boolean =>
  (choices as readonly JsonObject[] | undefined)?.some((choice) => choice.finish_reason != null) ?? false;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {}
  // What it is instead may quote a prompt: it goes nowhere.
  throw new UpstreamFailure("unavailable", "what came is not a JSON object");
}

async function refusal(answer: HttpAnswer, signal: AbortSignal, clock: Clock): Promise<UpstreamFailure> {
  // An error without a readable body is still told by its status.
  const text = await whole(answer, errorLimitBytes, signal).catch((error: unknown) => {
    if (signal.aborted) throw error;
    return "";
  });
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {}
  return failureOf(answer.status, answer.headers, body, clock);
}

async function whole(answer: HttpAnswer, limitBytes: number, signal: AbortSignal): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of decoded(answer)) {
      bytes += part.length;
      if (bytes > limitBytes) throw new UpstreamFailure("unavailable", `an answer over ${limitBytes} bytes`);
      parts.push(part);
    }
  } catch (error) {
    broken(error, signal);
  }
  return (parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)).toString("utf8");
}

const decoders: Readonly<Record<string, () => NodeJS.ReadWriteStream>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** We ask for no compression; some proxies compress nevertheless. */
function decoded({ headers, body }: HttpAnswer): AsyncIterable<Buffer> {
  const encoding = headers["content-encoding"]?.toLowerCase() ?? "identity";
  if (encoding === "identity" || encoding === "") return body;
  const decoder = decoders[encoding];
  if (!decoder) throw new UpstreamFailure("unavailable", `an answer in the encoding ${encoding.slice(0, 40)}`);
  // The outcome is read from the decoder itself.
  return pipeline(Readable.from(body), decoder(), () => {}) as unknown as AsyncIterable<Buffer>;
}

/** Whatever broke on the way, in the two forms that a provider may throw. */
function broken(error: unknown, signal: AbortSignal): never {
  if (signal.aborted) throw signal.reason;
  if (error instanceof UpstreamFailure) throw error;
  const { code, message } = error as NodeJS.ErrnoException;
  throw new UpstreamFailure("unavailable", code ?? message, { cause: error });
}
