import { expect, test } from "vitest";
import { geminiConverter } from "../../workers/conversion/gemini/index.ts";
import { estimate, framesOf, ours } from "../support/formats-gemini-assemble.ts";

const { native } = geminiConverter;
const candidate = { content: { parts: [{ text: "So far" }], role: "model" }, finishReason: "CONTINUATION" };
const answer = { candidates: [{ ...candidate, continuationToken: "dG9rZW4=" }, { index: 1 }] };
const without = { candidates: [candidate, { index: 1 }] };

test("what an answer could be gone on from is left out of it, whole and in a stream", () => {
  expect(native.finish(answer, ours, estimate)).toEqual(without);
  expect(framesOf(native.stream(ours).write(answer))).toEqual([without]);
});

test("an answer without it is the same object", () => {
  expect(native.finish(without, ours, estimate)).toBe(without);
});

test.each([undefined, null, "x", {}, [null, "x", 5]])("candidates that are none pass: %j", (candidates) => {
  expect(native.finish({ candidates }, ours, estimate)).toEqual({ candidates });
});
