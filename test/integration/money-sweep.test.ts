import { expect, test } from "vitest";
import { brokenWire, type Fate } from "../support/money-proxy.ts";
import {
  balance,
  captureOf,
  createMovableClock,
  free,
  held,
  holdOf,
  minuteMs,
  openAccount,
  profiled,
  startBank,
  startMoney,
  times,
} from "../support/money-setup.ts";
import { eventually } from "../support/service.ts";

const hourMs = 60 * minuteMs;
const gone = async () => false;
const waits = async () => true;

test("a hold that has not expired is unchanged, an overdue one whose job is in no queue is settled at zero", async () => {
  const { money, account, clock } = await startBank();
  const hold = await held(money, holdOf(account, 100n));
  clock.later(9 * minuteMs);
  expect(await money.sweep(gone)).toEqual({ settled: 0, captured: 0 });
  clock.later(minuteMs + 1);
  expect(await money.sweep(gone)).toEqual({ settled: 1, captured: 1 });
  expect(await balance(money, account)).toEqual(free(1_000n));
  const entry = await money.findEntry(hold.requestId);
  expect(entry).toMatchObject({
    costNanoUsd: 0n,
    request: { status: "failed", error: "no_capacity", attempts: { length: 0 } },
  });
  expect(entry?.request?.totalMs).toBeGreaterThanOrEqual(10 * minuteMs);
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 0, overdueHolds: 0 });
});

test("an overdue hold whose job is still queued is settled an hour later", async () => {
  const { money, account, clock } = await startBank();
  await held(money, holdOf(account, 100n));
  clock.later(10 * minuteMs + hourMs - minuteMs);
  expect(await money.sweep(waits)).toEqual({ settled: 0, captured: 0 });
  expect(await balance(money, account)).toMatchObject({ openHolds: 1 });
  clock.later(2 * minuteMs);
  expect(await money.sweep(waits)).toEqual({ settled: 1, captured: 1 });
  expect(await balance(money, account)).toEqual(free(1_000n));
});

test("an overdue hold that names its API instance is settled when that serves no more, or an hour later", async () => {
  const { money, account, clock } = await startBank();
  const asked: unknown[] = [];
  const sweep = (isServing: boolean) =>
    money.sweep(gone, async (instance, since) => {
      asked.push([instance, since.getTime() <= clock.now()]);
      return isServing;
    });
  const [dead, slow] = [holdOf(account, 100n, { instance: "api_1" }), holdOf(account, 100n, { instance: "api_2" })];
  await held(money, dead);
  clock.later(11 * minuteMs);
  expect(await sweep(true)).toEqual({ settled: 0, captured: 0 });
  expect(await sweep(false)).toEqual({ settled: 1, captured: 1 });
  expect(asked).toEqual([
    ["api_1", true],
    ["api_1", true],
  ]);
  await held(money, slow);
  clock.later(hourMs);
  expect(await sweep(true)).toEqual({ settled: 1, captured: 1 });
  expect(await balance(money, account)).toEqual(free(1_000n));
});

test("holds of a dead instance are ended before they expire, unless their call still has a job", async () => {
  const { money, account, clock } = await startBank();
  const hold = (more: object) => held(money, holdOf(account, 100n, { instance: "api_dead", ...more }));
  const [queued, captured] = [await hold({ ownJob: true }), await hold({ ownJob: true })];
  for (const more of [{ ownJob: true }, {}, { instance: "api_alive" }]) await hold(more);
  await money.capture(captureOf(captured, 30n));
  const isQueued = async (requestId: string) => requestId === queued.requestId;
  clock.later(2 * minuteMs);
  const end = (hasJobs: boolean) => money.endHoldsOf("api_dead", isQueued, async () => hasJobs);
  expect(await end(true)).toEqual({ settled: 2, captured: 1 });
  expect(await balance(money, account)).toEqual({ availableNanoUsd: 670n, heldNanoUsd: 300n, openHolds: 3 });
  expect(await end(false)).toEqual({ settled: 1, captured: 1 });
  expect(await end(false)).toEqual({ settled: 0, captured: 0 });
  expect(await balance(money, account)).toEqual({ availableNanoUsd: 770n, heldNanoUsd: 200n, openHolds: 2 });
});

