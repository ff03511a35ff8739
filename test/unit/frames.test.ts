import fc from "fast-check";
import { expect, test } from "vitest";
import { type Frame, fromField, limitBytes, splitText, toField } from "../../shared/jobs/frames.ts";

/** A text over several frames: few characters, repeated, after one that shifts the cuts. */
const longText = fc
  .tuple(fc.string({ maxLength: 3 }), fc.string({ unit: "binary", minLength: 1, maxLength: 5 }), fc.nat(300_000))
  .map(([before, unit, length]) => before + unit.repeat(Math.ceil(length / unit.length)));

test("parts of a text fit a frame, hold whole characters, and make up the text", () => {
  fc.assert(
    fc.property(longText, (text) => {
      const parts = splitText(text);
      expect(parts.join("")).toBe(text);
      for (const part of parts) {
        expect(Buffer.byteLength(part)).toBeLessThanOrEqual(limitBytes);
        expect(part.isWellFormed()).toBe(true);
      }
    }),
    { numRuns: 50 },
  );
});

test("a surrogate pair on the border of a part is not cut", () => {
  const border = Math.floor(limitBytes / 3);
  const text = `${"a".repeat(border - 1)}😀${"b".repeat(border)}`;
  expect(splitText(text).map((part) => part.isWellFormed())).toEqual([true, true, true]);
  expect(splitText(text).join("")).toBe(text);
});

test("the widest characters fit too", () => {
  for (const part of splitText("€".repeat(300_000))) expect(Buffer.byteLength(part)).toBeLessThanOrEqual(limitBytes);
});

test("a short text is one part, an empty one too", () => {
  expect(splitText("abc")).toEqual(["abc"]);
  expect(splitText("")).toEqual([""]);
});

test.each<Frame>([
  { requestId: "req_1", seq: 0, kind: "chunk", data: "data: {}\n\n", attempt: "a1" },
  { requestId: "req_1", seq: 0, kind: "chunk", data: "", outcome: { headers: { "x-ignored-params": "a, b" } } },
  { requestId: "req_1", seq: 7, kind: "final", data: "", outcome: { cost: "12", tokens: 3 } },
  {
    requestId: "req_1",
    seq: -1,
    kind: "error",
    data: "{}",
    outcome: { answerLost: true, ending: "data: {}\n\n\u2028" },
  },
])("a frame of kind $kind reads as it was written", (frame) => {
  expect(fromField(...toField(frame))).toEqual(frame);
});

test("anything but a frame is ignored", () => {
  expect(fromField("lease", "1")).toBeUndefined();
  expect(fromField("other req_1 0 a1 ", "")).toBeUndefined();
  expect(fromField("", "")).toBeUndefined();
});
