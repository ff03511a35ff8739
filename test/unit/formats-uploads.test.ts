import fc from "fast-check";
import { expect, test } from "vitest";
import { findUploads, isUploadId } from "#formats";

const letters = fc.constantFrom(...Array.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"));
const uploadId = fc.string({ unit: letters, minLength: 1, maxLength: 64 }).map((tail) => `upl_${tail}`);
/** Text that may contain an id but is not one. */
const notAnId = fc
  .oneof(
    fc.string(),
    fc.tuple(fc.string({ minLength: 1 }), uploadId).map((both) => both.join("")),
    fc.tuple(uploadId, fc.constantFrom(" ", "\n", "-", "/", ".png", "é")).map((both) => both.join("")),
    uploadId.map((id) => id.toUpperCase()),
    fc.constantFrom("upl_", "upl", `upl_${"a".repeat(65)}`, "file_abc"),
  )
  .filter((text) => !isUploadId(text));

test.each([
  ["of 24 letters", "upl_abcdefghijklmnopqrstuvwx", true],
  ["in a sentence", "see upl_abcdefghijklmnopqrstuvwx", false],
  ["with a line end", "upl_abcdefghijklmnopqrstuvwx\n", false],
  ["without letters", "upl_", false],
  ["of 65 letters", `upl_${"a".repeat(65)}`, false],
  ["with other letters", "upl_äbcdefghijklmnopqrstuvwx", false],
  ["in a list", ["upl_abc"], false],
  ["that is no text", { id: "upl_abc" }, false],
])("an id %s", (_what, value, isOne) => {
  expect(isUploadId(value)).toBe(isOne);
});

const field = fc.stringMatching(/^[a-z_]{1,8}$/);
const leaf = fc.oneof(uploadId, notAnId, fc.integer(), fc.boolean(), fc.constant(null));
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    leaf,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(field, tie("tree"), { maxKeys: 4 }),
  ),
}));

/** The value at a path such as `input.references[0].file`. */
const follow = (value: unknown, param: string): unknown =>
  param
    .split(/[.[\]]+/)
    .reduce<unknown>((at, step) => (step === "" ? at : (at as Record<string, unknown>)[step]), value);

const countIds = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return isUploadId(value) ? 1 : 0;
  return Object.values(value).reduce<number>((sum, each) => sum + countIds(each), 0);
};

test("every id in an input is found once, with its path", () => {
  fc.assert(
    fc.property(fc.dictionary(field, tree), fc.constantFrom("image" as const, undefined), (input, kind) => {
      const body = { input };
      const refs = findUploads(input, "input", kind);
      expect(refs).toHaveLength(countIds(input));
      expect(new Set(refs.map(({ param }) => param)).size).toBe(refs.length);
      for (const { id, param, kind: foundKind } of refs) {
        expect(follow(body, param)).toBe(id);
        expect(foundKind).toBe(kind);
      }
    }),
  );
});

/** A list in a list in a list. */
const nested = (depth: number, inside: unknown): unknown => {
  let value = inside;
  for (let level = 0; level < depth; level++) value = level % 2 ? [value] : { a: value };
  return value;
};

test("deep nesting is refused by name", () => {
  const deepEnough = 63;
  expect(findUploads(nested(deepEnough, "upl_abc"), "input")).toHaveLength(1);
  fc.assert(
    fc.property(fc.integer({ min: 65, max: 50_000 }), (depth) => {
      expect(() => findUploads(nested(depth, "upl_abc"), "input")).toThrow(
        expect.objectContaining({ code: "invalid_value", status: 400, param: expect.stringMatching(/^input/) }),
      );
    }),
    { numRuns: 20 },
  );
});
