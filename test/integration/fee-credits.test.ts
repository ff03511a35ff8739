import fc from "fast-check";
import { expect, test } from "vitest";
import { feeOf } from "../../shared/money/index.ts";
import { creditableFees } from "../../shared/money/usage/fee-credits.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { captureOf, held, holdOf, openAccount, startBank } from "../support/money-setup.ts";
import { runs, step } from "../support/property-runs.ts";

const balanceNanoUsd = 100_000_000n;
const terms = { feeBps: 500, allowanceNanoUsd: 20_000n };
const monthOf = (date: Date | number) => new Date(date).toISOString().slice(0, 7);
const sum = (amounts: readonly bigint[]) => amounts.reduce((total, each) => total + each, 0n);

interface Made {
  readonly account: string;
  readonly requestId: string;
  readonly month: string;
  readonly isOwn: boolean;
  readonly list: bigint;
  readonly cost: bigint;
}

const anyStep = fc.oneof(
  step(8, "call", { owner: fc.nat({ max: 1 }), list: fc.bigInt({ min: 0n, max: 9_999n }), isOwn: fc.boolean() }),
  step(1, "refund", { pick: fc.nat({ max: 20 }) }),
  step(3, "later", { days: fc.nat({ max: 9 }) }),
  step(2, "credit", { ends: fc.boolean() }),
);

test("fees are credited once for each day, up to the month's allowance, in processes that run at once and may end", async () => {
  const { money, another, clock } = await startBank();
  const other = await another();
  const property = fc.asyncProperty(fc.array(anyStep, { minLength: 1, maxLength: 40 }), async (steps) => {
    const owners = [await openAccount(money, balanceNanoUsd), await openAccount(money, balanceNanoUsd)];
    const made: Made[] = [];
    let hasRefunds = false;
    const credit = async (signal?: AbortSignal) => {
      await money.sumUsage();
      await Promise.all([money.creditFees(terms, signal), other.creditFees(terms)]);
    };
    for (const it of steps)
      switch (it.do) {
        case "call": {
          const [account, { list, isOwn }] = [owners[it.owner] ?? "", it];
          const cost = isOwn ? feeOf(list, terms.feeBps) : list;
          const hold = await held(money, holdOf(account, 10_000n, { expiresAt: clock.now() + dayMs }));
          await money.charge(captureOf(hold, cost, isOwn ? { byok: { key: "pkey_1", listNanoUsd: list } } : {}));
          made.push({ account, requestId: hold.requestId, month: monthOf(clock.now()), isOwn, list, cost });
          break;
        }
        case "refund": {
          const call = made[it.pick];
          // Sums of an earlier month are final.
          if (!call || call.cost === 0n || call.month !== monthOf(clock.now())) break;
          made.splice(it.pick, 1);
          await money.refund(call.account, call.requestId);
          hasRefunds = true;
          break;
        }
        case "later":
          clock.later(it.days * dayMs);
          break;
        case "credit":
          await credit(it.ends ? AbortSignal.abort() : undefined);
      }
    clock.later(3 * dayMs);
    await credit();
    await credit();
    for (const account of owners) {
      const own = made.filter((call) => call.account === account);
      const entries = await money.ledger(account, { kind: "credit", limit: 1_000 });
      const credits = entries.filter(({ id }) => id.startsWith("byok:"));
      for (const month of new Set(
        [...own, ...credits.map(({ id }) => ({ month: id.slice(-10, -3) }))].map((each) => each.month),
      )) {
        const calls = own.filter((call) => call.isOwn && call.month === month);
        const [list, fees] = [sum(calls.map((call) => call.list)), sum(calls.map((call) => call.cost))];
        const ofMonth = credits.filter(({ id }) => id.slice(-10, -3) === month);
        const credited = sum(ofMonth.map(({ amountNanoUsd }) => amountNanoUsd));
        const creditable = creditableFees(list, fees, terms);
        // What was credited for a call is not taken back when the call is refunded later.
        expect(hasRefunds ? credited >= creditable : credited === creditable).toBe(true);
        expect(credited).toBeLessThanOrEqual((terms.allowanceNanoUsd * 5n) / 100n);
      }
      const available =
        balanceNanoUsd - sum(own.map(({ cost }) => cost)) + sum(credits.map((each) => each.amountNanoUsd));
      expect((await money.account(account))?.availableNanoUsd).toBe(available);
    }
  });
  await fc.assert(property, { numRuns: runs(100, 12) });
  expect((await money.check({ full: true })).ok).toBe(true);
});
