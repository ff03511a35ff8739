import { expect, test } from "vitest";
import { type CallHold, createMoney, type Leased, type Leases, type Money } from "../../shared/money/index.ts";
import { log } from "../support/jobs-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { brokenWire, type Command, type Fate, losingMoney } from "../support/money-proxy.ts";
import {
  alone,
  balance,
  createRecallBus,
  free,
  leasedCapture,
  leaseRequestOf,
  leasesOf,
  minuteMs,
  startBank,
  startMoney,
  times,
} from "../support/money-setup.ts";
import { eventually } from "../support/service.ts";

/** Makes a call that is captured at this cost. */
async function spend(money: Money, leases: Leases, request: CallHold, costNanoUsd: bigint): Promise<Leased> {
  const leased = await leases.hold(request);
  await money.capture(leasedCapture(request, leased, costNanoUsd));
  leased.end(costNanoUsd);
  return leased;
}

/** A bank whose leases do not become idle, however long a test takes. */
async function startStillBank(balanceNanoUsd: bigint) {
  const bank = await startBank({ balanceNanoUsd });
  const clock = { ...bank.clock, every: () => () => {} };
  return { ...bank, clock, ...(await startMoney(bank.uri, clock)) };
}

const isGranted = ({ status }: PromiseSettledResult<unknown>) => status === "fulfilled";

/** Expects that nothing is held, and that every nano-USD is accounted for. */
async function expectClosed(money: Money, account: string, availableNanoUsd: bigint): Promise<void> {
  // The check reads what a majority has, which may be a moment behind what the primary answers.
  await eventually(async () => (await money.check({ full: true })).openHolds === 0);
  expect(await money.check({ full: true })).toMatchObject({ ok: true, differenceNanoUsd: 0n, openHolds: 0 });
  expect(await balance(money, account)).toEqual(free(availableNanoUsd));
  expect(await money.balances([account])).toEqual(new Map([[account, availableNanoUsd]]));
}

test("200 calls through two instances, on money for twenty: all of it is used, never more", async () => {
  const { money, account, another } = await startBank({ balanceNanoUsd: 2_000n });
  const bus = createRecallBus();
  const instances = [money, await another()].map((bank, at) => leasesOf(bank, `api_${at}`, bus(`api_${at}`)));
  const requests = times(200, () => leaseRequestOf(account, 100n));
  const calls = await Promise.allSettled(
    requests.map((request, at) => spend(money, instances[at % 2] as Leases, request, 100n)),
  );
  expect(calls.filter(isGranted)).toHaveLength(20);
  const refusals = calls.filter((call) => call.status === "rejected");
  expect(new Set(refusals.map(({ reason }) => reason.status))).toEqual(new Set([402]));
  await Promise.all(instances.map((each) => each.settleIdle()));
  await expectClosed(money, account, 0n);
});

test("another instance gets the unused money of one, and only then is a balance insufficient", async () => {
  const { uri, money, account, clock } = await startStillBank(1_000n);
  const { money: other } = await startMoney(uri, clock);
  const bus = createRecallBus();
  const [one, two] = [leasesOf(money, "api_0", bus("api_0")), leasesOf(other, "api_1", bus("api_1"))];
  // Two calls hold everything, one of them costs little.
  const running = leaseRequestOf(account, 500n);
  const held = await one.hold(running);
  await spend(money, one, leaseRequestOf(account, 500n), 20n);
  expect(await balance(money, account)).toMatchObject({ availableNanoUsd: 0n, heldNanoUsd: 1_000n, openHolds: 1 });
  expect(await money.balances([account])).toEqual(new Map([[account, 980n]]));
  await spend(money, two, leaseRequestOf(account, 480n), 480n);
  await expect(two.hold(leaseRequestOf(account, 1n))).rejects.toMatchObject({ status: 402, message: /^available: 0/ });
  await money.capture(leasedCapture(running, held, 500n));
  held.end(500n);
  await Promise.all([one.settleIdle(), two.settleIdle()]);
  await expectClosed(money, account, 0n);
});

