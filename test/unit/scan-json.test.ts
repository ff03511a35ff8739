import fc from "fast-check";
import { expect, test } from "vitest";
import { createJsonScan, type JsonLimits, jsonLimits, unlimitedJson } from "../../shared/formats/scan-json.ts";

function scan(text: string, limits: JsonLimits = unlimitedJson, chunkBytes = 64 * 1024) {
  const scanning = createJsonScan(limits);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += chunkBytes) scanning.push(bytes.subarray(at, at + chunkBytes));
  return scanning;
}

/** The same counts of a parsed value. */
function countOf(value: unknown) {
  const names = new Set<string>();
  const counts = { values: 0, wholeNumbers: 0, nameBytes: 0 };
  let levels = 0;
  const walk = (each: unknown, level: number): void => {
    if (typeof each !== "object" || each === null) return;
    levels = Math.max(levels, level);
    for (const [name, inner] of Object.entries(each)) {
      const isWhole = Array.isArray(each) && /^\d{1,10}$/.test(JSON.stringify(inner));
      counts[isWhole ? "wholeNumbers" : "values"]++;
      if (!Array.isArray(each)) {
        const written = JSON.stringify(name).slice(1, -1);
        names.add(written);
        counts.nameBytes += Buffer.byteLength(written);
      }
      walk(inner, level + 1);
    }
  };
  walk(value, 1);
  return { levels, counts: { ...counts, names: names.size } };
}

const whole = fc.nat().map((tokens) => Array(3).fill(tokens) as unknown);
const texts = fc.string({ unit: fc.constantFrom('"', "\\", "[", "{", "}", "]", ",", ":", "1", " ", "é", "漢", "a\n") });
const json = fc
  .letrec((tie) => ({
    value: fc.oneof({ maxDepth: 5 }, fc.jsonValue(), texts, whole, tie("list"), tie("object")),
    list: fc.array(tie("value"), { maxLength: 40 }),
    object: fc.dictionary(fc.oneof(texts, fc.constantFrom("role", "x".repeat(100))), tie("value")),
  }))
  .value.map((value) => JSON.parse(JSON.stringify(value)) as unknown);

test("the counts of any JSON are those of its parsed value, however it is written and cut", () => {
  fc.assert(
    fc.property(
      json,
      fc.constantFrom("", " ", "\n\t"),
      fc.integer({ min: 1, max: 80 }),
      (value, indent, chunkBytes) => {
        const text = JSON.stringify(value, null, indent);
        const { counts: found, levels } = countOf(value);
        const otherBytes = Buffer.from(text).filter((byte) => byte > 127).length;
        const counts = { ...found, escapes: text.match(/\\./g)?.length ?? 0, otherBytes };
        expect(scan(text, unlimitedJson, chunkBytes).counts).toEqual(counts);
        const most = { ...unlimitedJson, ...counts, levels };
        expect(() => scan(text, most, chunkBytes)).not.toThrow();
        const positive = Object.entries({ ...counts, levels }).filter(([, count]) => count > 0);
        for (const [name, count] of positive)
          expect(() => scan(text, { ...most, [name]: count - 1 }, chunkBytes)).toThrow(String(count - 1));
      },
    ),
  );
});

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

test.each<[what: string, text: string, message: string | undefined, param?: string]>([
  ["the most levels", nested(128), undefined],
  ["a level more", nested(129), "The body: is nested too deep; at most 128 levels."],
  ["in a field", `{"y":{"z":1},"x":${nested(128)}}`, "x: is nested too deep; at most 128 levels.", "x"],
  ["in a field whose name is no path", `{"a b":${nested(128)}}`, "The body: is nested too deep; at most 128 levels."],
  ["never closed", "[".repeat(1_000_000), "The body: is nested too deep; at most 128 levels."],
  ["closed more often than opened", "]".repeat(1_000), undefined],
  ["a number of 100 characters", `[-${"1".repeat(99)}]`, undefined],
  ["a number of 101 characters", `{"x":-${"1".repeat(100)}}`, "The body has a number of more than 100 characters."],
  ["a long word that is no number", `[${"x".repeat(1_000)}]`, undefined],
  ["as many fields of one name as values", `{${Array(50_000).fill('"a":1').join()}}`, undefined],
  ["a value more", `{${Array(50_001).fill('"a":1').join()}}`, "The body has more than 50000 values."],
  [
    "whole numbers of more than ten digits",
    `[${Array(50_001).fill("12345678901").join()}]`,
    "The body has more than 50000 values.",
  ],
  ["fractions", `[${Array(50_001).fill("0.1").join()}]`, "The body has more than 50000 values."],
  ["a name that never ends", `{"${"x".repeat(5_000_000)}`, "The body has more than 4194304 bytes of field names."],
  ["a text that never ends", `["${'[\\"'.repeat(700_000)}`, undefined],
  ["as many bytes that are not ASCII as there may be", `["${"é".repeat(4 * 1024 * 1024)}"]`, undefined],
  [
    "a character more",
    `["${"é".repeat(4 * 1024 * 1024 + 1)}"]`,
    "The body has more than 8388608 bytes that are not ASCII.",
  ],
  [
    "as many bytes of tools as there may be",
    `{"tools":["${"x".repeat(4_194_290)}"],"y":"${"x".repeat(5_000_000)}"}`,
    undefined,
  ],
  ["more bytes of tools", `{"tools":["${"x".repeat(4_194_304)}"]}`, "tools: is longer than 4194304 bytes.", "tools"],
  ["an inner field of that name", `{"x":{"tools":"${"x".repeat(5_000_000)}"},"tools":[]}`, undefined],
  ["as many escapes as there may be", `["${"\\ud83d".repeat(800_000)}"]`, undefined],
  ["an escape more", `["${"\\\\".repeat(800_001)}"]`, "The body has more than 800000 escaped characters."],
])("%s", (_, text, message, param) => {
  let thrown: unknown;
  try {
    scan(text, jsonLimits);
  } catch (error) {
    thrown = error;
  }
  const refusal = expect.objectContaining({ status: 400, code: "invalid_value", message, param }) as unknown;
  expect(thrown).toEqual(message && refusal);
});

/** It takes 0.2 s, or half a minute if each text searches the rest of the chunk. */
const limitMs = 3_000;

test("a chunk of 19 MB with 90,000 texts takes linear time", () => {
  const text = JSON.stringify(Array(90_000).fill("ab ".repeat(70)));
  const start = process.cpuUsage();
  expect(scan(text, unlimitedJson, text.length).counts).toMatchObject({ values: 90_000, escapes: 0 });
  const { user, system } = process.cpuUsage(start);
  expect((user + system) / 1_000).toBeLessThan(limitMs);
});
