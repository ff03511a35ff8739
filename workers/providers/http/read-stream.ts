import { setImmediate } from "node:timers/promises";
import { createParser } from "eventsource-parser";
import type { JsonObject } from "#json";
import { type UpstreamCall, UpstreamFailure } from "../provider.ts";
import { failureInside } from "./failures.ts";
import type { ProviderClient, ProviderRequest } from "./provider-client.ts";
import { decompressed, errorLimitBytes, readText, throwFailure } from "./read-answer.ts";
import { parseAnswer } from "./untrusted-json.ts";

/** Rules for how a format's streams fail and end. */
export interface StreamRules {
  /** The error body of an event, as `failureInside` reads it. Returns undefined for other events. */
  readonly failure: (event: JsonObject) => JsonObject | undefined;
  /** Throws for an event that does not follow the format. */
  readonly check?: (event: JsonObject) => void;
  /** Tells whether the answer is complete after this event. */
  readonly ends: (event: JsonObject) => boolean;
  /** The event for which `ends` is true is the last: nothing after it is read, and `[DONE]` does not replace it. */
  readonly endsAtOnce?: true;
  /**
   * Creates the parser of one stream. Data that it does not pass to `parse` must follow the format and be neither a failure
   * nor an end.
   */
  readonly createParser?: (parse: (data: string) => JsonObject) => (data: string) => JsonObject;
}

/** The events of the answer to a request, parsed. Events before a failure are delivered before it is thrown. */
export async function* readStream(
  { clock, send }: ProviderClient,
  request: ProviderRequest,
  rules: StreamRules,
  call: UpstreamCall,
): AsyncGenerator<readonly JsonObject[], void, undefined> {
  const { signal } = call;
  const answer = await send({ ...request, accept: "text/event-stream" }, call);
  const type = answer.headers["content-type"] ?? "";
  if (type.startsWith("application/json"))
    throw failureInside(parseAnswer(await readText(answer, errorLimitBytes, signal)), clock);
  let finished = false;
  const parseEvent = (data: string): JsonObject => {
    const event = parseAnswer(data);
    const error = rules.failure(event);
    if (error) throw failureInside(error, clock);
    rules.check?.(event);
    finished ||= rules.ends(event);
    return event;
  };
  const read = rules.createParser?.(parseEvent) ?? parseEvent;
  try {
    for await (const texts of eventData(decompressed(answer))) {
      const events: JsonObject[] = [];
      let done = false;
      let failure: unknown;
      try {
        for (const data of texts) {
          if (data === "") continue;
          done = data === "[DONE]";
          if (done) break;
          events.push(read(data));
          if (rules.endsAtOnce && finished) break;
        }
      } catch (error) {
        failure = error;
      }
      if (events.length > 0) yield events;
      if (failure !== undefined) throw failure;
      if (rules.endsAtOnce ? finished : done) return;
    }
  } catch (error) {
    throwFailure(error, signal);
  }
  // Some servers omit [DONE], and a server that fails midway may end its stream without an error.
  if (!finished) throw new UpstreamFailure("unavailable", "the stream ended before its end");
}

const maxEventCharacters = 8 * 1024 * 1024;
/** Parsed in one turn of the event loop. Node may read 2 MB in one, which is a million lines. */
const turnBytes = 256 * 1024;

/** The `data` of server-sent events; those that arrive in one read are delivered together. */
export async function* eventData(body: AsyncIterable<Buffer>): AsyncGenerator<readonly string[], void, undefined> {
  const decoder = new TextDecoder();
  let events: string[] = [];
  let tooLarge = false;
  const parser = createParser({
    maxBufferSize: maxEventCharacters,
    onEvent: ({ data }) => {
      events.push(data);
    },
    onError: ({ type }) => {
      // The grammar says to ignore unknown fields and malformed retry lines.
      if (type === "max-buffer-size-exceeded") tooLarge = true;
    },
  });
  let sinceTurn = 0;
  for await (const bytes of body) {
    sinceTurn += bytes.length;
    if (sinceTurn > turnBytes) {
      sinceTurn = 0;
      await setImmediate();
    }
    parser.feed(decoder.decode(bytes, { stream: true }));
    if (tooLarge)
      throw new UpstreamFailure("unavailable", `one event of the stream is over ${maxEventCharacters} characters`);
    if (events.length === 0) continue;
    yield events;
    events = [];
  }
}
