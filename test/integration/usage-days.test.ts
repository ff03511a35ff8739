import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { budgetPeriods, periodAt } from "../../shared/key-records/index.ts";
import { type Capture, firstShownHour, requestStatuses } from "../../shared/money/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { captureOf, held, holdOf, openAccount, profiled, startBank, times } from "../support/money-setup.ts";
import { step } from "../support/property-runs.ts";
import {
  dayOf,
  everything,
  hourOf,
  labels,
  plainCharges,
  plainServiceSums,
  plainSums,
  type Span,
  shownServiceSums,
  shownSums,
  type Times,
} from "../support/usage-sums.ts";

const anyStep = fc.oneof(
  step(8, "call", {
    model: fc.nat({ max: 2 }),
    key: fc.nat({ max: 1 }),
    cost: fc.bigInt({ min: 0n, max: 90n }),
    upstreamCostNanoUsd: fc.option(fc.bigInt({ min: 0n, max: 90n }), { nil: undefined }),
    status: fc.constantFrom(...requestStatuses),
    upload: fc.boolean(),
    tags: fc.option(fc.subarray(["$a", "b=1", "other"], { minLength: 1 }), { nil: undefined }),
    sessionId: fc.option(fc.constantFrom("s1", "s2"), { nil: undefined }),
    firstTokenMs: fc.option(fc.integer({ min: 0, max: 200_000 }), { nil: undefined }),
    totalMs: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 4_000_000 })),
  }),
  step(2, "refund", { pick: fc.nat({ max: 100 }) }),
  step(2, "sweep"),
  step(4, "sum", { process: fc.nat({ max: 1 }) }),
  step(2, "later", { hours: fc.nat({ max: 90 }).map((minutes) => minutes / 60) }),
  step(1, "later", { hours: fc.nat({ max: 80 }) }),
  step(1, "later", { hours: fc.nat({ max: 1_000 }) }),
);
const batches = fc.array(fc.array(anyStep, { minLength: 1, maxLength: 10 }), { minLength: 1, maxLength: 6 });

