import { crc32 } from "node:zlib";

/**
 * Encodes event streams of AWS as https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html describes them, without
 * the library that decodes them.
 */
function header(name: string, value: string): Buffer {
  const bytes = Buffer.alloc(4 + name.length + Buffer.byteLength(value));
  bytes.writeUInt8(name.length, 0);
  bytes.write(name, 1);
  bytes.writeUInt8(7, 1 + name.length);
  bytes.writeUInt16BE(Buffer.byteLength(value), 2 + name.length);
  bytes.write(value, 4 + name.length);
  return bytes;
}

export function encodeFrame(headers: Readonly<Record<string, string>>, payload: string | Buffer): Buffer {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)));
  const body = Buffer.from(payload);
  return frameOf(head, body, 16 + head.length + body.length, head.length);
}

/** A frame that may say other lengths than it has, with checksums that fit. */
export function frameOf(head: Buffer, body: Buffer, totalLength: number, headersLength: number): Buffer {
  const frame = Buffer.alloc(16 + head.length + body.length);
  frame.writeUInt32BE(totalLength, 0);
  frame.writeUInt32BE(headersLength, 4);
  frame.writeUInt32BE(crc32(frame.subarray(0, 8)), 8);
  head.copy(frame, 12);
  body.copy(frame, 12 + head.length);
  frame.writeUInt32BE(crc32(frame.subarray(0, -4)), frame.length - 4);
  return frame;
}

export const eventFrame = (type: string, payload: unknown): Buffer =>
  encodeFrame(
    { ":event-type": type, ":content-type": "application/json", ":message-type": "event" },
    typeof payload === "string" ? payload : JSON.stringify(payload),
  );

export const exceptionFrame = (type: string, message: string): Buffer =>
  encodeFrame(
    { ":exception-type": type, ":content-type": "application/json", ":message-type": "exception" },
    JSON.stringify({ message }),
  );

/** An event of a model's own stream. The padding hides the lengths of tokens. */
export const chunkFrame = (event: object): Buffer =>
  eventFrame("chunk", { bytes: Buffer.from(JSON.stringify(event)).toString("base64"), p: "abcdefgh" });