test("a captured call is settled with its cost, whether its job is queued or not", async () => {
  const { money, account, clock } = await startBank();
  const holds = await Promise.all(times(3, () => held(money, holdOf(account, 100n))));
  for (const hold of holds) await money.capture(captureOf(hold, 30n));
  clock.later(11 * minuteMs);
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 3, overdueHolds: 3, undecided: 0 });
  expect(await money.sweep(waits)).toEqual({ settled: 3, captured: 0 });
  expect(await balance(money, account)).toEqual(free(910n));
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 0 });
});

test.for([
  { within: "a minute", recoveryMs: undefined, afterMs: minuteMs },
  { within: "the configured time", recoveryMs: 20_000, afterMs: 20_000 },
])("within $within after MongoDB came back the sweep captures nothing, but settles captures", async (row) => {
  const { uri, account, money } = await startBank();
  let nowMs = Date.now();
  const clock = { ...createMovableClock(), now: () => nowMs };
  const [uncaptured, captured] = [holdOf(account, 100n, { expiresAt: 0 }), holdOf(account, 50n, { expiresAt: 0 })];
  for (const hold of [uncaptured, captured]) await held(money, hold);
  await money.capture(captureOf(captured, 20n));
  // A new process has known MongoDB only since its own start.
  const { money: sweeper } = await startMoney(uri, clock, { recoveryMs: row.recoveryMs });
  nowMs += row.afterMs;
  expect(await sweeper.sweep(gone)).toEqual({ settled: 1, captured: 0 });
  expect(await balance(money, account)).toEqual({ availableNanoUsd: 880n, heldNanoUsd: 100n, openHolds: 1 });
  nowMs += 1;
  expect(await sweeper.sweep(gone)).toEqual({ settled: 1, captured: 1 });
  expect(await balance(money, account)).toEqual(free(980n));
});

test("a sweep that fails on one hold ends the others, and the next sweep ends that one", async () => {
  const bank = await startBank();
  const { account, clock, money } = bank;
  const other = await openAccount(money, 10n);
  const lost = await held(money, holdOf(account, 100n, { expiresAt: 0 }));
  const captured = await held(money, holdOf(other, 10n, { expiresAt: 0 }));
  await money.capture(captureOf(captured, 3n));
  let sent = 0;
  const wire = await brokenWire(bank.uri, async ({ insert }) => {
    if (insert !== "ledger") return "pass";
    sent += 1;
    // The connection breaks when the other hold has ended: an update that waits for a connection would fail, too.
    await eventually(async () => (await balance(money, other)).openHolds === 0);
    return "lose the request";
  });
  const { money: far } = await startMoney(wire, clock);
  clock.later(minuteMs);
  expect(await far.sweep(gone)).toEqual({ settled: 1, captured: 0 });
  // A later insert could land before the capture of a worker that waited for MongoDB.
  expect(sent).toBe(1);
  expect(await money.findEntry(lost.requestId)).toBeUndefined();
  expect(await balance(money, other)).toEqual(free(7n));
  expect(await money.sweep(gone)).toEqual({ settled: 1, captured: 1 });
  expect(await balance(money, account)).toEqual(free(1_000n));
});

test("holds stay while the queue is unavailable", async () => {
  const { account, clock, money } = await startBank();
  await held(money, holdOf(account, 100n, { expiresAt: 0 }));
  await held(money, holdOf(account, 1n, { expiresAt: clock.now() }));
  clock.later(minuteMs);
  const swept = await money.sweep(() => Promise.reject(new Error("Redis is unavailable")));
  // The first is an hour overdue, so the queue is not read for it.
  expect(swept).toEqual({ settled: 1, captured: 1 });
  expect(await balance(money, account)).toEqual({ availableNanoUsd: 999n, heldNanoUsd: 1n, openHolds: 1 });
});

test("a hold written after its call was settled at zero is ended by the sweeper", async () => {
  const { money, account, clock } = await startBank();
  const hold = holdOf(account, 100n, { expiresAt: 0 });
  await money.charge(captureOf(hold, 0n, { status: "failed" }));
  await held(money, hold);
  clock.later(minuteMs);
  expect(await money.sweep(waits)).toEqual({ settled: 1, captured: 0 });
  expect(await balance(money, account)).toEqual(free(1_000n));
});

