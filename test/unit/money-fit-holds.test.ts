import fc from "fast-check";
import { expect, test } from "vitest";
import { fitHolds, maxOpenHolds } from "../../shared/money/holds.ts";
import { newRequestId } from "../../shared/platform/ids.ts";

const hold = (most: bigint, least = most) => ({
  account: "a",
  requestId: newRequestId(),
  maxNanoUsd: most,
  minNanoUsd: least,
  expiresAt: 0,
});
const account = { frozen: false, available: 100n, held: 5n, openHolds: 0, holds: {} };
const amounts = ({ fitting }: ReturnType<typeof fitHolds>) => fitting.map(({ amountNanoUsd }) => amountNanoUsd);

test("holds are fitted in order, and a smaller one still fits after a refused one", () => {
  const group = [hold(60n), hold(50n), hold(40n), hold(1n)];
  const fitted = fitHolds(account, group);
  expect(amounts(fitted)).toEqual([60n, 40n]);
  expect(group.map((each) => fitted.refused.get(each))).toEqual([
    undefined,
    { ok: false, reason: "insufficient", availableNanoUsd: 40n, heldNanoUsd: 65n },
    undefined,
    { ok: false, reason: "insufficient", availableNanoUsd: 0n, heldNanoUsd: 105n },
  ]);
});

test("a hold with a lower minimum gets the rest, but not less than its minimum", () => {
  expect(amounts(fitHolds(account, [hold(150n, 100n)]))).toEqual([100n]);
  expect(amounts(fitHolds(account, [hold(150n, 101n)]))).toEqual([]);
});

test("the last free places go to the first holds", () => {
  const fitted = fitHolds({ ...account, openHolds: maxOpenHolds - 2 }, [hold(1n), hold(1n), hold(1n)]);
  expect(amounts(fitted)).toEqual([1n, 1n]);
  expect([...fitted.refused.values()]).toEqual([{ ok: false, reason: "full", availableNanoUsd: 98n, heldNanoUsd: 7n }]);
});

test("the sum never exceeds the balance, each amount is in its bounds, and every hold has a result", () => {
  const money = fc.bigInt({ min: 0n, max: 50n });
  const asks = fc.array(fc.record({ least: money, more: money }), { maxLength: 30 });
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 500n }), asks, (available, all) => {
      const group = all.map(({ least, more }) => hold(least + more, least));
      const { fitting, refused } = fitHolds({ ...account, available }, group);
      const sum = fitting.reduce((total, { amountNanoUsd }) => total + amountNanoUsd, 0n);
      expect(sum).toBeLessThanOrEqual(available);
      expect(fitting.length + refused.size).toBe(group.length);
      for (const { hold: asked, amountNanoUsd } of fitting) {
        expect(amountNanoUsd).toBeGreaterThanOrEqual(asked.minNanoUsd);
        expect(amountNanoUsd).toBeLessThanOrEqual(asked.maxNanoUsd);
      }
    }),
  );
});
