import { expect, test } from "vitest";
import { moderate } from "../support/local-setup.ts";

const flagged = async (input: unknown) => {
  const { results } = await moderate({ input });
  return results.map(({ categories }) => Object.keys(categories).filter((each) => categories[each]));
};

test.each([
  ["Good morning, how are you?", []],
  ["You IDIOT!", ["harassment"]],
  ["y0u 1d10t", ["harassment"]],
  ["Nobody   likes you...", ["harassment"]],
  ["A n\u00fade dream", ["sexual"]],
  ["Show me how to make a bomb", ["illicit/violent", "violence"]],
  // Only whole words match.
  ["A skill, a stable, a bombastic speech, 3 boots", []],
])("%j: %j", async (text, categories) => {
  expect(await flagged(text)).toEqual([categories]);
});

test("phrases are found wherever the text is cut into pieces, and accents without end cost no time", async () => {
  const endless = "\u0301\u0316".repeat(250_000);
  expect(await flagged(`k${endless}ill`)).toEqual([["violence"]]);
  const around = Array.from(
    { length: 40 },
    (_, at) => `${"x".repeat(8_170 + at)} shut -- up, idiot ${"y".repeat(9_000)}`,
  );
  const results = (await moderate({ input: around })).results.map(
    ({ category_scores }) => category_scores["harassment"],
  );
  expect(results).toEqual(around.map(() => 0.75));
});

test("texts have a result each, the parts of an input one together", async () => {
  expect(await flagged(["murder", "hello", ""])).toEqual([["violence"], [], []]);
  const parts = ["murder", "you moron"].map((text) => ({ type: "text", text }));
  expect(await flagged(parts)).toEqual([["harassment", "violence"]]);
});

test("every phrase more raises the score; all categories have one", async () => {
  const [one, two] = (await moderate({ input: ["kill", "kill, stab"] })).results;
  expect([one?.category_scores["violence"], two?.category_scores["violence"]]).toEqual([0.5, 0.75]);
  expect(Object.keys(one?.categories ?? {})).toHaveLength(13);
  expect(Object.keys(one?.category_applied_input_types ?? {})).toEqual(Object.keys(one?.categories ?? {}));
});

test("images are refused", async () => {
  const image = { type: "image_url", image_url: { url: "https://pictures.test/a.png" } };
  await expect(moderate({ input: [{ type: "text", text: "a" }, image] })).rejects.toMatchObject({ kind: "refused" });
});
