import { expect, test } from "vitest";
import { accrualOf } from "../../shared/money/accruals.ts";
import { beganWith, networkOf } from "../../shared/payments/config.ts";
import { unitsOf } from "../../shared/payments/quotes.ts";

test.each([
  [1n, 1n],
  [999n, 1n],
  [1_000n, 1n],
  [1_001n, 2n],
  [39_999_999n, 40_000n],
  [40_000_000n, 40_000n],
])("a price of %s nano-USD is %s units of USDC: rounded up, never down", (priceNanoUsd, units) => {
  expect(unitsOf(priceNanoUsd)).toBe(units);
});

test.each([
  ["mainnet", "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"],
  ["devnet", "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1", "4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU"],
])("%s is known by its name and by its id, with its USDC", (name, id, usdc) => {
  expect(networkOf(name)).toEqual({ id, usdc });
  expect(networkOf(id)).toEqual({ id, usdc });
});

test("a private network has no known USDC, and is identified by its genesis block", () => {
  const id = `solana:${"4".repeat(32)}` as const;
  expect(networkOf(id)).toEqual({ id, usdc: undefined });
  expect(beganWith(id, "4".repeat(44))).toBe(true);
  expect(beganWith(id, `5${"4".repeat(43)}`)).toBe(false);
});

const token = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
const eligible = new Set([token, "chosen"]);

test.each([
  [10_000, 7n, 7n],
  [1, 5_000n, 1n],
  [1, 4_999n, undefined],
  [250, 1_020n, 26n],
  [250, 1_019n, 25n],
  [0, 10n ** 18n, undefined],
  [9_999, 2n ** 62n, (2n ** 62n * 9_999n + 5_000n) / 10_000n],
])("%s basis points of %s are %s", (bps, chargedNanoUsd, nanoUsd) => {
  const buyback = nanoUsd === undefined ? undefined : { token, nanoUsd, batch: null };
  expect(accrualOf({ bps, token, eligible }, chargedNanoUsd, undefined).buyback).toEqual(buyback);
});

test.each([
  ["a choice that is eligible is taken", "chosen", "chosen"],
  ["a choice that is no longer eligible falls back to the service's token", "removed", token],
  ["without a choice it is the service's token", null, token],
])("%s", (_, choice, taken) => {
  expect(accrualOf({ bps: 10_000, token, eligible }, 1n, choice).buyback?.token).toBe(taken);
});

test("without terms nothing accrues", () => {
  expect(accrualOf(undefined, 1_000n, token)).toEqual({});
});
