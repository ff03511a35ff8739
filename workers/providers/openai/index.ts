/**
 * Any server of OpenAI's interface (https://platform.openai.com/docs/api-reference): chat completions, embeddings, images
 * and their edits, speech, transcriptions, videos. Chat bodies pass as they are, but for what makes a stream tell its usage;
 * of the rest `generate.ts` tells. What comes back is hostile until it is parsed: an answer has at most 64 MB (with images
 * in it 128 MB), an event of a stream 8 MB, redirects are not followed. Other errors than the request's own never show the
 * caller what the maker said.
 */
import type { Clock } from "#platform/clock";
import { type JsonObject, type Provider, type UpstreamCall, UpstreamFailure } from "../provider.ts";
import { broken, decoded, errorLimitBytes, isObject, parse, whole } from "./answers.ts";
import { eventData } from "./events.ts";
import { failureInside } from "./failures.ts";
import { createGeneration } from "./generate.ts";
import { connectMaker, type OpenaiTarget } from "./maker.ts";

const answerLimitBytes = 64 * 1024 * 1024;

export function createOpenai(target: OpenaiTarget, { clock }: { clock: Clock }): Provider {
  const maker = connectMaker(target, clock);
  const generation = createGeneration(maker);

  const json = async (path: string, body: object, call: UpstreamCall, field: "choices" | "data") => {
    const answer = await maker.send({ path, json: body }, call);
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
      const answer = await maker.send({ path: "/chat/completions", json: body, accept: "text/event-stream" }, call);
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
    generate: (call) => generation.generate(call),
    takesLinks: true,
    close: async () => {
      await Promise.all([maker.close(), generation.close()]);
    },
  };
}

function checkChoices({ choices }: JsonObject): void {
  if (choices !== undefined && !(Array.isArray(choices) && choices.every(isObject)))
    throw new UpstreamFailure("unavailable", "a chunk whose choices are no list of objects");
}

const finishes = ({ choices }: JsonObject): boolean =>
  (choices as readonly JsonObject[] | undefined)?.some((choice) => choice.finish_reason != null) ?? false;
