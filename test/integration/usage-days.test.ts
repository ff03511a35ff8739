import fc from "fast-check";
import { expect, test } from "vitest";
import { budgetPeriods, periodAt } from "../../api/keys/budget-period.ts";
import type { LedgerEntry, Money } from "../../shared/money/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { captureOf, held, holdOf, openAccount, profiled, startBank, times } from "../support/money-setup.ts";
import { step } from "../support/property-runs.ts";

const dayOf = (date: Date) => date.toISOString().slice(0, 10);
const everything = { from: "2000-01-01", to: "2999-12-31", limit: 10_000 };
const groupBy = ["day", "model", "key", "endpoint"] as const;

/** The expected usage by the ledger: plain sums over all its entries. */
async function plainSums(money: Money, account: string) {
  const entries = await money.ledger(account, { limit: 10_000 });
  const callOf = ({ id, kind }: LedgerEntry) =>
    entries.find((entry) => entry.id === (kind === "refund" ? id.slice("refund:".length) : id))?.request;
  const rows = new Map<string, { calls: number; failed: number; inputTokens: number; costNanoUsd: bigint }>();
  for (const entry of entries) {
    const call = callOf(entry);
    if (!call) continue;
    const { model = null, key = null, endpoint = null, status, usage } = call;
    const name = JSON.stringify([dayOf(entry.createdAt), model, key, endpoint]);
    const row = rows.get(name) ?? { calls: 0, failed: 0, inputTokens: 0, costNanoUsd: 0n };
    const isCall = entry.kind !== "refund";
    rows.set(name, {
      calls: row.calls + Number(isCall),
      failed: row.failed + Number(isCall && status === "failed"),
      inputTokens: row.inputTokens + (isCall ? (usage.input ?? 0) + (usage.cached_input ?? 0) : 0),
      costNanoUsd: row.costNanoUsd - entry.amountNanoUsd,
    });
  }
  return rows;
}

async function shownSums(money: Money, account: string) {
  const rows = await money.usage(account, { ...everything, groupBy });
  return new Map(
    rows.map(({ day, model, key, endpoint, calls, failed, inputTokens, costNanoUsd }) => [
      JSON.stringify([day, model, key, endpoint]),
      { calls, failed, inputTokens, costNanoUsd },
    ]),
  );
}

/** The expected charges of a budget: the calls since then, less the refunds since then. */
async function plainCharges(money: Money, account: string, key: string, since: number): Promise<bigint> {
  const entries = await money.ledger(account, { limit: 10_000 });
  const ids = new Set(entries.filter(({ request }) => request?.key === key).map(({ id }) => id));
  return entries
    .filter(({ id, createdAt }) => createdAt.getTime() >= since && ids.has(id.replace(/^refund:/, "")))
    .reduce((sum, { amountNanoUsd }) => sum - amountNanoUsd, 0n);
}

const anyStep = fc.oneof(
  step(8, "call", {
    model: fc.nat({ max: 2 }),
    key: fc.nat({ max: 1 }),
    cost: fc.bigInt({ min: 0n, max: 90n }),
    failed: fc.boolean(),
    upload: fc.boolean(),
  }),
  step(2, "refund", { pick: fc.nat({ max: 100 }) }),
  step(2, "sweep"),
  step(4, "sum", { process: fc.nat({ max: 1 }) }),
  step(2, "later", { hours: fc.nat({ max: 90 }).map((minutes) => minutes / 60) }),
  step(1, "later", { hours: fc.nat({ max: 80 }) }),
  step(1, "later", { hours: fc.nat({ max: 1_000 }) }),
);
const batches = fc.array(fc.array(anyStep, { minLength: 1, maxLength: 10 }), { minLength: 1, maxLength: 6 });