test("a group that does not fit is served in order, and a call without a cap takes the rest", async () => {
  const { money, account } = await startBank({ balanceNanoUsd: 1_000n });
  const leases = leasesOf(money);
  const sizes = [600n, 600n, 300n];
  const calls = await Promise.allSettled([
    ...sizes.map((size) => leases.hold(leaseRequestOf(account, size))),
    leases.hold(leaseRequestOf(account, 5_000n, { minNanoUsd: 10n })),
  ]);
  const held = calls.map((call) => (call.status === "fulfilled" ? call.value.heldNanoUsd : call.reason.code));
  expect(held).toEqual([600n, "insufficient_balance", 300n, 100n]);
  for (const call of calls) if (call.status === "fulfilled") call.value.end(0n);
  await leases.settleIdle();
  await expectClosed(money, account, 1_000n);
});

test("money that comes back before the read that decides a refusal is given out, not refused", async () => {
  const { uri, account, money: bank } = await startBank({ balanceNanoUsd: 0n });
  let reads = 0;
  const wire = await brokenWire(uri, async ({ aggregate }): Promise<Fate> => {
    if (aggregate === "accounts" && ++reads === 2)
      await bank.credit(account, { amountNanoUsd: 700n, idempotencyKey: "back" });
    return "pass";
  });
  const { money } = await startMoney(wire);
  const leases = leasesOf(money);
  const leased = await leases.hold(leaseRequestOf(account, 600n));
  expect(leased.heldNanoUsd).toBe(600n);
  leased.end(0n);
  await leases.settleIdle();
  await expectClosed(bank, account, 700n);
});

test("a lease is being closed: the next call waits for its money, and is 503, not 402, while MongoDB does not answer", async () => {
  const { uri, account, money: bank, clock: bankClock } = await startBank({ balanceNanoUsd: 1_000n });
  let [reads, isPatient] = [0, true];
  let closing = Promise.withResolvers<void>();
  const begun = { close: () => {}, more: () => {} };
  const wire = await brokenWire(uri, async ({ update, aggregate }): Promise<Fate> => {
    if (aggregate === "accounts" && ++reads === 4) begun.more();
    if (update !== "accounts") return "pass";
    begun.close();
    await closing.promise;
    return "pass";
  });
  // The pause before a further try ends only with the write, or at once.
  const after = (ms: number, fire: () => void) =>
    ms === 500 && isPatient ? () => {} : bankClock.after(ms === 500 ? 0 : ms, fire);
  const { money } = await startMoney(wire, { ...bankClock, after });
  const leases = leasesOf(money);
  const closeIdle = async () => {
    const isClosing = new Promise<void>((resolve) => (begun.close = resolve));
    void leases.settleIdle();
    await isClosing;
  };

  await spend(money, leases, leaseRequestOf(account, 1_000n), 100n);
  await closeIdle();
  begun.more = closing.resolve;
  await spend(money, leases, leaseRequestOf(account, 600n), 100n);
  expect(reads).toBeGreaterThanOrEqual(4);

  closing = Promise.withResolvers();
  isPatient = false;
  await closeIdle();
  await expect(leases.hold(leaseRequestOf(account, 600n))).rejects.toMatchObject({ status: 503, code: "no_capacity" });
  await expect(leases.hold(leaseRequestOf(account, 900n))).rejects.toMatchObject({ status: 402 });
  closing.resolve();
  isPatient = true;
  await spend(money, leases, leaseRequestOf(account, 600n), 0n);
  await leases.settleIdle();
  await expectClosed(bank, account, 800n);
});

