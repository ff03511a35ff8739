/**
 * Anthropic's Messages API (https://platform.claude.com/docs/en/api/messages): messages, whole and streamed, and token
 * counts. Bodies are sent unchanged, with the caller's `anthropic-version` and `anthropic-beta` headers. Answers are
 * untrusted: an answer has at most 64 MB, an event of a stream 8 MB, and redirects are not followed. Callers see the
 * provider's message only if their request is at fault.
 */
import { messagesHeaders } from "#formats";
import { isCount, isObject, type JsonObject } from "#json";
import type { Clock } from "#platform/clock";
import { failureInside } from "../http/failures.ts";
import { connectProvider, type ProviderClient, versioned } from "../http/provider-client.ts";
import { readStream, type StreamRules } from "../http/read-stream.ts";
import { generatesOnly, type Provider, type TextCall, type UpstreamEndpoint, UpstreamFailure } from "../provider.ts";
import { createAnthropicBatches } from "./batches.ts";

/** The version for callers who name none. */
export const anthropicVersion = "2023-06-01";
/** The endpoint that counts tokens refuses fields that control the answer. */
const answerFields = /^(max_tokens|metadata|service_tier|stop_sequences|stream|temperature|top_k|top_p)$/;

export function createAnthropic(
  { baseUrl, concurrency, apiKey }: UpstreamEndpoint,
  { clock }: { clock: Clock },
): Provider {
  const headers = { "anthropic-version": anthropicVersion, ...(apiKey !== undefined && { "x-api-key": apiKey }) };
  return anthropicThrough(connectProvider({ baseUrl: versioned(baseUrl, "v1"), concurrency, headers }, clock));
}

/** The provider behind this client, which may be a cloud that serves the same requests at addresses of its own. */
export function anthropicThrough(client: ProviderClient, readEvents = readStream): Provider {
  const { clock } = client;

  const jsonThrough = (send: typeof client.sendForJson) => async (path: string, body: JsonObject, call: TextCall) => {
    const answer = await send({ path, json: body, headers: headersOf(call) }, call);
    // Some proxies answer 200 with an error in the body.
    if (answer.type === "error") throw failureInside(answer, clock);
    return answer;
  };

  const json = jsonThrough(client.sendForJson);
  const embed = generatesOnly("text");

  const answerThrough = (send: typeof json) => async (call: TextCall) => {
    const { stream: _, ...body } = call.body;
    const message = await send("/messages", body, call);
    const { type, content } = message;
    if (type === "message" && Array.isArray(content) && content.every(isObject)) return message;
    throw new UpstreamFailure("unavailable", "an answer that is not a message");
  };

  return {
    speaks: ["messages"],
    answer: answerThrough(json),
    batches: {
      ...createAnthropicBatches(client),
      through: (send) => ({ answer: answerThrough(jsonThrough(send)), embed }),
    },
    stream(call) {
      const request = { path: "/messages", json: { ...call.body, stream: true }, headers: headersOf(call) };
      return readEvents(client, request, streamRules(), call);
    },
    async count(call) {
      const body = Object.fromEntries(Object.entries(call.body).filter(([field]) => !answerFields.test(field)));
      const { input_tokens: tokens } = await json("/messages/count_tokens", body, call);
      if (isCount(tokens)) return tokens;
      throw new UpstreamFailure("unavailable", "a count that is not a whole number");
    },
    check: (call) => client.probe("/models?limit=1", call),
    embed,
    generate: generatesOnly("text"),
    takesLinks: true,
    close: () => client.close(),
  };
}

const headersOf = ({ headers }: TextCall): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => messagesHeaders.includes(name)));

/** Clients cannot read a stream that does not begin with `message_start`. */
function streamRules(): StreamRules {
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
