import { expect, test } from "vitest";
import { storagePrice } from "../../shared/files/lifecycle.ts";

test("storage is priced by the exact size, rounded once, half up to a nano-USD", () => {
  const price = storagePrice("0.10");
  expect(price(2 ** 30)).toBe(100_000_000n);
  expect(price(200 * 2 ** 20)).toBe(19_531_250n);
  expect(price(95 * 2 ** 20)).toBe(9_277_344n);
  expect(price(0)).toBe(0n);
  expect([5, 6].map(price)).toEqual([0n, 1n]);
  expect([16, 17].map(price)).toEqual([1n, 2n]);
  // Exactly half of a nano-USD.
  expect(storagePrice("0.000000001")(2 ** 29)).toBe(1n);
  expect(storagePrice("0.000000001")(2 ** 29 - 1)).toBe(0n);
  expect(storagePrice("0")(2 ** 40)).toBe(0n);
  expect(storagePrice("999999.999999999")(2 ** 30)).toBe(999_999_999_999_999n);
});

test("a malformed price stops the start", () => {
  for (const text of ["", "-1", "1e3", "0.0000000001"]) expect(() => storagePrice(text)).toThrow(RangeError);
});
