import { beforeAll, expect, test } from "vitest";
import { alone, never, said, shareCounting } from "../support/counting-setup.ts";

const counting = shareCounting();
beforeAll(() => counting.estimate(said("hi"), never), 60_000);

/** Processor time of this thread, whatever else runs here. */
function spentMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** The longest that this thread worked without a turn of its event loop. */
async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let [longest, last, goesOn] = [0, spentMs(), true];
  const note = () => {
    const now = spentMs();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const tick = () => {
    note();
    if (goesOn) setTimeout(tick, 1);
  };
  setTimeout(tick, 1);
  await work();
  goesOn = false;
  note();
  return longest;
}

/**
 * Holding nothing up: some 60 ms on the machine where a text that is tokenized uncut takes seconds, and as much more where
 * all is slower, because the measure is work of the same kind: a body of 5 MB written and read as JSON.
 */
function mostTurnMs(): number {
  const body = { messages: manySmall() };
  const before = spentMs();
  JSON.parse(JSON.stringify(body));
  return 1.5 * (spentMs() - before);
}

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

/** Uncut, each of the first six takes the tokenizer seconds. */
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

test.each(hostile)("100 KB of %s is counted, and holds nothing up", { timeout: 60_000 }, async (_, text, expected) => {
  let tokens = 0;
  const longest = await longestTurnMs(async () => {
    tokens = await counting.estimate(said(text), never);
  });
  expect(Math.abs(tokens - alone - expected) / expected).toBeLessThan(0.05);
  expect(longest).toBeLessThan(mostTurnMs());
});

test("20 MB is counted by a sample from all of it, and holds nothing up", { timeout: 60_000 }, async () => {
  // Flat in memory, as what JSON.parse makes is.
  const english = Buffer.from("The quick brown fox jumps over the lazy dog. ".repeat(222_222)).toString();
  const digits = Buffer.from("0123456789".repeat(1_000_000)).toString();
  // Nine words and a dot to 45 bytes; three digits to a token.
  const exact = 222_222 * 10 + 3_333_334;
  let tokens = 0;
  const longest = await longestTurnMs(async () => {
    tokens = await counting.estimate(said([english, digits].map((text) => ({ type: "text", text }))), never);
  });
  expect(Math.abs(tokens - exact) / exact).toBeLessThan(0.05);
  expect(longest).toBeLessThan(mostTurnMs());
});

test("a hundred thousand small messages are counted, and hold nothing up", { timeout: 60_000 }, async () => {
  const messages = manySmall();
  let tokens = 0;
  const longest = await longestTurnMs(async () => {
    tokens = await counting.estimate({ messages }, never);
  });
  expect(tokens).toBe(600_003);
  expect(longest).toBeLessThan(mostTurnMs());
});
