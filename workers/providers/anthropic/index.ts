/**
 * Anthropic's Messages API (https://platform.claude.com/docs/en/api/messages): messages, whole and streamed, and the count
 * of their tokens. Bodies pass as they are; of the caller's headers `anthropic-version` and `anthropic-beta` do. What comes
 * back is hostile until it is parsed: an answer has at most 64 MB, an event of a stream 8 MB, redirects are not followed.
 * Other errors than the request's own never show the caller what the provider said.
 */
import { messagesHeaders } from "#formats";
import type { Clock } from "#platform/clock";
import { type JsonObject, type Provider, type Target, type TextCall, UpstreamFailure } from "../provider.ts";
import { isObject, parse, whole } from "../wire/answers.ts";
import { failureInside } from "../wire/failures.ts";
import { connectProvider, versioned } from "../wire/provider-client.ts";
import { readStream, type StreamRules } from "../wire/stream.ts";

const answerLimitBytes = 64 * 1024 * 1024;
const defaultVersion = "2023-06-01";
/** What says how to answer: the count is refused with it. */
const ofAnswers: ReadonlySet<string> = new Set([
  "max_tokens",
  "metadata",
  "service_tier",
  "stop_sequences",
  "stream",
  "temperature",
  "top_k",
  "top_p",
]);

export function createAnthropic({ baseUrl, concurrency, apiKey }: Target, { clock }: { clock: Clock }): Provider {
  const headers = { "anthropic-version": defaultVersion, ...(apiKey !== undefined && { "x-api-key": apiKey }) };
  const provider = connectProvider({ baseUrl: versioned(baseUrl, "v1"), concurrency, headers }, clock);

  const json = async (path: string, body: JsonObject, call: TextCall) => {
    const answer = await provider.send({ path, json: body, headers: headersOf(call) }, call);
    const parsed = parse(await whole(answer, answerLimitBytes, call.signal));
    // Some proxies answer 200 with an error inside.
    if (parsed.type === "error") throw failureInside(parsed, clock);
    return parsed;
  };

  return {
    speaks: ["messages"],
    async answer(call) {
      const { stream: _, ...body } = call.body;
      const message = await json("/messages", body, call);
      const { type, content } = message;
      if (type === "message" && Array.isArray(content) && content.every(isObject)) return message;
      throw new UpstreamFailure("unavailable", "an answer that is no message");
    },
    async *stream(call) {
      const ask = { path: "/messages", json: { ...call.body, stream: true }, headers: headersOf(call) };
      const answer = await provider.send({ ...ask, accept: "text/event-stream" }, call);
      yield* readStream(answer, rulesOfStream(), call.signal, clock);
    },
    async count(call) {
      const body = Object.fromEntries(Object.entries(call.body).filter(([field]) => !ofAnswers.has(field)));
      const { input_tokens: tokens } = await json("/messages/count_tokens", body, call);
      if (typeof tokens === "number" && Number.isSafeInteger(tokens) && tokens >= 0) return tokens;
      throw new UpstreamFailure("unavailable", "a count that is no whole number");
    },
    embed: () => Promise.reject(new UpstreamFailure("misconfigured", "this kind of upstream makes no embeddings")),
    generate: () => Promise.reject(new UpstreamFailure("misconfigured", "this kind of upstream makes no files")),
    takesLinks: true,
    close: () => provider.close(),
  };
}

const headersOf = ({ headers }: TextCall): Readonly<Record<string, string>> =>
  Object.fromEntries(
    messagesHeaders.flatMap((name) => {
      const value = headers[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );

/** Clients cannot read a stream that does not begin with its message. */
function rulesOfStream(): StreamRules {
  let hasBegun = false;
  return {
    failure: (event) => (event.type === "error" ? event : undefined),
    check({ type }) {
      hasBegun ||= type === "message_start";
      if (typeof type !== "string" || !(hasBegun || type === "ping"))
        throw new UpstreamFailure("unavailable", "a stream that does not begin with a message");
    },
    ends: ({ type }) => type === "message_stop",
    endsAtOnce: true,
  };
}
