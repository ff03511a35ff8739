import { createParser } from "eventsource-parser";
import { UpstreamFailure } from "../provider.ts";

const eventLimit = 8 * 1024 * 1024;

/**
 * The `data` of the server-sent events, those of one read together. eventsource-parser takes 0.1 to 0.25 microseconds an event, a bare split by
 * lines 0.2: what costs is JSON.parse (1 microsecond), so the parser that knows the whole grammar is free.
 */
export async function* eventData(body: AsyncIterable<Buffer>): AsyncGenerator<readonly string[], void, undefined> {
  const decoder = new TextDecoder();
  let events: string[] = [];
  let tooLarge = false;
  const parser = createParser({
    maxBufferSize: eventLimit,
    onEvent: ({ data }) => {
      events.push(data);
    },
    onError: ({ type }) => {
      // Unknown fields and broken retry lines are to be ignored, as the grammar says.
      if (type === "max-buffer-size-exceeded") tooLarge = true;
    },
  });
  for await (const bytes of body) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    if (tooLarge) throw new UpstreamFailure("unavailable", `One event of the stream is over ${eventLimit} characters.`);
    if (events.length === 0) continue;
    yield events;
    events = [];
  }
}