test("usage by day and by hour is the plain sum of the ledger, whenever the job runs, twice and in two workers at once", async () => {
  const { money, mongo, clock, another } = await startBank();
  const processes = [money, await another()];
  const property = fc.asyncProperty(batches, async (all) => {
    const accounts = [await openAccount(money, 100_000n), await openAccount(money, 100_000n)];
    const calls: { account: string; requestId: string }[] = [];
    const charges: { account: string; key: string; from: number; expected: bigint }[] = [];
    const call = async (
      account: string,
      it: Pick<Capture, "status" | "firstTokenMs" | "totalMs" | "tags" | "sessionId" | "upstreamCostNanoUsd"> & {
        model: number;
        key: number;
        cost: bigint;
        upload: boolean;
      },
    ) => {
      const hold = await held(money, holdOf(account, 100n));
      await money.charge(
        captureOf(hold, it.cost, {
          model: `vendor/model-${it.model}`,
          key: `key_${it.key}`,
          status: it.status,
          firstTokenMs: it.firstTokenMs,
          upstreamCostNanoUsd: it.upstreamCostNanoUsd,
          totalMs: it.totalMs,
          tags: it.tags,
          sessionId: it.sessionId,
          user: it.sessionId && `user of ${it.sessionId}`,
          usage: { input: 10, cached_input: it.key, output: it.model },
          savedNanoUsd: BigInt(3 * it.key - 2),
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
      for (const account of accounts)
        await call(account, { model: 0, key: 0, cost: 5n, status: "succeeded", upload: false, totalMs: 900 });
      clock.later(hours * 60 * 60_000);
    }
    await Promise.all([...processes, ...processes].map((each) => each.sumUsage()));
    // No day, hour or period ends while both sides are summed.
    const now = vi.spyOn(clock, "now").mockReturnValue(clock.now());
    await money.sumUsage();
    for (const account of accounts) {
      const sums = async (span: Span) => {
        const times: Times = new Map();
        const plain = await plainSums(money, account, span, times);
        const shown = await shownSums(money, account, span, times);
        expect(shown).toEqual(plain);
        return shown;
      };
      const shown = await sums({ unit: "day", timeOf: dayOf, since: Date.parse(everything.from) });
      const sinceHour = Date.parse(`${firstShownHour(clock.now())}:00Z`);
      await sums({ unit: "hour", timeOf: hourOf, since: sinceHour });
      await sums({ unit: "day", timeOf: dayOf, since: Date.parse(everything.from), label: "tag" });
      for (const label of labels)
        await sums({ unit: "hour", timeOf: hourOf, since: sinceHour, until: clock.now(), label });
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
    const ofService = await plainServiceSums(money, accounts);
    expect(await shownServiceSums(money, accounts)).toEqual(ofService);
    const ofAll = [...(await shownServiceSums(money, undefined))];
    expect(new Map(ofAll.filter(([name]) => accounts.includes(JSON.parse(name)[2])))).toEqual(ofService);
    const spent = async () => {
      const found = charges.map(({ account, key, from }) => money.chargesOfKeys(account, [key], new Date(from)));
      return (await Promise.all(found)).map(({ spentNanoUsd }) => spentNanoUsd);
    };
    const expected = charges.map((each) => each.expected);
    expect(await spent()).toEqual(expected);
    const archived = { createdAt: { $lt: new Date(Date.parse(dayOf(new Date(clock.now() - dayMs)))) } };
    await mongo.connection.collection("ledger").deleteMany(archived);
    expect(await spent()).toEqual(expected);
    now.mockRestore();
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

test("what an earlier version summed is read, and completed as long as its day is open", async () => {
  const { money, mongo, clock, account } = await startBank({ balanceNanoUsd: 10_000n });
  const call = async () =>
    money.charge(
      captureOf(await held(money, holdOf(account, 100n)), 7n, {
        status: "cancelled",
        firstTokenMs: 400,
        upstreamCostNanoUsd: 3n,
      }),
    );
  await call();
  await money.sumUsage();
  clock.later(3 * dayMs);
  await call();
  clock.later(4 * 60 * 60_000);
  await money.sumUsage();
  /** As an earlier version leaves what it sums: it does not know these fields. */
  const forget = async (states: object) => {
    for (const name of ["usageDays", "usageHours"])
      await mongo.connection
        .collection(name)
        .updateMany({}, { $unset: { cancelled: "", latency: "", upstreamCost: "", unpriced: "" } });
    await mongo.connection.collection("usageHourStates").updateMany({}, states);
  };
  const shown = async () => {
    const found = await money.usage(account, { ...everything, groupBy: ["day"], latency: true });
    const margins = await money.usageOfService({ ...everything, groupBy: ["day"] });
    return found.map((row, at) => [
      row.calls,
      row.costNanoUsd,
      row.cancelled,
      row.firstTokenP50Ms,
      margins[at]?.upstreamCostNanoUsd,
      margins[at]?.marginNanoUsd,
    ]);
  };
  const [incomplete, complete] = [
    [1, 7n, 0, null, 0n, 0n],
    [1, 7n, 1, 386, 3n, 4n],
  ];
  await forget({ $unset: { tagged: "" } });
  expect(await shown()).toEqual([incomplete, incomplete]);
  await money.sumUsage();
  expect(await shown()).toEqual([incomplete, complete]);
  // A worker of the earlier version sums the same hours again, during the upgrade.
  await forget({ $inc: { version: 1 } });
  clock.later(2 * dayMs);
  await money.sumUsage();
  expect(await shown()).toEqual([incomplete, complete]);
});

test("times are not computed over more rows than MongoDB can add in a second", async () => {
  const { money, mongo, account } = await startBank();
  const rows = times(10_001, (at) => ({
    _id: { day: "2026-11-01", account, at },
    account,
    day: "2026-11-01",
    calls: 1,
    cost: 1n,
  }));
  const days = mongo.connection.collection<{ _id: object }>("usageDays");
  await mongo.connection
    .collection<{ _id: string }>("usageDayStates")
    .insertOne({ _id: "2026-11-01", closed: true } as never);
  await days.insertMany(rows);
  const usage = (latency: boolean) => money.usage(account, { ...everything, groupBy: [], latency });
  await expect(usage(true)).rejects.toMatchObject({ status: 400, param: "latency" });
  expect(await usage(false)).toMatchObject([{ calls: 10_001 }]);
  await days.deleteOne({ _id: rows[0]?._id as object });
  expect(await usage(true)).toMatchObject([{ calls: 10_000, firstTokenP50Ms: null }]);
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