test("usage by day is the plain sum of the ledger, whenever the job runs, twice and in two workers at once", async () => {
  const { money, mongo, clock, another } = await startBank();
  const processes = [money, await another()];
  const property = fc.asyncProperty(batches, async (all) => {
    const accounts = [await openAccount(money, 100_000n), await openAccount(money, 100_000n)];
    const calls: { account: string; requestId: string }[] = [];
    const charges: { account: string; key: string; from: number; expected: bigint }[] = [];
    const call = async (
      account: string,
      it: { model: number; key: number; cost: bigint; failed: boolean; upload: boolean },
    ) => {
      const hold = await held(money, holdOf(account, 100n));
      await money.charge(
        captureOf(hold, it.cost, {
          model: `vendor/model-${it.model}`,
          key: `key_${it.key}`,
          status: it.failed ? "failed" : "succeeded",
          usage: { input: 10, cached_input: it.key, output: it.model },
          ...(it.upload && { kind: "storage", endpoint: "/v1/uploads", model: undefined }),
        }),
      );
      calls.push({ account, requestId: hold.requestId });
    };
    let made = 0;
    for (const batch of all) {
      await Promise.all(
        batch.map(async (it) => {
          const account = accounts[made++ % 2] as string;
          if (it.do === "sum") return processes[it.process]?.sumUsage();
          if (it.do === "later") return clock.later(Math.round(it.hours * 60 * 60_000));
          if (it.do === "refund") {
            const call = calls[it.pick % (calls.length || 1)];
            return call && money.refund(call.account, call.requestId);
          }
          if (it.do === "sweep") {
            // The sweeper settles it, and knows no key, endpoint or model.
            await held(money, holdOf(account, 50n, { expiresAt: clock.now() - 1 }));
            return money.sweep(async () => false);
          }
          return call(account, it);
        }),
      );
      // Before and after the job runs, the charges that a budget counts match the ledger.
      for (const account of accounts) {
        const { from } = periodAt("week", clock.now());
        const expected = await plainCharges(money, account, "key_0", from);
        const { spentNanoUsd } = await money.chargesOfKeys(account, ["key_0"], new Date(from));
        expect(spentNanoUsd).toBe(expected);
      }
    }
    // Yesterday, today and the closed days have calls.
    for (const hours of [48, 24, 0]) {
      for (const account of accounts) await call(account, { model: 0, key: 0, cost: 5n, failed: false, upload: false });
      clock.later(hours * 60 * 60_000);
    }
    await Promise.all([...processes, ...processes].map((each) => each.sumUsage()));
    await money.sumUsage();
    for (const account of accounts) {
      const shown = await shownSums(money, account);
      expect(shown).toEqual(await plainSums(money, account));
      for (const key of ["key_0", "key_1"]) {
        // The charges that a budget counts match the ledger, even when closed days are only in the archive.
        for (const period of budgetPeriods) {
          const { from } = periodAt(period, clock.now());
          charges.push({ account, key, from, expected: await plainCharges(money, account, key, from) });
        }
        // The running totals of a key are the same sums.
        const ofKey = [...shown].filter(([name]) => JSON.parse(name)[2] === key);
        const sum = (prefix: string) =>
          ofKey
            .filter(([name]) => (JSON.parse(name)[0] as string).startsWith(prefix))
            .reduce((total, [, { costNanoUsd }]) => total + costNanoUsd, 0n);
        const today = dayOf(new Date(clock.now()));
        expect(await money.usageOfKey(account, key)).toEqual({
          dayNanoUsd: sum(today),
          monthNanoUsd: sum(today.slice(0, 7)),
          totalNanoUsd: sum(""),
        });
      }
    }
    const spent = async () => {
      const found = charges.map(({ account, key, from }) => money.chargesOfKeys(account, [key], new Date(from)));
      return (await Promise.all(found)).map(({ spentNanoUsd }) => spentNanoUsd);
    };
    const expected = charges.map((each) => each.expected);
    expect(await spent()).toEqual(expected);
    const archived = { createdAt: { $lt: new Date(Date.parse(dayOf(new Date(clock.now() - dayMs)))) } };
    await mongo.connection.collection("ledger").deleteMany(archived);
    expect(await spent()).toEqual(expected);
  });
  await fc.assert(property, { numRuns: 15, seed: 20_260_102, endOnFailure: true });
});

