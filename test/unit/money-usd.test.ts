import fc from "fast-check";
import { expect, test } from "vitest";
import { formatUsd, parseUsd } from "../../shared/money/usd.ts";

test.each([
  ["25.00", 25_000_000_000n],
  ["0.00", 0n],
  ["0.000000001", 1n],
  ["-0.000000001", -1n],
  ["0.10", 100_000_000n],
  ["0.015", 15_000_000n],
  ["-12.50", -12_500_000_000n],
  ["1000000.00", 10n ** 15n],
  ["9223372036.854775807", 2n ** 63n - 1n],
])("%s is %d nano-USD, and back", (text, nanoUsd) => {
  expect(parseUsd(text)).toBe(nanoUsd);
  expect(formatUsd(nanoUsd)).toBe(text);
});

test.each([
  ["25", 25_000_000_000n],
  ["25.0", 25_000_000_000n],
  ["007.5", 7_500_000_000n],
  ["-0", 0n],
])("%s is read as %d nano-USD", (text, nanoUsd) => expect(parseUsd(text)).toBe(nanoUsd));

test.each([
  "",
  " ",
  "1 ",
  "NaN",
  "Infinity",
  "1e3",
  "1.0000000001",
  "1.",
  ".5",
  "+1",
  "--1",
  "0x10",
  "1,5",
  "1_0",
  "1n",
  "١",
])("%j is not an amount", (text) => expect(parseUsd(text)).toBeUndefined());

test.each(["9223372036.854775808", "-9223372036.854775808", "99999999999", "9999999999.9"])(
  "%s does not fit in an Int64",
  (text) => expect(parseUsd(text)).toBeUndefined(),
);

test("every amount survives formatting and parsing", () => {
  const amount = fc.bigInt({ min: -(2n ** 63n) + 1n, max: 2n ** 63n - 1n });
  fc.assert(
    fc.property(amount, (nanoUsd) => {
      expect(parseUsd(formatUsd(nanoUsd))).toBe(nanoUsd);
    }),
  );
});
