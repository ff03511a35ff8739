import { expect, onTestFinished, test } from "vitest";
import type { Money } from "../../shared/money/index.ts";
import { createMoney, moneySchema } from "../../shared/money/index.ts";
import {
  type BuybackExecutor,
  buybackConfig,
  createPayments,
  paymentsSchema,
  type SentTransaction,
} from "../../shared/payments/index.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import { brokenWire, type Command } from "../support/money-proxy.ts";
import {
  captureOf,
  createMovableClock,
  held,
  holdOf,
  type MovableClock,
  openAccount,
  profiled,
  times,
} from "../support/money-setup.ts";
import { migrated } from "../support/schema.ts";
import { testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

const own = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
const chosen = "4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU";
const settings = { BUYBACK_BPS: "250", BUYBACK_TOKEN: own, BUYBACK_TOKENS: chosen, BUYBACK_MINIMUM_USD: "0.000001" };
const signal = new AbortController().signal;

async function open(uri: string, clock: MovableClock, wired: (money: Money) => Money = (money) => money) {
  const log = createLogger("test", "silent");
  const mongo = await connectMongo(uri, clock, log);
  onTestFinished(() => mongo.close());
  const config = loadConfig({ ...(await testStores()), ...settings });
  const money = createMoney({ mongo, buyback: buybackConfig(config).terms, clock, log });
  const payments = createPayments({ config, mongo, money: wired(money), clock, log });
  await migrated(mongo, [moneySchema, paymentsSchema]);
  return { mongo, money, ...payments };
}

async function start() {
  const { MONGODB_URI: uri } = await testStores();
  const clock = createMovableClock();
  const first = await open(uri, clock);
  const account = await openAccount(first.money, 10n ** 12n);
  /** A call at this cost, of which 2.5 % accrue. */
  const call = async (costNanoUsd: bigint, buybackToken?: string | null, money: Money = first.money) => {
    const hold = await held(money, holdOf(account, costNanoUsd));
    await money.charge(captureOf(hold, costNanoUsd, { buybackToken }));
    return hold.requestId;
  };
  return { ...first, uri, clock, account, call, another: () => open(uri, clock) };
}

/** Counts the requested purchases, by batch. */
function counting(outcome: "recorded" | "pending" = "recorded") {
  const bought = new Map<string, bigint>();
  const executor: BuybackExecutor = {
    name: "counting",
    async execute({ id, nanoUsd }) {
      bought.set(id, (bought.get(id) ?? 0n) + nanoUsd);
      return { kind: outcome };
    },
  };
  return { executor, bought, total: () => [...bought.values()].reduce((sum, each) => sum + each, 0n) };
}

test("a charge accrues its share, rounded half up, to the chosen token, else to the service's own", async () => {
  const { money, call } = await start();
  expect((await money.findEntry(await call(1_000n)))?.buyback).toEqual({ token: own, nanoUsd: 25n, batch: null });
  expect((await money.findEntry(await call(1_019n, null)))?.buyback).toEqual({ token: own, nanoUsd: 25n, batch: null });
  expect((await money.findEntry(await call(1_020n, chosen)))?.buyback).toEqual({
    token: chosen,
    nanoUsd: 26n,
    batch: null,
  });
  expect((await money.findEntry(await call(19n)))?.buyback).toBeUndefined();
  expect((await money.findEntry(await call(20n)))?.buyback).toMatchObject({ nanoUsd: 1n });
  expect((await money.findEntry(await call(0n)))?.buyback).toBeUndefined();
});

test("a refund reverses the accrual, also after a batch has claimed it", async () => {
  const { money, account, call, buyback } = await start();
  await money.refund(account, await call(10_000n));
  expect(await buyback.accrued()).toEqual([{ token: own, nanoUsd: 0n, entries: 2 }]);
  const second = await call(400_000n);
  expect(await buyback.gather()).toEqual({ entries: 3, due: 1 });
  await money.refund(account, second);
  expect(await buyback.accrued()).toEqual([{ token: own, nanoUsd: -10_000n, entries: 1 }]);
  expect(await money.check()).toMatchObject({ ok: true });
});

test("below the minimum entries wait in an open batch; above it the batch is due, and each entry is in one batch", async () => {
  const { money, call, buyback } = await start();
  const early = [await call(8_000n), await call(16_000n), await call(400n, chosen)];
  expect(await buyback.gather()).toEqual({ entries: 3, due: 0 });
  expect(await buyback.gather()).toEqual({ entries: 0, due: 0 });
  expect(await buyback.accrued()).toEqual(
    [
      { token: chosen, nanoUsd: 10n, entries: 1 },
      { token: own, nanoUsd: 600n, entries: 2 },
    ].toSorted((a, b) => (a.token < b.token ? -1 : 1)),
  );
  const late = await call(16_000n);
  expect(await buyback.gather()).toEqual({ entries: 1, due: 1 });
  const due = (await buyback.list({ limit: 10 })).filter(({ state }) => state === "due");
  expect(due).toMatchObject([{ token: own, nanoUsd: 1_000n, entries: 3 }]);
  const batches = await Promise.all(
    [early[0], early[1], late].map(async (id) => (await money.findEntry(id ?? ""))?.buyback?.batch),
  );
  expect(new Set(batches)).toEqual(new Set([due[0]?.id]));
  const { executor, bought } = counting();
  expect(await buyback.execute(executor, signal)).toEqual({ done: 1, pending: 0 });
  expect(bought).toEqual(new Map([[due[0]?.id, 1_000n]]));
  expect(await buyback.execute(executor, signal)).toEqual({ done: 0, pending: 0 });
  expect(await buyback.list({ limit: 10 })).toContainEqual(
    expect.objectContaining({ id: due[0]?.id, state: "done", executor: "counting", doneAt: expect.any(Date) }),
  );
});

test("with concurrent gathering and charging every accrual is bought once", async () => {
  const { money, call, buyback, another } = await start();
  const others = await Promise.all([another(), another()]);
  const { executor, bought, total } = counting();
  const state = { busy: true };
  const gathering = [buyback, ...others.map((each) => each.buyback), buyback].map(async (each) => {
    while (state.busy) {
      await each.gather();
      await each.execute(executor, signal);
    }
  });
  const { length: calls } = (
    await Promise.all(
      times(20, async (at) => {
        const made: string[] = [];
        do made.push(await call(4_000n, at % 2 ? chosen : own, others[at % 2]?.money));
        while (made.length < 10 || bought.size < 5);
        return made;
      }),
    )
  ).flat();
  state.busy = false;
  await Promise.all(gathering);
  await buyback.gather();
  await buyback.execute(executor, signal);
  const remaining = (await buyback.accrued()).reduce((sum, { nanoUsd }) => sum + nanoUsd, 0n);
  expect(total() + remaining).toBe(BigInt(calls) * 100n);
  const listed = await buyback.list({ limit: 200 });
  const done = listed.filter(({ state: end }) => end === "done");
  expect(new Map(done.map(({ id, nanoUsd }) => [id, nanoUsd]))).toEqual(bought);
  expect(await money.check()).toMatchObject({ ok: true });
});

test("gathering ends even if new charges arrive continuously", async () => {
  const { uri, clock, call } = await start();
  const { buyback } = await open(uri, clock, (money) => ({
    ...money,
    async claimable(token, limit) {
      await call(400_000n, token, money);
      return money.claimable(token, limit);
    },
  }));
  await call(400_000n);
  expect(await buyback.gather()).toEqual({ entries: 2, due: 1 });
});

test.each<[string, (command: Command) => boolean]>([
  ["before the batch names its entries", ({ update }) => update === "buybacks"],
  ["before the entries name their batch", ({ update }) => update === "ledger"],
  ["before the batch counts them", nth("buybacks", 2)],
  ["before it is closed", nth("buybacks", 3)],
])("a crash %s neither loses nor doubles an accrual", async (_, isLost) => {
  const { uri, clock, call, buyback } = await start();
  await Promise.all(times(10, () => call(8_000n)));
  let dead = false;
  const wire = await brokenWire(uri, (command) => {
    dead ||= isLost(command);
    return dead ? "lose the request" : "pass";
  });
  const victim = await open(wire, clock);
  victim.buyback.gather().catch(() => undefined);
  await eventually(async () => dead);
  const { executor, total } = counting();
  await buyback.gather();
  await buyback.execute(executor, signal);
  expect(total()).toBe(2_000n);
  expect(await buyback.accrued()).toEqual([]);
});

function nth(collection: string, n: number): (command: Command) => boolean {
  let updates = 0;
  return ({ update }) => update === collection && ++updates >= n;
}

const sent = (signature: string): SentTransaction => ({
  signature,
  transaction: "AA==",
  lastValidBlockHeight: 2n ** 40n,
});

test("a batch with a pending transaction is executed again, in any process, with that transaction", async () => {
  const { call, buyback, clock, another } = await start();
  await call(400_000n);
  await buyback.gather();
  const seen: (SentTransaction | undefined)[] = [];
  const executor: BuybackExecutor = {
    name: "swap",
    async execute(batch, recordSent) {
      seen.push(batch.sent);
      if (!batch.sent) {
        await recordSent(sent("first"));
        return { kind: "pending" };
      }
      return { kind: "bought", signature: batch.sent.signature, spent: 10n, received: 77n };
    },
  };
  expect(await buyback.execute(executor, signal)).toEqual({ done: 0, pending: 1 });
  expect(await buyback.execute(executor, signal)).toEqual({ done: 0, pending: 0 });
  clock.later(30_000);
  expect(await (await another()).buyback.execute(executor, signal)).toEqual({ done: 1, pending: 0 });
  expect(seen).toEqual([undefined, sent("first")]);
  expect(await buyback.list({ limit: 1 })).toMatchObject([
    { state: "done", executor: "swap", signature: "first", spent: 10n, received: 77n },
  ]);
});

test("a batch whose executor fails is tried again; after a takeover the first process sends nothing", async () => {
  const { call, buyback, clock, another } = await start();
  await call(400_000n);
  await buyback.gather();
  const failing: BuybackExecutor = { name: "down", execute: () => Promise.reject(new Error("down")) };
  expect(await buyback.execute(failing, signal)).toEqual({ done: 0, pending: 1 });
  clock.later(30_000);
  const entered = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const remembered: unknown[] = [];
  const slow: BuybackExecutor = {
    name: "slow",
    async execute(_, recordSent) {
      entered.resolve();
      await gate.promise;
      remembered.push(
        await recordSent(sent("late")).then(
          () => "sent",
          () => "refused",
        ),
      );
      return { kind: "pending" };
    },
  };
  const first = buyback.execute(slow, signal);
  await entered.promise;
  clock.later(120_000);
  const { executor, total } = counting();
  expect(await (await another()).buyback.execute(executor, signal)).toEqual({ done: 1, pending: 0 });
  gate.resolve();
  expect(await first).toEqual({ done: 0, pending: 1 });
  expect(remembered).toEqual(["refused"]);
  expect(total()).toBe(10_000n);
  expect(await buyback.list({ limit: 1 })).toMatchObject([{ state: "done", executor: "counting" }]);
});

test("gathering, buying and listing read only open entries, however many were bought before", async () => {
  const { mongo, call, buyback } = await start();
  const { executor } = counting();
  const round = async () => {
    await call(400_000n);
    await buyback.gather();
    return buyback.execute(executor, signal);
  };
  for (let n = 0; n < 3; n++) expect(await round()).toEqual({ done: 1, pending: 0 });
  const commands = await profiled(mongo, { ns: /\.(ledger|buybacks)$/ }, async () => {
    await buyback.gather();
    await buyback.execute(executor, signal);
    await buyback.accrued();
    await buyback.list({ limit: 1 });
  });
  expect(commands.length).toBeGreaterThan(4);
  expect(commands.filter(({ planSummary }) => planSummary === "COLLSCAN").map(({ command }) => command)).toEqual([]);
});

test("batches are listed newest first, in pages", async () => {
  const { call, buyback, clock } = await start();
  for (let n = 0; n < 3; n++) {
    clock.later(1_000);
    await call(400_000n);
    await buyback.gather();
  }
  const all = await buyback.list({ limit: 10 });
  expect(all).toHaveLength(3);
  const first = await buyback.list({ limit: 2 });
  expect(await buyback.list({ limit: 2, after: first[1]?.id })).toEqual(all.slice(2));
  await expect(buyback.list({ limit: 1, after: "bb_none" })).rejects.toMatchObject({ status: 400, param: "after" });
});

test.each([
  ["one that is not eligible", "So11111111111111111111111111111111111111112"],
  ["no base58", "0OIl"],
  ["31 bytes", "1".repeat(31)],
  ["nothing", ""],
])("a token that is %s is 400", async (_, token) => {
  const { buyback } = await start();
  for (const eligible of [own, chosen]) expect(() => buyback.assertEligible(eligible)).not.toThrow();
  expect(() => buyback.assertEligible(token)).toThrow(expect.objectContaining({ status: 400, param: "buyback_token" }));
});
