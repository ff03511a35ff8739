import fc from "fast-check";
import { expect, test } from "vitest";
import { HoldUnknown } from "../../shared/money/holds.ts";
import type { Hold, Money } from "../../shared/money/index.ts";
import type { Clock } from "../../shared/platform/clock.ts";
import { brokenWire, type Fate } from "../support/money-proxy.ts";
import {
  captureOf,
  free,
  holdOf,
  minuteMs,
  openAccount,
  settlementOf,
  startBank,
  startMoney,
  times,
} from "../support/money-setup.ts";
import { step } from "../support/property-runs.ts";

const nanoUsd = (max: number) => fc.bigInt({ min: 0n, max: BigInt(max) });
const pick = fc.nat({ max: 1_000 });
const key = fc.nat({ max: 5 });
const anyStep = fc.oneof(
  step(6, "hold", { most: nanoUsd(400), least: nanoUsd(50) }),
  step(5, "charge", { pick, cost: nanoUsd(500) }),
  step(2, "capture", { pick, cost: nanoUsd(500) }),
  step(2, "settle again", { pick }),
  step(1, "credit", { amount: nanoUsd(300), key }),
  step(1, "take back", { amount: nanoUsd(300), key }),
  step(1, "refund", { pick }),
  step(1, "freeze", { frozen: fc.boolean() }),
  step(1, "sweep", { waits: fc.boolean() }),
  step(1, "checkpoint"),
  step(1, "check", { full: fc.boolean() }),
);
const who = fc.record({ process: fc.nat({ max: 2 }), account: fc.nat({ max: 1 }) });
/** The operations of one batch run concurrently, in three processes. */
const batches = fc.array(fc.array(fc.tuple(who, anyStep), { minLength: 1, maxLength: 12 }), {
  minLength: 2,
  maxLength: 8,
});

type Refusal = { status?: number };
/** Refusals that may be correct, by status. */
const orRefused = async (work: Promise<unknown>, ...statuses: number[]): Promise<void> => {
  await work.catch((error: Refusal) => {
    if (!statuses.includes(error.status ?? 0)) throw error;
  });
};

/** All holds with their amounts. A hold of unknown outcome is released, as its caller must do. */
function createCalls() {
  const calls: Hold[] = [];
  let unknown = 0;
  return {
    counts: () => ({ held: calls.length, unknown }),
    pick: (at: number): Hold | undefined => calls[at % calls.length],
    async hold(money: Money, hold: Hold): Promise<void> {
      try {
        const answer = await money.hold(hold);
        if (answer.ok) calls.push({ ...hold, maxNanoUsd: answer.heldNanoUsd });
      } catch (error) {
        if (!(error instanceof HoldUnknown)) return orRefused(Promise.reject(error), 503);
        unknown += 1;
        const tried = { ...hold, maxNanoUsd: error.heldNanoUsd };
        await money.charge(captureOf(tried, 0n, { status: "failed" }));
      }
    },
  };
}

type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never;

async function run(money: Money, account: string, calls: ReturnType<typeof createCalls>, it: Step): Promise<void> {
  switch (it.do) {
    case "hold":
      // Make it overdue from the start, so that a sweep may come at any time.
      return calls.hold(money, holdOf(account, it.most, { minNanoUsd: it.least, expiresAt: Date.now() - 1 }));
    case "charge":
    case "capture": {
      const call = calls.pick(it.pick);
      if (call) await money[it.do](captureOf(call, it.cost));
      return;
    }
    case "settle again": {
      const call = calls.pick(it.pick);
      const entry = call && (await money.findEntry(call.requestId));
      if (entry) await money.settle(settlementOf(call, entry.costNanoUsd));
      return;
    }
    case "credit":
      return orRefused(money.credit(account, { amountNanoUsd: it.amount, idempotencyKey: `c${it.key}` }), 400, 409);
    case "take back":
      return orRefused(money.credit(account, { amountNanoUsd: -it.amount, idempotencyKey: `t${it.key}` }), 400, 409);
    case "refund": {
      const call = calls.pick(it.pick);
      if (call) await orRefused(money.refund(call.account, call.requestId), 404);
      return;
    }
    case "freeze":
      await money.updateAccount(account, { frozen: it.frozen });
      return;
    case "sweep":
      await money.sweep(async () => it.waits);
      return;
    case "checkpoint":
      // Two that count the same entry conflict: one of them may give up without any change.
      await money.checkpoint().catch(() => {});
      return;
    case "check": {
      const check = await money.check({ full: it.full });
      if (!check.ok) throw new Error(`the check is off by ${check.differenceNanoUsd}`);
    }
  }
}

test("concurrent operations neither lose nor create a nano-USD, and no balance is negative", async () => {
  const { money, uri, account, clock, another } = await startBank();
  const slow: Clock = { ...clock, now: () => clock.now() - 120 * minuteMs };
  const processes = [money, (await startMoney(uri, slow)).money, await another()];
  clock.later(minuteMs);
  const property = fc.asyncProperty(batches, async (all) => {
    const accounts = [await openAccount(money, 700n), await openAccount(money, 0n)];
    const calls = createCalls();
    for (const batch of all) {
      await Promise.all(
        batch.map(([by, it]) => run(processes[by.process] ?? money, accounts[by.account] ?? account, calls, it)),
      );
      expect(await money.check()).toMatchObject({ ok: true, differenceNanoUsd: 0n });
    }
    clock.later(minuteMs);
    await money.sweep(async () => false);
    await money.checkpoint();
    for (const full of [true, false])
      expect(await money.check({ full })).toMatchObject({ ok: true, differenceNanoUsd: 0n, openHolds: 0 });
  });
  await fc.assert(property, { numRuns: 30, seed: 20_260_101, endOnFailure: true });
});

test("a hundred calls account for every nano-USD when answers and requests are lost", async () => {
  const { money, uri, account } = await startBank({ balanceNanoUsd: 100_000n });
  let writes = 0;
  const fates: Fate[] = ["pass", "lose the answer", "lose the answer", "pass", "lose the request", "pass", "pass"];
  const wire = await brokenWire(uri, (command) =>
    command.update || command.insert ? (fates[writes++ % fates.length] ?? "pass") : "pass",
  );
  const { money: far, mongo } = await startMoney(wire);
  const calls = createCalls();
  for (let round = 0; round < 6; round++) {
    // A failure breaks the whole connection, and a hold is not even sent before it is restored.
    await expect.poll(() => mongo.upSince(), { interval: 10 }).toBeDefined();
    await Promise.all(times(20, () => calls.hold(far, holdOf(account, 100n))));
  }
  const { held, unknown } = calls.counts();
  expect(held + unknown).toBe(120);
  expect(Math.min(held, unknown)).toBeGreaterThan(0);
  const costs = await Promise.all(
    times(100, async (at) => {
      const call = calls.pick(at);
      return call ? (await far.charge(captureOf(call, BigInt(at)))).entry : undefined;
    }),
  );
  const spent = new Map(costs.map((entry) => [entry?.id, entry?.costNanoUsd ?? 0n]));
  const sumNanoUsd = [...spent.values()].reduce((sum, cost) => sum + cost, 0n);
  expect(await money.account(account)).toMatchObject(free(100_000n - sumNanoUsd));
  expect(await money.check()).toMatchObject({ ok: true, differenceNanoUsd: 0n, openHolds: 0 });
});