test("closed days are not summed again, a day without a run is, and a row without entries is removed", async () => {
  const { money, mongo, clock, account } = await startBank({ balanceNanoUsd: 10_000n });
  const call = async (cost: bigint) => {
    const hold = await held(money, holdOf(account, 100n));
    await money.charge(captureOf(hold, cost));
    return hold.requestId;
  };
  const costs = async () =>
    (await money.usage(account, { ...everything, groupBy: ["day"] })).map(({ costNanoUsd }) => costNanoUsd);
  const ledger = mongo.connection.collection<{ _id: string }>("ledger");
  const first = await call(1n);
  await money.sumUsage();
  clock.later(dayMs);
  await call(2n);
  clock.later(4 * dayMs);
  const last = await call(3n);
  await money.sumUsage();
  expect(await costs()).toEqual([1n, 2n, 3n]);
  // Delete entries of closed days, as the archive does, and an entry of an open day.
  await ledger.deleteMany({ _id: { $in: [first, last] } });
  await money.sumUsage();
  expect(await costs()).toEqual([1n, 2n]);
});

test("the unfinished work of a dead run is repeated, and its late writes change nothing", async () => {
  const { money, mongo, account } = await startBank({ balanceNanoUsd: 10_000n });
  await Promise.all(times(3, async () => money.charge(captureOf(await held(money, holdOf(account, 100n)), 7n))));
  await money.sumUsage();
  const hours = mongo.connection.collection("usageHours");
  const { hour } = (await hours.findOne({})) as unknown as { hour: string };
  // The process claimed the hour, wrote a wrong row under its version, and died.
  const states = mongo.connection.collection<{ _id: string }>("usageHourStates");
  await states.updateOne({ _id: hour }, { $inc: { version: 1 }, $unset: { entries: "" } });
  await hours.updateMany({ hour }, { $set: { calls: 1, entries: 1, version: 2 } });
  await money.sumUsage();
  const [row] = await money.usage(account, { ...everything, groupBy: [] });
  expect(row).toMatchObject({ calls: 3, costNanoUsd: 21n });
  expect(await hours.findOne({ hour })).toMatchObject({ version: 3 });
});

test("the job reads the entries of the last hour, and a budget those since the last run, not the day", async () => {
  const { money, mongo, clock, account } = await startBank({ balanceNanoUsd: 10_000n });
  const calls = async (count: number) => {
    for (const hold of await Promise.all(times(count, () => held(money, holdOf(account, 100n)))))
      await money.charge(captureOf(hold, 1n, { key: "key_0" }));
  };
  const midnight = Date.parse(`${dayOf(new Date(clock.now() + dayMs))}T00:00:00Z`);
  clock.later(midnight - clock.now());
  for (const count of [20, 20, 20, 20]) {
    await calls(count);
    clock.later(60 * 60_000);
  }
  await money.sumUsage();
  clock.later(10 * 60_000);
  await calls(4);
  clock.later(10 * 60_000);
  /** The number of index keys and documents of the ledger that the work reads. */
  async function read(work: () => Promise<unknown>) {
    const found = await profiled(mongo, { ns: /[.]ledger$/, op: { $ne: "insert" } }, work);
    return found.reduce((sum, each) => sum + Number(each["keysExamined"]) + Number(each["docsExamined"]), 0);
  }
  // 4 entries of this hour are counted, read, and examined as the next hour, and 20 of the previous hour, which has
  // just ended.
  expect(await read(() => money.sumUsage())).toBeLessThan(3 * 24 + 20);
  await calls(3);
  let charges: { spentNanoUsd: bigint } | undefined;
  const since = new Date(midnight);
  expect(await read(async () => (charges = await money.chargesOfKeys(account, ["key_0"], since)))).toBeLessThan(3 + 10);
  expect(charges?.spentNanoUsd).toBe(87n);
  clock.later(10 * 60_000);
  // The previous hour is only counted.
  expect(await read(() => money.sumUsage())).toBeLessThan(20 + 3 * 7 + 20);
});