test("what another instance returns is waited for; if it does not answer, a call that this would pay for is 503, not 402", async () => {
  const { uri, account, money: bank, clock } = await startBank({ balanceNanoUsd: 1_000n });
  let returning = Promise.withResolvers<void>();
  let isPatient = true;
  const wire = await brokenWire(uri, async ({ update }): Promise<Fate> => {
    if (update === "accounts") await returning.promise;
    return "pass";
  });
  // Pauses end at once, so the write of the other instance comes only while its answer is waited for.
  const after = (ms: number, fire: () => void) => {
    if (ms !== 500 || !isPatient) return clock.after(0, fire);
    returning.resolve();
    return () => {};
  };
  const every = () => () => {};
  const { money } = await startMoney(wire, { ...clock, every });
  const { money: other } = await startMoney(uri, { ...clock, every, after });
  const bus = createRecallBus({ ...clock, after });
  const [one, two] = [leasesOf(money, "api_0", bus("api_0")), leasesOf(other, "api_1", bus("api_1"))];
  await spend(money, one, leaseRequestOf(account, 1_000n), 20n);
  await spend(other, two, leaseRequestOf(account, 900n), 30n);
  await two.settleIdle();
  await expectClosed(bank, account, 950n);

  await spend(money, one, leaseRequestOf(account, 950n), 50n);
  returning = Promise.withResolvers();
  isPatient = false;
  await expect(two.hold(leaseRequestOf(account, 600n))).rejects.toMatchObject({ status: 503, code: "no_capacity" });
  await expect(two.hold(leaseRequestOf(account, 951n))).rejects.toMatchObject({ status: 402 });
  returning.resolve();
  await eventually(async () => (await balance(bank, account)).availableNanoUsd === 900n);
  await spend(other, two, leaseRequestOf(account, 900n), 0n);
  await two.settleIdle();
  await expectClosed(bank, account, 900n);
});

test("a call that ends twice returns its hold once", async () => {
  const { money, account } = await startBank({ balanceNanoUsd: 1_000n });
  const leases = leasesOf(money);
  const leased = await leases.hold(leaseRequestOf(account, 600n));
  leased.end(0n);
  leased.end(0n);
  await expect(leases.hold(leaseRequestOf(account, 1_100n))).rejects.toMatchObject({ status: 402 });
  await leases.settleIdle();
  await expectClosed(money, account, 1_000n);
});

test("a lease whose unused money covers a longer call is kept for as long as that call", async () => {
  const { uri, account } = await startBank({ balanceNanoUsd: 1_000n });
  // No lease becomes idle.
  const { money, mongo } = await startMoney(uri, createManualClock(Date.now()));
  const leases = leasesOf(money);
  const short = leaseRequestOf(account, 600n);
  (await leases.hold(short)).end(0n);
  const long = leaseRequestOf(account, 100n, { expiresAt: short.expiresAt + 60 * minuteMs });
  const leased = await leases.hold(long);
  const accounts = mongo.connection.collection<{ _id: string; holds: Record<string, { callsEndAt: Date }> }>(
    "accounts",
  );
  const { holds } = (await accounts.findOne({ _id: account })) ?? {};
  expect(holds?.[leased.lease]?.callsEndAt.getTime()).toBeGreaterThanOrEqual(long.expiresAt);
  leased.end(0n);
  await leases.settleIdle();
  await expectClosed(money, account, 1_000n);
});

test("a busy account costs a few writes, not one for each call, and an idle one holds nothing", async () => {
  const { uri, account, money: bank } = await startBank({ balanceNanoUsd: 10_000_000n });
  const writes: Command[] = [];
  const wire = await brokenWire(uri, (command) => {
    if (command["findAndModify"] || command["update"]) writes.push(command);
    return "pass";
  });
  const clock = createManualClock(Date.now());
  const { money } = await startMoney(wire, clock);
  const leases = leasesOf(money);
  for (let round = 0; round < 20; round++) {
    await Promise.all(times(20, () => spend(money, leases, leaseRequestOf(account, 1_000n), 100n)));
    clock.advance(50);
  }
  expect(writes.length).toBeLessThan(20);
  expect(await money.balances([account])).toEqual(new Map([[account, 9_960_000n]]));
  clock.advance(2_500);
  await expectClosed(bank, account, 9_960_000n);
});

