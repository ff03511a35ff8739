import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { formatUsd } from "#money";
import { asCurl, asPython } from "../../dashboard/src/lib/code-samples.ts";
import { costLines } from "../../dashboard/src/lib/cost.ts";
import { inputFields, toInput } from "../../dashboard/src/lib/input-schema.ts";
import { priceRows } from "../../dashboard/src/lib/prices.ts";
import { remaining } from "../../dashboard/src/lib/time.ts";
import { fromNano, longestRest, sumUsd, toNano, usdText } from "../../dashboard/src/lib/usd.ts";

const nano = fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n });

test("amounts are read, added and written as exactly as the service writes them", () => {
  fc.assert(
    fc.property(nano, nano, (one, other) => {
      expect(toNano(formatUsd(one))).toBe(one);
      expect(toNano(fromNano(one))).toBe(one);
      expect(toNano(sumUsd([formatUsd(one), formatUsd(other)]))).toBe(one + other);
    }),
  );
});

test.for([
  ["0", "$0.00"],
  ["-1234567.5", "-$1,234,567.50"],
  ["9007199254740993.000000001", "$9,007,199,254,740,993.000000001"],
] as const)("%s is shown as %s", ([amount, shown]) => {
  expect(usdText(amount)).toBe(shown);
});

test("a column of amounts has as much space after the cents as its longest one needs", () => {
  expect(longestRest(["12", "0.5", "0.000000001", "3.14159"])).toBe(7);
  expect(longestRest(["12.50", "3"])).toBe(0);
});

test.for([
  [669_600, "7 d 18 h"],
  [172_799, "47 h 59 min"],
  [3_600, "1 h 00 min"],
  [249, "4 min 09 s"],
  [-1, "0 min 00 s"],
] as const)("%i seconds remain as %s", ([seconds, shown]) => {
  expect(remaining(seconds, 0)).toBe(shown);
});

test("a call's cost is worked out line by line from its usage and the price of its tier", () => {
  const x_pricing = {
    input: { unit: "1M_tokens", list_usd: "2.50", elite_usd: "2.25" },
    output: { unit: "1M_tokens", list_usd: "10.00", elite_usd: "9.00" },
    second: { unit: "second", list_usd: "0.045", elite_usd: "0.0405" },
  };
  const usage = { input: 1201, output: 0, second: 2.5, unpriced: 3 };
  const of = (isElite: boolean) =>
    costLines(usage, priceRows({ x_pricing }), isElite).map(({ key, costUsd }) => [key, costUsd]);
  expect(of(false)).toEqual([
    ["input", "0.0030025"],
    ["second", "0.1125"],
  ]);
  expect(of(true)).toEqual([
    ["input", "0.00270225"],
    ["second", "0.10125"],
  ]);
});

test("a model's schema becomes a form, and the form's texts the values that the schema asks for", () => {
  const schema = {
    type: "object",
    required: ["prompt"],
    properties: {
      n: { type: "integer", minimum: 1, maximum: 4, default: 1 },
      seconds: { enum: [4, 8] },
      loop: { type: "boolean" },
      image: { anyOf: [{ type: "string", pattern: "^upl_[0-9A-Za-z]{1,64}$" }, { type: "array" }] },
      points: { type: "array" },
      seed: { type: "number" },
      prompt: { type: "string", maxLength: 4000 },
    },
  };
  const fields = inputFields(schema);
  expect(fields.map(({ name, kind }) => [name, kind])).toEqual([
    ["prompt", "text"],
    ["n", "number"],
    ["seconds", "choice"],
    ["loop", "switch"],
    ["image", "upload"],
    ["points", "json"],
    ["seed", "number"],
  ]);
  const typed = { prompt: "A cat", n: "2", seconds: "8", loop: "false", points: "[1,2]", seed: "" };
  expect(toInput(fields, schema, typed)).toEqual({ prompt: "A cat", n: 2, seconds: 8, loop: false, points: [1, 2] });
});

test("code to copy says the same as the call, whatever its texts hold", () => {
  const body = { messages: [{ content: `it's "$HOME" \`date\` \\ null\nnew line` }], stream: false, stop: null };
  const call = { url: "http://127.0.0.1/v1", body };
  const sent = execFileSync("sh", ["-c", asCurl(call).replace(/^curl/, "printf '%s\\n'")], { encoding: "utf8" });
  expect(sent).toContain(JSON.stringify(body, null, 2));
  expect(asPython(call)).toContain('"stream": False');
  expect(asPython(call)).toContain('\\\\ null\\nnew line"');
});
