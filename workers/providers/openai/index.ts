/**
 * Any server of OpenAI's interface (https://platform.openai.com/docs/api-reference): chat completions, responses where the
 * catalog says so, embeddings, images and their edits, speech, transcriptions, videos. Bodies pass as they are, but for
 * what makes a stream tell its usage; of files `generate.ts` tells. What comes back is hostile until it is parsed: an
 * answer has at most 64 MB (with images in it 128 MB), an event of a stream 8 MB, redirects are not followed. Other errors
 * than the request's own never show the caller what the provider said.
 */
import type { Format } from "#formats";
import type { Clock } from "#platform/clock";
import { responsesFailure } from "../../conversion/index.ts";
import {
  type JsonObject,
  type Provider,
  type Target,
  type TextCall,
  type UpstreamCall,
  UpstreamFailure,
} from "../provider.ts";
import { isObject, parse, whole } from "../wire/answers.ts";
import { failureInside } from "../wire/failures.ts";
import { connectProvider } from "../wire/provider-client.ts";
import { readStream, type StreamRules } from "../wire/stream.ts";
import { createGeneration } from "./generate.ts";

const answerLimitBytes = 64 * 1024 * 1024;

export function createOpenai(target: Target, { clock }: { clock: Clock }): Provider {
  const { baseUrl, concurrency, apiKey } = target;
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const provider = connectProvider({ baseUrl, concurrency, headers }, clock);
  const generation = createGeneration(provider);

  const json = async (path: string, body: object, call: UpstreamCall, field: "choices" | "data" | "output") => {
    const answer = await provider.send({ path, json: body }, call);
    const parsed = parse(await whole(answer, answerLimitBytes, call.signal));
    const list = parsed[field];
    // A response that failed is an answer like any other, but for what it says of itself.
    const failure = field === "output" ? responsesFailure(parsed) : undefined;
    if (failure) throw failureInside({ error: failure }, clock);
    if (Array.isArray(list) && list.every(isObject)) return parsed;
    // Some proxies answer 200 with an error inside.
    if (parsed.error != null) throw failureInside(parsed, clock);
    throw new UpstreamFailure("unavailable", `an answer without ${field}`);
  };

  // Tenants share the operator's key: nothing of theirs is kept at the provider. Most servers do not know the field.
  const storeNothing = (body: JsonObject) =>
    target.storesAnswers || "store" in body ? { ...body, store: false } : body;

  return {
    speaks: target.formats,
    async answer({ format, ...call }) {
      const { stream: _, stream_options: __, ...body } = call.body;
      const { path, field } = wayOf(format);
      return json(path, storeNothing(body), call, field);
    },
    async *stream(call: TextCall) {
      const { path, rules } = wayOf(call.format);
      const body = storeNothing({ ...call.body, stream: true, ...streamOptions(call) });
      const answer = await provider.send({ path, json: body, accept: "text/event-stream" }, call);
      yield* readStream(answer, rules, call.signal, clock);
    },
    embed: (call) => json("/embeddings", call.body, call, "data"),
    generate: (call) => generation.generate(call),
    takesLinks: true,
    close: async () => {
      await Promise.all([provider.close(), generation.close()]);
    },
  };
}

/** Chat streams tell their usage if they are asked for it, those of responses always. */
const streamOptions = ({ format, body }: TextCall): JsonObject =>
  format === "chat"
    ? { stream_options: { ...(body.stream_options as object | null | undefined), include_usage: true } }
    : {};

const chatRules: StreamRules = {
  failure: (chunk) => (chunk.error == null ? undefined : chunk),
  check({ choices }) {
    if (choices !== undefined && !(Array.isArray(choices) && choices.every(isObject)))
      throw new UpstreamFailure("unavailable", "a chunk whose choices are no list of objects");
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

const ways = {
  chat: { path: "/chat/completions", field: "choices", rules: chatRules },
  responses: { path: "/responses", field: "output", rules: responsesRules },
} as const;

function wayOf(format: Format) {
  if (format === "chat" || format === "responses") return ways[format];
  throw new UpstreamFailure("misconfigured", `this kind of upstream does not speak ${format}`);
}