test("a lease gives out for a minute, and is closed when its last call is captured", async () => {
  const { uri, account, money: bank } = await startBank();
  const clock = createManualClock(Date.now());
  const { money } = await startMoney(uri, clock);
  const leases = leasesOf(money);
  const request = leaseRequestOf(account, 300n, { expiresAt: clock.now() + 20 * minuteMs });
  const first = await leases.hold(request);
  await spend(money, leases, leaseRequestOf(account, 200n), 50n);
  clock.advance(2_500);
  // The running call's surplus is available again.
  await eventually(async () => (await balance(bank, account)).availableNanoUsd === 650n);
  expect(await balance(bank, account)).toEqual({ availableNanoUsd: 650n, heldNanoUsd: 350n, openHolds: 1 });
  expect(await spend(money, leases, leaseRequestOf(account, 100n), 0n)).toMatchObject({ lease: first.lease });
  clock.advance(minuteMs);
  await eventually(async () => (await balance(bank, account)).availableNanoUsd === 650n);
  const second = await leases.hold(leaseRequestOf(account, 100n));
  expect(second.lease).not.toBe(first.lease);
  await money.capture(leasedCapture(request, first, 300n));
  first.end(300n);
  await eventually(async () => (await balance(bank, account)).openHolds === 1);
  second.end(0n);
  await leases.settleIdle();
  await expectClosed(bank, account, 650n);
});

test.each(["lose the answer", "lose the request"] as const)(
  "MongoDB %s of a growth: the calls that wait for it get 503, the others go on, and nothing stays held",
  async (fate) => {
    const { uri, account, money: bank, clock } = await startBank();
    let isBroken = false;
    const wire = await brokenWire(uri, (command) => (isBroken && command["findAndModify"] ? fate : "pass"));
    const { money } = await startMoney(wire, clock);
    const leases = leasesOf(money);
    const request = leaseRequestOf(account, 100n);
    const running = await leases.hold(request);
    await spend(money, leases, leaseRequestOf(account, 200n), 0n);
    isBroken = true;
    // The lease covers one of them, which would otherwise wait for its turn.
    const sizes = [500n, 150n, 150n];
    const growths = await Promise.allSettled(sizes.map((size) => leases.hold(leaseRequestOf(account, size))));
    for (const growth of growths) expect(growth).toMatchObject({ reason: { status: 503, code: "no_capacity" } });
    isBroken = false;
    await money.capture(leasedCapture(request, running, 60n));
    running.end(60n);
    await spend(money, leases, leaseRequestOf(account, 900n), 40n);
    await leases.settleIdle();
    await expectClosed(bank, account, 900n);
  },
);

test("the first growth of a lease was lost: the sweeper returns its money", async () => {
  const started = await startBank();
  const { account, money: bank, clock } = started;
  const { money } = await losingMoney(started, (command) => "findAndModify" in command, "lose the answer");
  const leases = leasesOf(money);
  await expect(leases.hold(leaseRequestOf(account, 700n))).rejects.toMatchObject({ status: 503 });
  leases.abandon();
  expect(await balance(bank, account)).toEqual({ availableNanoUsd: 300n, heldNanoUsd: 700n, openHolds: 1 });
  const sweep = () => bank.sweep(async () => false);
  clock.later(2 * minuteMs);
  expect(await sweep()).toEqual({ settled: 0, captured: 0 });
  clock.later(10 * minuteMs);
  expect(await sweep()).toEqual({ settled: 1, captured: 0 });
  await expectClosed(bank, account, 1_000n);
});

