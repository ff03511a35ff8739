import type { ServiceError } from "#errors";
import {
  completionTokens,
  crossRequest,
  type Dialect,
  dialects,
  estimateTokens,
  type Format,
  geminiArrayDialect,
  type Ours,
  outputBytes,
  promptTokens,
  type StreamWriter,
  type TokenEstimate,
  tokenUsage,
  withoutUnknown,
} from "#formats";
import type { Attempt, Counted } from "../call.ts";
import type { JsonObject, TextCall } from "../providers/index.ts";
import type { Asked } from "../upstreams.ts";
import { withUploads } from "./uploads.ts";

/**
 * A call on its way to one upstream and back. Where the upstream speaks the caller's format its body passes through, but
 * for the model and the cap; else it goes by way of chat, each way.
 */
export interface Exchange {
  readonly call: Omit<TextCall, "signal" | "log">;
  /** Hints of the caller's that this upstream does not get, by name. */
  readonly ignored: readonly string[];
  answer(given: JsonObject): { readonly body: JsonObject; readonly counted: Counted };
  stream(): StreamWriter;
}

/** One call, before it is known which upstream will serve it. */
export interface Exchanges {
  /** A promise only where uploads have to be read. */
  with(asked: Asked): Exchange | Promise<Exchange>;
  /** What closes a stream of which nothing was written, where that is more than the error itself. */
  readonly fail: (error: ServiceError) => string | undefined;
}

/** What the caller speaks. */
export const formatOf = ({ format = "chat" }: Attempt["payload"]): Format => format;

/** What an upstream is spoken to in: what the caller speaks, if it can. */
export const spokenBy = ({ formats }: Asked, callers: Format): Format =>
  formats.includes(callers) ? callers : (formats[0] ?? "chat");

export const dialectOf = (payload: Attempt["payload"]): Dialect =>
  payload.framing === "array" ? geminiArrayDialect : dialects[formatOf(payload)];

const oursOf = ({ payload, clock }: Attempt): Ours => ({
  model: payload.model,
  created: Math.floor(clock.now() / 1000),
  id: `chatcmpl-${payload.requestId}`,
});

/** The request in chat shape, for what is counted or asked of it; undefined where it cannot be had. */
export function chatOf({ payload, request }: Attempt): JsonObject | undefined {
  try {
    return dialects[formatOf(payload)].toChat(request).request;
  } catch {
    return undefined;
  }
}

export async function exchanges(attempt: Attempt): Promise<Exchanges> {
  const caller = dialectOf(attempt.payload);
  const ours = oursOf(attempt);
  const requestFor = await withUploads(attempt, caller);
  return {
    with(asked) {
      const request = requestFor(asked.provider);
      const begin = (request: JsonObject) => exchange(attempt, caller, ours, request, asked);
      return request instanceof Promise ? request.then(begin) : begin(request);
    },
    fail: (error) => caller.streamFromChat(ours, attempt.request).fail?.(error),
  };
}

function exchange(attempt: Attempt, caller: Dialect, ours: Ours, request: JsonObject, asked: Asked): Exchange {
  const { payload, model } = attempt;
  const format = formatOf(payload);
  const spoken = spokenBy(asked, format);
  const to = { model: asked.model, capField: model.outputCapField, cap: payload.outputCap };
  if (spoken === format) {
    const { native } = caller;
    const { headers = {} } = payload;
    const isStrict = format === "chat" && asked.unknownFields === "drop";
    const { request: known, ignored } = isStrict ? withoutUnknown(request) : { request, ignored: [] };
    return {
      call: { format, model: asked.model, body: native.prepare(known, to), headers },
      ignored,
      answer(given) {
        const counted = countedOf(attempt, native.usage(given), () => answerBytes(caller.toChatAnswer(given)));
        return { body: native.finish(given, ours, tokensOf(counted)), counted };
      },
      stream: () => native.stream(ours),
    };
  }
  const upstream = dialects[spoken];
  const crossed = crossRequest(caller, upstream, request, to);
  return {
    call: { format: spoken, model: asked.model, body: crossed.request, headers: {} },
    ignored: crossed.ignored,
    answer(given) {
      const answer = upstream.toChatAnswer(given);
      const counted = countedOf(attempt, answer["usage"], () => answerBytes(answer));
      const whole = dialects.chat.native.finish(answer, ours, tokensOf(counted));
      return { body: caller.fromChat(whole, ours, request), counted };
    },
    stream: () => translated(upstream.streamToChat(), caller.streamFromChat(ours, request)),
  };
}

/** The upstream's events as chat chunks, and these as the caller's events. */
function translated(reader: ReturnType<Dialect["streamToChat"]>, writer: StreamWriter): StreamWriter {
  return {
    ...writer,
    write(event) {
      let text = "";
      for (const chunk of reader.write(event)) text += writer.write(chunk);
      return text;
    },
    usage: (soFar) => reader.usage(soFar) ?? writer.usage(soFar),
  };
}

/** What the maker says was used; where it says nothing, what four bytes to a token make of it. */
export function countedOf({ payload }: Attempt, usage: unknown, bytes: () => number): Counted {
  const exact = tokenUsage(usage);
  if (exact) return { usage: exact, estimated: false };
  return { usage: { input: payload.inputEstimate, output: estimateTokens(bytes()) }, estimated: true };
}

export const tokensOf = ({ usage }: Counted): TokenEstimate => ({
  input: promptTokens(usage),
  output: completionTokens(usage),
});

function answerBytes({ choices }: JsonObject): number {
  const all = Array.isArray(choices) ? (choices as JsonObject[]) : [];
  return all.reduce((sum, { message }) => sum + outputBytes((message ?? {}) as JsonObject), 0);
}
