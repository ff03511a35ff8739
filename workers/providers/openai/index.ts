/**
 * Any OpenAI-compatible server (https://platform.openai.com/docs/api-reference): chat completions, responses where the
 * catalog says so, embeddings, moderations, rerank (Cohere's and Jina's), images and their edits, speech, transcriptions,
 * videos. Bodies of text calls are sent unchanged, except for the option that makes a stream report its usage; media.ts has
 * the calls that generate or read files. Answers are untrusted: an answer has at most 64 MB (with images 128 MB), an event
 * of a stream 8 MB, and redirects are not followed. Callers see the provider's message only if their request is at fault.
 */
import type { Format } from "#formats";
import { isObject, type JsonObject } from "#json";
import type { Clock } from "#platform/clock";
import {
  chunkJoiner,
  chunkParser,
  failureOfChoices,
  normalizeAnswer,
  responsesFailure,
} from "../../conversion/index.ts";
import { failureInside } from "../http/failures.ts";
import { connectProvider, type ProviderClient } from "../http/provider-client.ts";
import { readStream, type StreamRules } from "../http/read-stream.ts";
import { vectorValues } from "../http/untrusted-json.ts";
import {
  type Provider,
  type TextCall,
  type UpstreamCall,
  type UpstreamEndpoint,
  UpstreamFailure,
} from "../provider.ts";
import { createOpenaiBatches } from "./batches.ts";
import { generate } from "./media.ts";

export function createOpenai(target: UpstreamEndpoint, { clock }: { clock: Clock }): Provider {
  const { baseUrl, concurrency, apiKey } = target;
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  return openaiThrough(connectProvider({ baseUrl, concurrency, headers }, clock), target);
}

/** The provider behind this client, which may be a cloud that serves the same requests at addresses of its own. */
export function openaiThrough(
  client: ProviderClient,
  target: Pick<UpstreamEndpoint, "formats" | "quirks" | "storesAnswers">,
  readEvents = readStream,
): Provider {
  const { clock } = client;

  type SendForJson = typeof client.sendForJson;

  const jsonThrough =
    (send: SendForJson) =>
    async (path: string, body: object, call: UpstreamCall, field: "choices" | "data" | "output" | "results") => {
      const limits = field === "data" ? { maxValues: vectorValues } : {};
      const answer = await send({ path, json: body }, call, limits);
      const list = answer[field];
      // A failed response also has status 200 and a list.
      const failure = field === "output" ? responsesFailure(answer) : undefined;
      if (failure) throw failureInside({ error: failure }, clock);
      if (Array.isArray(list) && list.every(isObject)) return answer;
      // Some proxies answer 200 with an error in the body.
      if (answer.error != null || answer.base_resp != null) throw failureInside(answer, clock);
      throw new UpstreamFailure("unavailable", `an answer without ${field}`);
    };

  // Tenants share the operator's key, so the provider must not store their answers. Most servers do not know the field.
  const withoutStore = (body: JsonObject) =>
    target.storesAnswers || "store" in body ? { ...body, store: false } : body;

  function stream(call: TextCall) {
    const { path, rules } = endpointOf(call.format);
    const json = withoutStore({ ...call.body, stream: true, ...streamOptions(call, target) });
    return readEvents(client, { path, json }, rules, call);
  }

  const json = jsonThrough(client.sendForJson);

  const answerThrough = (send: typeof json) => async (call: TextCall) => {
    const { stream: _, stream_options: __, ...body } = call.body;
    const { path, field } = endpointOf(call.format);
    const answer = await send(path, withoutStore(body), call, field);
    if (field !== "choices") return answer;
    const failure = failureOfChoices(answer);
    if (failure) throw failureInside(failure, clock);
    return normalizeAnswer(answer, "message");
  };
  const answer = answerThrough(json);
  const embedThrough = (send: typeof json) => (call: UpstreamCall) => send("/embeddings", call.body, call, "data");

  return {
    speaks: target.formats,
    answer: async (call) => (mustStream(call, target) ? joinStream(stream(call)) : answer(call)),
    stream,
    embed: embedThrough(json),
    batches: {
      ...createOpenaiBatches(client),
      through(send) {
        const own = jsonThrough(send);
        return { answer: answerThrough(own), embed: embedThrough(own) };
      },
    },
    moderate: (call) => json("/moderations", call.body, call, "results"),
    check: (call) => client.probe("/models", call),
    rerank: (call) => json("/rerank", call.body, call, "results"),
    generate: (call) => generate(client, call),
    takesLinks: true,
    close: () => client.close(),
  };
}

/** Chat streams of most servers report their usage on request, streams of responses always. */
const streamOptions = ({ format, body }: TextCall, { quirks }: Pick<UpstreamEndpoint, "quirks">): JsonObject => {
  if (format !== "chat") return {};
  if (quirks?.stream_usage === "always") return { stream_options: undefined };
  return { stream_options: { ...(body.stream_options as object | null | undefined), include_usage: true } };
};

/** Fireworks refuses a large cap in a call that is not streamed (https://github.com/nextlevelbuilder/goclaw/pull/660). */
const mustStream = ({ format, body }: TextCall, { quirks }: Pick<UpstreamEndpoint, "quirks">): boolean => {
  const cap = body.max_completion_tokens ?? body.max_tokens;
  return format === "chat" && typeof cap === "number" && cap > (quirks?.whole_answer_cap ?? cap);
};

const chatRules: StreamRules = {
  createParser: (parse) => chunkParser((json) => normalizeAnswer(parse(json), "delta")),
  failure: (chunk) => (chunk.error == null ? failureOfChoices(chunk) : chunk),
  check({ choices }) {
    if (choices !== undefined && !(Array.isArray(choices) && choices.every(isObject)))
      throw new UpstreamFailure("unavailable", "a chunk whose choices are not a list of objects");
  },
  ends: ({ choices }) =>
    (choices as readonly JsonObject[] | undefined)?.some((choice) => choice.finish_reason != null) ?? false,
};

const responsesRules: StreamRules = {
  failure(event) {
    const error = responsesFailure(event);
    return error && { error };
  },
  ends: ({ type }) => type === "response.completed" || type === "response.incomplete",
  endsAtOnce: true,
};

const endpoints = {
  chat: { path: "/chat/completions", field: "choices", rules: chatRules },
  responses: { path: "/responses", field: "output", rules: responsesRules },
} as const;

function endpointOf(format: Format) {
  if (format === "chat" || format === "responses") return endpoints[format];
  throw new UpstreamFailure("misconfigured", `this kind of upstream does not speak ${format}`);
}

/** The same limit as for a whole answer. */
const joinedLimitBytes = 64 * 1024 * 1024;

async function joinStream(stream: AsyncIterable<readonly JsonObject[]>): Promise<JsonObject> {
  const joiner = chunkJoiner();
  let bytes = 0;
  for await (const chunks of stream) {
    for (const chunk of chunks) bytes += joiner.add(chunk);
    if (bytes > joinedLimitBytes) throw new UpstreamFailure("unavailable", `an answer over ${joinedLimitBytes} bytes`);
  }
  return joiner.answer();
}