test("more overdue holds than one batch, on many accounts, are all ended", async () => {
  const { money, clock } = await startBank();
  const accounts = await Promise.all(times(5, () => openAccount(money, 1_000n)));
  const holds = accounts.flatMap((account) => times(130, () => holdOf(account, 1n, { expiresAt: 0 })));
  await Promise.all(holds.map((hold) => held(money, hold)));
  clock.later(minuteMs);
  expect(await money.sweep(gone)).toEqual({ settled: 650, captured: 650 });
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 0, accounts: 6 });
});

test("a sweep reads only the accounts that may have an overdue hold", async () => {
  const { money, mongo, clock } = await startBank();
  const [overdue, live, settled] = await Promise.all([
    openAccount(money, 1_000n),
    Promise.all(times(20, () => openAccount(money, 10n))),
    openAccount(money, 1_000n),
  ]);
  await held(money, holdOf(overdue, 1n, { expiresAt: clock.now() + minuteMs }));
  for (const account of live) await held(money, holdOf(account, 1n, { expiresAt: clock.now() + 5 * minuteMs }));
  const short = await held(money, holdOf(settled, 1n, { expiresAt: clock.now() + minuteMs }));
  await held(money, holdOf(settled, 1n, { expiresAt: clock.now() + 3 * minuteMs }));
  await money.charge(captureOf(short, 0n));
  clock.later(2 * minuteMs);
  /** The result of a sweep, and the number of accounts that its steps examined. */
  const sweep = async () => {
    let swept: object = {};
    const ofAccounts = { ns: /\.accounts$/, "command.update": { $exists: false } };
    const found = await profiled(mongo, ofAccounts, async () => (swept = await money.sweep(gone)));
    const sum = (of: (each: Record<string, unknown>) => boolean) =>
      found.filter(of).reduce((total, each) => total + Number(each["docsExamined"]), 0);
    return {
      ...swept,
      aggregate: sum(({ command }) => Object(command).aggregate !== undefined),
      update: sum(({ op, command }) => op === "update" && Array.isArray(Object(command).u)),
    };
  };

  // The aggregation finds them, and the update raises the bound of the account that still has open holds.
  expect(await sweep()).toEqual({ settled: 1, captured: 1, aggregate: 2, update: 1 });
  expect(await sweep()).toEqual({ settled: 0, captured: 0, aggregate: 0, update: 0 });
  clock.later(2 * minuteMs);
  expect(await money.sweep(gone)).toEqual({ settled: 1, captured: 1 });
  expect(await balance(money, settled)).toEqual(free(1_000n));
  clock.later(2 * minuteMs);
  expect(await money.sweep(gone)).toEqual({ settled: 20, captured: 20 });
});

test("a hold that expires sooner is not missed when it is written during the update of the earliest expiry", async () => {
  const { uri, money, account, clock } = await startBank();
  const early = await held(money, holdOf(account, 1n, { expiresAt: clock.now() + minuteMs }));
  await held(money, holdOf(account, 1n, { expiresAt: clock.now() + 9 * minuteMs }));
  await money.charge(captureOf(early, 0n));
  clock.later(2 * minuteMs);
  const wire = await brokenWire(uri, async (command): Promise<Fate> => {
    const [update] = (command["updates"] ?? []) as { u: unknown }[];
    if (Array.isArray(update?.u)) await held(money, holdOf(account, 1n, { expiresAt: clock.now() + minuteMs }));
    return "pass";
  });
  const { money: sweeper } = await startMoney(wire, clock);
  expect(await sweeper.sweep(gone)).toEqual({ settled: 0, captured: 0 });
  clock.later(2 * minuteMs);
  expect(await money.sweep(gone)).toEqual({ settled: 1, captured: 1 });
  expect(await balance(money, account)).toMatchObject({ availableNanoUsd: 999n, openHolds: 1 });
});

test("the holds of an account that was written by an earlier version are swept", async () => {
  const { money, mongo, account, clock } = await startBank();
  await held(money, holdOf(account, 100n, { expiresAt: clock.now() + minuteMs }));
  await mongo.connection
    .collection<{ _id: string }>("accounts")
    .updateOne({ _id: account }, { $unset: { holdsExpireAt: "" } });
  expect(await money.sweep(gone)).toEqual({ settled: 0, captured: 0 });
  clock.later(2 * minuteMs);
  expect(await money.sweep(gone)).toEqual({ settled: 1, captured: 1 });
  expect(await balance(money, account)).toEqual(free(1_000n));
});
