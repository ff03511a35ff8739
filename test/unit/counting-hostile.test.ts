import { setImmediate } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import { promptOf } from "../../workers/counting/prompt.ts";
import { readPrompt, sampleOf } from "../../workers/counting/sample.ts";
import { alone, never, said, shareCounting } from "../support/counting-setup.ts";

const counting = shareCounting();
beforeAll(() => counting.estimate(said("hi"), never), 60_000);

/** Counts the turns of the event loop until the work is done. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let [turns, isDone] = [0, false];
  const end = () => void (isDone = true);
  work.then(end, end);
  for (; !isDone; turns++) await setImmediate();
  return turns;
}

/** The most bytes that one turn processes. */
const turnBytes = 512 * 1024;

const manySmall = () => Array.from({ length: 100_000 }, () => ({ role: "user", content: "hello world" }));

const random = (length: number) => {
  let seed = 7;
  return Buffer.from(
    Uint8Array.from({ length }, () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed >> 16;
    }),
  );
};
const kb = 1_024;
const letters = random(120 * kb)
  .toString("base64")
  .replace(/[^a-z]/gi, "")
  .toLowerCase();

/** Each of the first six would take the tokenizer seconds without splitting. */
const hostile: readonly (readonly [string, string, number])[] = [
  ["one letter", "a".repeat(120 * kb), 120 * 128],
  ["emoji", "😀".repeat(30 * kb), 30 * kb],
  ["emoji joined", "👩‍👩‍👧‍👦🇩🇪🏽❤️".repeat(2_000), 36_000],
  ["blanks", " ".repeat(120 * kb), 940],
  ["one Chinese character", "的".repeat(40 * kb), 40 * kb],
  ["letters at random", letters, letters.length * 0.517],
  ["base64", random(90 * kb).toString("base64"), 120 * kb * 0.68],
  ["halves of characters", "\ud800".repeat(30 * kb), 3_900],
];

test.each(hostile)("100 KB of %s is counted while the event loop goes on", async (_, text, expected) => {
  const counted = counting.estimate(said(text), never);
  // On the main thread, tokenizing would take only a handful of turns.
  expect(await turnsDuring(counted)).toBeGreaterThan(100);
  expect(Math.abs((await counted) - alone - expected) / expected).toBeLessThan(0.05);
});

test("20 MB is counted by a sample from all of it, in many turns of the event loop", async () => {
  // Flat in memory, like the strings of JSON.parse.
  const english = Buffer.from("The quick brown fox jumps over the lazy dog. ".repeat(222_222)).toString();
  const digits = Buffer.from("0123456789".repeat(1_000_000)).toString();
  // 45 bytes have nine words and a dot; a token has three digits.
  const exact = 222_222 * 10 + 3_333_334;
  const request = said([english, digits].map((text) => ({ type: "text", text })));
  const tokens = await counting.estimate(request, never);
  expect(Math.abs(tokens - exact) / exact).toBeLessThan(0.05);
  const reading = readPrompt(promptOf(request, undefined));
  expect(await turnsDuring(reading)).toBeGreaterThan(20_000_000 / turnBytes);
  expect(await turnsDuring(sampleOf(await reading))).toBeGreaterThan(20_000_000 / turnBytes);
});

test("a hundred thousand small messages are counted, in many turns of the event loop", async () => {
  const request = { messages: manySmall() };
  expect(await counting.estimate(request, never)).toBe(600_003);
  const reading = readPrompt(promptOf(request, undefined));
  expect(await turnsDuring(reading)).toBeGreaterThan(15);
  expect(await turnsDuring(sampleOf(await reading))).toBeGreaterThan(5);
});