test("an instance dies: its leases are closed once none of its jobs remains, and a late capture is charged once", async () => {
  const { money, mongo, account, clock } = await startStillBank(1_000n);
  const leases = leasesOf(money, "api_dead");
  await spend(money, leases, leaseRequestOf(account, 300n), 120n);
  const running = leaseRequestOf(account, 400n);
  const leased = await leases.hold(running);
  // The instance does nothing from here on.
  const asked: string[] = [];
  let serving = true;
  const sweep = () =>
    money.sweep(
      async () => false,
      async (instance) => {
        asked.push(instance);
        return serving;
      },
    );
  clock.later(2 * minuteMs);
  expect(await sweep()).toEqual({ settled: 0, captured: 0 });
  serving = false;
  expect(await sweep()).toEqual({ settled: 1, captured: 0 });
  expect(asked).toEqual(["api_dead", "api_dead"]);
  await expectClosed(money, account, 880n);
  expect(await money.settleLateCosts()).toBe(0);

  await money.capture(leasedCapture(running, leased, 150n));
  const late: number[] = [];
  const ignore = () => {};
  const writes = { ledger: ignore, holds: ignore, applications: ignore, leases: ignore };
  const observer = { captured: ignore, late: (count: number) => void late.push(count), lost: ignore, writes };
  const maintenance = createMoney({ mongo, observer, clock, log });
  expect(await maintenance.settleLateCosts()).toBe(1);
  expect(await maintenance.settleLateCosts()).toBe(0);
  expect(late).toEqual([1]);
  await expectClosed(money, account, 730n);

  // No balance is negative: spending since then is written off.
  const other = leasesOf(money, "api_other");
  const second = leaseRequestOf(account, 400n);
  const lateOne = await other.hold(second);
  clock.later(2 * minuteMs);
  expect(await sweep()).toEqual({ settled: 1, captured: 0 });
  await money.credit(account, { amountNanoUsd: -700n, idempotencyKey: "spent" });
  await money.capture(leasedCapture(second, lateOne, 100n));
  expect(await money.settleLateCosts()).toBe(1);
  await expectClosed(money, account, 0n);
});

test("an instance presumed dead admits nothing on a lease that was closed in the meantime", async () => {
  const { money, account, clock } = await startStillBank(1_000n);
  let since: number | undefined = 0;
  const registration = {
    instance: "api_paused",
    since: () => since,
    renew: async () => {
      since = performance.now();
    },
  };
  const leases = money.createLeases({ registration, returnRequests: alone });
  const first = await spend(money, leases, leaseRequestOf(account, 600n), 100n);
  since = undefined;
  clock.later(2 * minuteMs);
  await money.sweep(
    async () => false,
    async () => false,
  );
  expect(await balance(money, account)).toEqual(free(900n));
  const second = await spend(money, leases, leaseRequestOf(account, 300n), 50n);
  expect(second.lease).not.toBe(first.lease);
  // A pause in which nobody closed it changes nothing.
  since = undefined;
  const third = await spend(money, leases, leaseRequestOf(account, 300n), 50n);
  expect(third.lease).toBe(second.lease);
  await leases.settleIdle();
  await expectClosed(money, account, 800n);
});

test("an instance that comes back while the sweeper takes it for dead keeps its lease: nothing is given out twice", async () => {
  const { money, account, clock, another } = await startStillBank(1_000n);
  let since: number | undefined = 0;
  const renew = async () => {
    since = performance.now();
  };
  const registration = { instance: "api_paused", since: () => since, renew };
  const bus = createRecallBus();
  const leases = money.createLeases({ registration, returnRequests: bus("api_paused") });
  await spend(money, leases, leaseRequestOf(account, 800n), 0n);
  since = undefined;
  clock.later(2 * minuteMs);
  const running = leaseRequestOf(account, 800n);
  let leased: Leased | undefined;
  const maintenance = await another();
  const swept = await maintenance.sweep(
    async () => false,
    async () => {
      leased = await leases.hold(running);
      return false;
    },
  );
  if (!leased) throw new Error("nothing was given out");
  const rest = leasesOf(maintenance, "api_other", bus("api_other")).hold(leaseRequestOf(account, 1_000n));
  await expect(rest).rejects.toMatchObject({ status: 402, message: expect.stringContaining("available: 200") });
  expect(swept).toEqual({ settled: 0, captured: 0 });
  await money.capture(leasedCapture(running, leased, 700n));
  leased.end(700n);
  await leases.settleIdle();
  await expectClosed(money, account, 300n);
  expect(await money.settleLateCosts()).toBe(0);
});
