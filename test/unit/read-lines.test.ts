import { expect, test } from "vitest";
import { type FileLine, readLines } from "#batches";

async function* chunksOf(text: string, size: number) {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const read = (text: string, size: number, from = { line: 0, byte: 0 }) =>
  Array.fromAsync(readLines(chunksOf(text, size), from, 8));
const shown = ({ line, content }: FileLine) => [line, content?.toString()];

const text = '\n \r\n\t {"a":1}\r\n\n\n{"b":"é"}xxxxx\n\n   [2]  \n  last';
const expected = [
  [0, '{"a":1}\r'],
  [1, undefined],
  [2, "[2]  "],
  [3, "last"],
];

test("lines of white space are no lines, wherever chunks end, and each line can be read again at its place", async () => {
  for (let size = 1; size <= text.length; size++) {
    const lines = await read(text, size);
    expect([size, lines.map(shown)]).toEqual([size, expected]);
    for (const { line, byte, bytes } of lines) {
      const rest = Buffer.from(text).subarray(byte).toString();
      const [again] = await read(rest, size, { line, byte });
      expect([size, again && shown(again), again?.byte, again?.bytes]).toEqual([size, expected[line], byte, bytes]);
    }
  }
});

test("a file of blank lines is skipped in a few turns, and has no lines", async () => {
  const blank = Buffer.alloc(2 ** 20, "\n");
  async function* file() {
    for (let count = 0; count < 50; count++) yield blank;
    yield Buffer.from("{}");
  }
  expect(await Array.fromAsync(readLines(file(), { line: 0, byte: 0 }, 8))).toEqual([
    { line: 0, byte: 50 * 2 ** 20, bytes: 2, content: Buffer.from("{}") },
  ]);
});
