import type { ServiceError } from "#errors";
import { estimateTokens, type Format, outputBytes } from "#formats";
import {
  completionTokens,
  converters,
  convertRequest,
  type FormatConverter,
  geminiArrayConverter,
  promptTokens,
  type ResponseIdentity,
  type StreamWriter,
  type TokenEstimate,
  tokenUsage,
  withoutUnknown,
} from "../conversion/index.ts";
import type { JsonObject, TextCall } from "../providers/index.ts";
import type { Attempt, Counted } from "../run-call.ts";
import type { AskedUpstream } from "../upstreams/index.ts";
import { withUploads } from "./uploads.ts";

/**
 * A call on its way to one upstream and back. Where the upstream speaks the caller's format its body passes through, but
 * for the model and the cap; else it goes by way of chat, each way.
 */
export interface ConvertedCall {
  readonly call: Omit<TextCall, "signal" | "log">;
  /** Hints of the caller's that this upstream does not get, by name. */
  readonly ignored: readonly string[];
  answer(given: JsonObject): { readonly body: JsonObject; readonly counted: Counted };
  stream(): StreamWriter;
}

/** One call, before it is known which upstream will serve it. */
export interface Conversion {
  /** A promise only where uploads have to be read. */
  with(asked: AskedUpstream): ConvertedCall | Promise<ConvertedCall>;
  /** What closes a stream of which nothing was written, where that is more than the error itself. */
  readonly fail: (error: ServiceError) => string | undefined;
}

/** What the caller speaks. */
export const formatOf = ({ format = "chat" }: Attempt["payload"]): Format => format;

/** What an upstream is spoken to in: what the caller speaks, if it can. */
export const spokenBy = ({ formats }: AskedUpstream, callers: Format): Format =>
  formats.includes(callers) ? callers : (formats[0] ?? "chat");

export const converterOf = (payload: Attempt["payload"]): FormatConverter =>
  payload.framing === "array" ? geminiArrayConverter : converters[formatOf(payload)];

const oursOf = ({ payload, clock }: Attempt): ResponseIdentity => ({
  model: payload.model,
  created: Math.floor(clock.now() / 1000),
  id: `chatcmpl-${payload.requestId}`,
});

/** The request in chat shape, for what is counted or asked of it; undefined where it cannot be had. */
export function chatOf({ payload, request }: Attempt): JsonObject | undefined {
  try {
    return converters[formatOf(payload)].requestToChat(request).request;
  } catch {
    return undefined;
  }
}

export async function convertCall(attempt: Attempt): Promise<Conversion> {
  const caller = converterOf(attempt.payload);
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

function exchange(
  attempt: Attempt,
  caller: FormatConverter,
  ours: ResponseIdentity,
  request: JsonObject,
  asked: AskedUpstream,
): ConvertedCall {
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
        const counted = countedOf(attempt, native.usage(given), () => answerBytes(caller.responseToChat(given)));
        return { body: native.finish(given, ours, tokensOf(counted)), counted };
      },
      stream: () => native.stream(ours),
    };
  }
  const upstream = converters[spoken];
  const crossed = convertRequest(caller, upstream, request, to);
  return {
    call: { format: spoken, model: asked.model, body: crossed.request, headers: {} },
    ignored: crossed.ignored,
    answer(given) {
      const answer = upstream.responseToChat(given);
      const counted = countedOf(attempt, answer["usage"], () => answerBytes(answer));
      const whole = converters.chat.native.finish(answer, ours, tokensOf(counted));
      return { body: caller.responseFromChat(whole, ours, request), counted };
    },
    stream: () => translated(upstream.streamToChat(), caller.streamFromChat(ours, request)),
  };
}

/** The upstream's events as chat chunks, and these as the caller's events. */
function translated(reader: ReturnType<FormatConverter["streamToChat"]>, writer: StreamWriter): StreamWriter {
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

/** What the provider says was used; where it says nothing, what four bytes to a token make of it. */
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
