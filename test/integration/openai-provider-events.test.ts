import { expect, test } from "vitest";
import { eventData } from "../../workers/providers/http/read-stream.ts";

async function* pieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const read = async (bytes: Buffer, size: number) => (await Array.fromAsync(eventData(pieces(bytes, size)))).flat();

test.each(["\n", "\r\n", "\r"])(
  "events are the same wherever they are split, with lines that end in %j",
  async (end) => {
    const lines = [
      "\uFEFF: a comment first",
      "",
      'data: {"text":"grüße 你好 👩‍👩‍👧"}',
      "",
      "event: message",
      "id: 7",
      "data:no blank",
      "retry: 1000",
      "",
      ": ping",
      "",
      "data: two",
      "data: lines",
      "",
      "unknown: field",
      "data",
      "",
      "data: [DONE]",
      "",
      "data: without an end",
    ];
    const bytes = Buffer.from(lines.join(end));
    const expected = ['{"text":"grüße 你好 👩‍👩‍👧"}', "no blank", "two\nlines", "", "[DONE]"];
    for (let size = 1; size <= bytes.length; size++)
      expect({ size, events: await read(bytes, size) }).toEqual({ size, events: expected });
  },
);

test("bytes that are not UTF-8 are replaced", async () => {
  expect(await read(Buffer.from([...Buffer.from("data: a"), 0xff, 0xc3, ...Buffer.from("b\n\n")]), 3)).toEqual([
    "a\ufffd\ufffdb",
  ]);
});
