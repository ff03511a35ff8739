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
  /** Converts the events of one stream, each to any number of others. */
  readonly convert?: (event: JsonObject) => readonly JsonObject[];
}

/** How the events of a stream are cut from its bytes. */
export interface Framing {
  readonly mediaType: string;
  /** Answers of other media types are failures. */
  readonly isRequired?: true;
  /** Creates the decoder of one stream. It calls `onData` with the data of each event that is complete, a JSON text. */
  readonly createDecoder: (onData: (data: string) => void) => StreamDecoder;
}

export interface StreamDecoder {
  push(bytes: Buffer): void;
  /** Throws if the stream must not end here. */
  end?(): void;
}

/** Decoded in one turn of the event loop. Node may read 2 MB in one, which is a million lines. */
const turnBytes = 256 * 1024;

/** The events of the answer to a request, parsed. Events before a failure are delivered before it is thrown. */
export async function* readStream(
  { clock, send }: ProviderClient,
  request: ProviderRequest,
  rules: StreamRules,
  call: UpstreamCall,
  framing = serverSentEvents,
): AsyncGenerator<readonly JsonObject[], void, undefined> {
  const { signal } = call;
  const { mediaType } = framing;
  const answer = await send({ ...request, accept: mediaType, isStream: true }, call);
  const type = answer.headers["content-type"] ?? "";
  if (type.startsWith("application/json"))
    throw failureInside(parseAnswer(await readText(answer, errorLimitBytes, signal)), clock);
  if (framing.isRequired && !type.startsWith(mediaType)) {
    await answer.body.return?.();
    throw new UpstreamFailure("unavailable", `an answer that is not of the type ${mediaType}`);
  }
  let events: JsonObject[] = [];
  let finished = false;
  let isOver = false;
  const parseEvent = (data: string): JsonObject => {
    const event = parseAnswer(data);
    const error = rules.failure(event);
    if (error) throw failureInside(error, clock);
    rules.check?.(event);
    finished ||= rules.ends(event);
    return event;
  };
  const parse = rules.createParser?.(parseEvent) ?? parseEvent;
  const decoder = framing.createDecoder((data) => {
    if (isOver || data === "") return;
    const isDone = data === "[DONE]";
    if (!isDone) {
      const event = parse(data);
      if (rules.convert) events.push(...rules.convert(event));
      else events.push(event);
    }
    isOver = rules.endsAtOnce ? finished : isDone;
  });
  let sinceTurn = 0;
  try {
    for await (const bytes of decompressed(answer)) {
      sinceTurn += bytes.length;
      if (sinceTurn > turnBytes) {
        sinceTurn = bytes.length;
        await setImmediate();
      }
      let failure: unknown;
      try {
        decoder.push(bytes);
      } catch (error) {
        failure = error;
      }
      if (events.length > 0) {
        yield events;
        events = [];
      }
      if (isOver) return;
      if (failure !== undefined) throw failure;
    }
    decoder.end?.();
  } catch (error) {
    throwFailure(error, signal);
  }
  // Some servers omit [DONE], and a server that fails midway may end its stream without an error.
  if (!finished) throw new UpstreamFailure("unavailable", "the stream ended before its end");
}

const maxEventCharacters = 8 * 1024 * 1024;

export const serverSentEvents: Framing = {
  mediaType: "text/event-stream",
  createDecoder(onData) {
    const decoder = new TextDecoder();
    const parser = createParser({
      maxBufferSize: maxEventCharacters,
      onEvent: ({ data }) => onData(data),
      onError({ type }) {
        // The grammar says to ignore unknown fields and malformed retry lines.
        if (type === "max-buffer-size-exceeded")
          throw new UpstreamFailure("unavailable", `one event of the stream is over ${maxEventCharacters} characters`);
      },
    });
    return { push: (bytes) => parser.feed(decoder.decode(bytes, { stream: true })) };
  },
};
