import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { CallHold, Leased, Leases, Money } from "../../shared/money/index.ts";
import { brokenWire } from "../support/money-proxy.ts";
import {
  balance,
  createRecallBus,
  free,
  leasedCapture,
  leaseRequestOf,
  leasesOf,
  minuteMs,
  startBank,
  startMoney,
} from "../support/money-setup.ts";

/** Repeatable numbers from 0 to 1. The events between them also depend on timing. */
function randomOf(seed: number) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return (state >>> 0) / 2 ** 32;
  };
}

interface Instance {
  readonly id: string;
  readonly leases: Leases;
  isDead: boolean;
}

/**
 * Runs calls of one account through two instances at a time. An instance dies at any of its commands to MongoDB, before
 * or after the server has executed it, or between a hold and its job; jobs are delivered twice, and late. Calls are tried
 * at least so often.
 */
async function run(seed: number, balanceNanoUsd: bigint, leastTries: number) {
  const random = randomOf(seed);
  const { uri, money, account, clock } = await startBank({ balanceNanoUsd });
  // Every lease is old enough for the sweeper.
  clock.later(2 * minuteMs);
  // Instances that died do not answer.
  const bus = createRecallBus({ ...clock, after: (ms, fire) => clock.after(ms / 10, fire) });
  const alive: Instance[] = [];
  const jobs = new Map<string, Leased>();
  const zombies: Promise<unknown>[] = [];
  const counts = { started: 0, died: 0, ran: 0, refused: 0, unknown: 0, late: 0 };

  function die(instance: Instance): void {
    if (instance.isDead) return;
    instance.isDead = true;
    instance.leases.abandon();
    counts.died += 1;
    alive.splice(alive.indexOf(instance), 1);
  }

  async function start(): Promise<void> {
    const id = `api_${counts.started++}`;
    let instance: Instance | undefined;
    const wire = await brokenWire(uri, (command) => {
      if (instance?.isDead) return "lose the request";
      if (!instance || command["hello"] || random() > 0.01) return "pass";
      die(instance);
      return random() < 0.5 ? "lose the request" : "lose the answer";
    });
    const { money: own } = await startMoney(wire);
    instance = { id, leases: leasesOf(own, id, bus(id)), isDead: false };
    alive.push(instance);
  }

  /** Settles a call as its worker does, perhaps twice. */
  async function work(request: CallHold, leased: Leased): Promise<bigint> {
    const cost = BigInt(Math.floor(Number(leased.heldNanoUsd) * random()));
    const capture = () => money.capture(leasedCapture(request, leased, cost));
    if (random() < 0.04) {
      // The next delivery ends the call of a worker presumed dead, which still settles it later.
      zombies.push(sleep(random() * 60).then(capture));
      const zero = await money.capture(leasedCapture(request, leased, 0n));
      return zero.entry.costNanoUsd;
    }
    return (await capture()).entry.costNanoUsd;
  }

  async function call(instance: Instance): Promise<void> {
    const request = leaseRequestOf(account, BigInt(100 + Math.floor(random() * 900)));
    let leased: Leased;
    try {
      leased = await instance.leases.hold(request);
    } catch (error) {
      const { status } = error as { status?: number };
      if (status === 402) counts.refused += 1;
      else counts.unknown += 1;
      await sleep(2);
      return;
    }
    if (instance.isDead) return;
    if (random() < 0.004) return die(instance);
    counts.ran += 1;
    if (random() < 0.004) {
      // The job is lost with its instance, and its worker settles late.
      zombies.push(sleep(50 + random() * 100).then(() => work(request, leased)));
      return die(instance);
    }
    jobs.set(request.requestId, leased);
    await sleep(random() * 8);
    const cost = await work(request, leased);
    jobs.delete(request.requestId);
    if (!instance.isDead) leased.end(cost);
  }

  const isServing = async (id: string) =>
    alive.some((instance) => instance.id === id) || [...jobs.values()].some(({ lease }) => lease.includes(`:${id}:`));
  const sweep = () => money.sweep(async () => false, isServing);

  await start();
  let tries = 0;
  let isOver = false;
  let starting: Promise<void> | undefined;
  const callers = Array.from({ length: 20 }, async () => {
    while (++tries <= leastTries || counts.ran <= 20 || counts.died === 0) {
      if (alive.length < 2) starting ??= start().finally(() => (starting = undefined));
      if (alive.length === 0) await starting;
      const instance = alive[Math.floor(random() * alive.length)];
      if (instance) await call(instance);
    }
  });
  const watch = (async () => {
    while (!isOver) {
      await sweep();
      const check = await money.check();
      expect(check.ok || counts.late > 0 || zombies.length > 0).toBe(true);
      expect((await balance(money, account)).availableNanoUsd).toBeGreaterThanOrEqual(0n);
      const one = alive[0];
      if (one && random() < 0.3) await one.leases.settleIdle();
    }
  })();
  await Promise.all(callers);
  await starting;
  await Promise.all(zombies);
  isOver = true;
  await watch;
  // Live instances close their own leases, and the sweeper closes the others.
  await Promise.all(alive.map(({ leases }) => leases.stop()));
  while (alive[0]) die(alive[0]);
  await sweep();
  counts.late += await money.settleLateCosts();
  return { money, account, counts };
}

async function sumOf(money: Money, account: string): Promise<bigint> {
  let sum = 0n;
  for (let page = await money.ledger(account, { limit: 200 }); page.length > 0; ) {
    for (const { amountNanoUsd } of page) sum += amountNanoUsd;
    page = await money.ledger(account, { limit: 200, after: page.at(-1)?.id });
  }
  return sum;
}

test.each([
  { what: "a rich account", balanceNanoUsd: 100_000_000n, seeds: [1, 2, 3], tries: 600 },
  { what: "an account that is soon spent", balanceNanoUsd: 20_000n, seeds: [4, 5, 6], tries: 100 },
])(
  "instances die at any moment while calls of $what run: nothing is held in the end, and the difference is 0",
  async ({ balanceNanoUsd, seeds, tries }) => {
    for (const seed of seeds) {
      const { money, account, counts } = await run(seed, balanceNanoUsd, tries);
      const rest = free(await sumOf(money, account));
      expect({ seed, ...(await balance(money, account)) }).toEqual({ seed, ...rest });
      expect(await money.check({ full: true })).toMatchObject({ ok: true, differenceNanoUsd: 0n, openHolds: 0 });
      expect(counts.died).toBeGreaterThan(0);
      expect(counts.ran).toBeGreaterThan(20);
    }
  },
);
