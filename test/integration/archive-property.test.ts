import fc from "fast-check";
import { expect, test } from "vitest";
import { createMoney } from "../../shared/money/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import {
  archivedLines,
  claimMs,
  expectExact,
  ledgerIds,
  log,
  mortal,
  retentionDays,
  sizes,
  startArchive,
} from "../support/archive-setup.ts";
import { captureOf, held, holdOf, inTurn, openAccount } from "../support/money-setup.ts";

type Bank = Awaited<ReturnType<typeof startArchive>>;

async function spend({ money, clock }: Bank, account: string, costNanoUsd: bigint): Promise<string> {
  const hold = await held(money, holdOf(account, 100n, { expiresAt: clock.now() + dayMs }));
  await money.charge(captureOf(hold, costNanoUsd));
  return hold.requestId;
}

/** Runs a process that dies, and then another one. */
async function runMortal(bank: Bank, lives: number): Promise<boolean> {
  const { mongo, objects, isDead } = mortal(bank.mongo, bank.objects, lives);
  const money = createMoney({ mongo, clock: bank.clock, log });
  const run = money.createArchive({ objects, retentionDays, sizes }).run();
  await run.catch((error: unknown) => {
    if (!isDead()) throw error;
  });
  return isDead();
}

test("a run that is killed at any step loses no entry and counts none twice; the next one finishes its work", async () => {
  const bank = await startArchive();
  const { money, mongo, objects, archive, clock, grow } = bank;
  const accounts = [await openAccount(money, 1_000_000n), await openAccount(money, 1_000_000n)];
  const all = new Set(await ledgerIds(mongo));
  let spentNanoUsd = 0n;
  let lives = 0;
  for (let isKilled = true; isKilled; lives++) {
    const costs = [0n, 1n, 20n, 3n, 4n];
    const ids = await Promise.all(costs.map((cost, at) => spend(bank, inTurn(accounts, at), cost)));
    for (const id of ids) all.add(id);
    spentNanoUsd += 28n;
    await grow();
    isKilled = await runMortal(bank, lives);
    await expectExact(money);
    const archived = (await archivedLines(mongo, objects)).map(({ id }) => id);
    expect(new Set([...archived, ...(await ledgerIds(mongo))])).toEqual(all);
    expect(new Set(archived).size).toBe(archived.length);

    // Another run may take over the process's unfinished work by then.
    clock.later(claimMs);
    await archive.run();
    await expectExact(money);
    const now = [...(await archivedLines(mongo, objects)).map(({ id }) => id), ...(await ledgerIds(mongo))];
    expect(now).toHaveLength(all.size);
    expect(new Set(now)).toEqual(all);
    // Only the credits remain.
    expect(await ledgerIds(mongo)).toHaveLength(2);
  }
  expect(lives).toBeGreaterThan(12);
  const balances = await money.balances(accounts);
  expect([...balances.values()].reduce((sum, balance) => sum + balance, 0n)).toBe(2_000_000n - spentNanoUsd);
});

const month = fc.array(
  fc.record({
    account: fc.nat({ max: 3 }),
    cost: fc.bigInt({ min: 0n, max: 100n }),
    ends: fc.constantFrom("settled" as const, "settled" as const, "captured" as const, "refunded" as const),
  }),
  { maxLength: 14 },
);
const step = fc.record({
  entries: month,
  counts: fc.boolean(),
  kills: fc.array(fc.nat({ max: 45 }), { maxLength: 2 }),
  workers: fc.integer({ min: 1, max: 3 }),
});

test("months of entries are archived by several workers that die, and every balance and check stays exact", async () => {
  const bank = await startArchive();
  const { money, mongo, objects, archive, clock } = bank;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 4 }), async (steps) => {
      const accounts: string[] = [];
      for (let at = 0; at < 4; at++) accounts.push(await openAccount(money, 100_000n));
      const spent = new Map(accounts.map((account) => [account, 0n]));
      const before = (await ledgerIds(mongo)).length + (await archivedLines(mongo, objects)).length;
      let made = 0;
      for (const { entries, counts, kills, workers } of steps) {
        const make = async ({ account: at, cost, ends }: (typeof entries)[number]) => {
          const account = inTurn(accounts, at);
          const hold = await held(money, holdOf(account, 100n, { expiresAt: clock.now() + 60_000 }));
          if (ends === "captured") await money.capture(captureOf(hold, cost));
          else await money.charge(captureOf(hold, cost));
          if (ends === "refunded") await money.refund(account, hold.requestId);
          else spent.set(account, (spent.get(account) ?? 0n) + cost);
          made += ends === "refunded" ? 2 : 1;
        };
        await Promise.all(entries.map(make));
        if (counts) await money.checkpoint();
        clock.later(31 * dayMs);
        for (const lives of kills) {
          await runMortal(bank, lives);
          await expectExact(money);
        }
        clock.later(claimMs);
        await Promise.all(Array.from({ length: workers }, () => archive.run()));
        await expectExact(money);
        const balances = await money.balances(accounts);
        for (const account of accounts) expect(balances.get(account)).toBe(100_000n - (spent.get(account) ?? 0n));
        await money.sweep(async () => false);
      }
      const ids = [...(await ledgerIds(mongo)), ...(await archivedLines(mongo, objects)).map(({ id }) => id)];
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids).toHaveLength(before + made);
    }),
    { numRuns: 6, seed: 20_260_101, endOnFailure: true },
  );
});
