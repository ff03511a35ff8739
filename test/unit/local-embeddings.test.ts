import fc from "fast-check";
import { expect, test } from "vitest";
import { embed } from "../support/local-setup.ts";

const vectorOf = async (input: string, rest = {}) => (await embed({ input, ...rest })).data[0]?.embedding as number[];
const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, x, i) => sum + x * (b[i] ?? 0), 0);

test("every text has a vector of length 1, the same each time", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 300 }), async (text, dimensions) => {
      const vector = await vectorOf(text, { dimensions });
      expect(vector).toHaveLength(dimensions);
      expect(dot(vector, vector)).toBeCloseTo(1, 5);
      expect(await vectorOf(text, { dimensions })).toEqual(vector);
    }),
    { numRuns: 50 },
  );
});

test.each([
  ["The cat sat on the mat", "A cat is sitting on a mat", "Quarterly revenue grew by nine percent"],
  ["How do I reset my password?", "password reset instructions", "The best pasta recipes of Naples"],
  ["organization", "organization", "watermelon"],
  ["Straße in München", "Münchner Straßen", "un château en Espagne"],
])("%j is closer to %j than to %j", async (text, similar, different) => {
  const [a, b, c] = await Promise.all([text, similar, different].map((each) => vectorOf(each)));
  expect(dot(a as number[], b as number[])).toBeGreaterThan(dot(a as number[], c as number[]) + 0.1);
});

test("case and punctuation make no difference", async () => {
  expect(await vectorOf("Hello, World!")).toEqual(await vectorOf("hello world"));
});

test("256 dimensions unless requested otherwise, from 1 to 3072", async () => {
  expect(await vectorOf("a")).toHaveLength(256);
  expect(await vectorOf("a", { dimensions: 3072 })).toHaveLength(3072);
  for (const dimensions of [0, 3073, 1.5])
    await expect(embed({ input: "a", dimensions })).rejects.toMatchObject({ kind: "refused", param: "dimensions" });
});

test("base64 holds the same numbers, as little-endian float32", async () => {
  const { data } = await embed({ input: ["one", "two"], encoding_format: "base64" });
  for (const [index, text] of ["one", "two"].entries()) {
    const bytes = Buffer.from(data[index]?.embedding as string, "base64");
    expect(Array.from({ length: 256 }, (_, at) => bytes.readFloatLE(at * 4))).toEqual(await vectorOf(text));
  }
});

test("usage counts the tokens of all inputs, each up to its context", async () => {
  expect((await embed({ input: ["one two", "three"] })).usage).toEqual({ prompt_tokens: 3, total_tokens: 3 });
  expect((await embed({ input: ["word ".repeat(10_000), "one"] })).usage.prompt_tokens).toBe(8_193);
});

test("a long text yields to the event loop", async () => {
  let turns = 0;
  const count = () => {
    turns++;
    setImmediate(count).unref();
  };
  setImmediate(count).unref();
  await embed({ input: "some words ".repeat(500_000) });
  expect(turns).toBeGreaterThan(20);
});
