import { EventStreamCodec } from "@smithy/core/event-streams";
import { object, text } from "#json";
import type { Clock } from "#platform/clock";
import type { Framing } from "../http/read-stream.ts";
import { parseAnswer } from "../http/untrusted-json.ts";
import { UpstreamFailure } from "../provider.ts";
import { failureOfException } from "./failures.ts";

const maxFrameBytes = 8 * 1024 * 1024;
const minFrameBytes = 16;

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8")),
  (string) => Buffer.from(string),
);

export type Frame = ReturnType<typeof codec.decode>;

const invalid = (what: string) => new UpstreamFailure("unavailable", `the event stream has ${what}`);

function decode(bytes: Uint8Array): Frame {
  try {
    // A copy, because a length inside the headers can point past the frame, where the pool of buffers has other data.
    return codec.decode(new Uint8Array(bytes));
  } catch {
    throw invalid("an invalid frame");
  }
}

/** Cuts a stream of bytes into frames. Holds at most twice the bytes of one frame that have arrived. */
export function createFrameReader() {
  let held = Buffer.alloc(0);
  let length = 0;

  function append(bytes: Buffer): void {
    if (length + bytes.length > held.length) {
      const larger = Buffer.allocUnsafe(Math.max(2 * length, length + bytes.length));
      held.copy(larger, 0, 0, length);
      held = larger;
    }
    bytes.copy(held, length);
    length += bytes.length;
  }

  return {
    /** The frames that the bytes complete. Throws `UpstreamFailure` at the first that is invalid. */
    *push(bytes: Buffer): Generator<Frame, void, undefined> {
      append(bytes);
      let at = 0;
      while (length - at >= 4) {
        const size = held.readUInt32BE(at);
        if (size < minFrameBytes || size > maxFrameBytes) throw invalid(`a frame of ${size} bytes`);
        if (length - at < size) break;
        yield decode(held.subarray(at, at + size));
        at += size;
      }
      if (at === 0) return;
      held.copyWithin(0, at, length);
      length -= at;
      if (length === 0) held = Buffer.alloc(0);
    },
    isInFrame: () => length > 0,
  };
}

const headerOf = ({ headers }: Frame, name: string): string => text(object(headers[name]).value);

/** A frame's JSON text, made by `textOf` from the type of its event and its payload. */
function dataOf(frame: Frame, textOf: Reading, clock: Clock): string {
  const payload = Buffer.from(frame.body).toString("utf8");
  switch (headerOf(frame, ":message-type")) {
    case "event":
      return textOf(headerOf(frame, ":event-type"), payload);
    case "exception":
      throw failureOfException(headerOf(frame, ":exception-type"), payload, clock);
    case "error":
      throw failureOfException(
        headerOf(frame, ":error-code"),
        JSON.stringify({ message: headerOf(frame, ":error-message") }),
        clock,
      );
    default:
      throw invalid("a frame of an unknown type");
  }
}

/** Returns an empty text for an event without data. */
type Reading = (eventType: string, payload: string) => string;

/** https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html describes the encoding. */
const framing =
  (textOf: Reading) =>
  (clock: Clock): Framing => ({
    mediaType: "application/vnd.amazon.eventstream",
    isRequired: true,
    createDecoder(onData) {
      const frames = createFrameReader();
      return {
        push(bytes) {
          for (const frame of frames.push(bytes)) onData(dataOf(frame, textOf, clock));
        },
        end() {
          if (frames.isInFrame()) throw invalid("an incomplete frame at its end");
        },
      };
    },
  });

/** Events of InvokeModelWithResponseStream: each has one event of the model's own stream, in base64. */
export const invokeFraming = framing((type, payload) =>
  type === "chunk" ? Buffer.from(text(parseAnswer(payload).bytes), "base64").toString("utf8") : "",
);

/** Events of ConverseStream, as an object with one field, the name of the event. */
export const converseFraming = framing((type, payload) =>
  /^[a-zA-Z]{1,64}$/.test(type) ? `{"${type}":${payload === "" ? "{}" : payload}}` : "",
);
