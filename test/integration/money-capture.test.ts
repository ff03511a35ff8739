import { mongo as driver } from "mongoose";
import { expect, test } from "vitest";
import type { MoneyObserver } from "../../shared/money/index.ts";
import { brokenWire, losingMoney } from "../support/money-proxy.ts";
import {
  balance,
  captureOf,
  free,
  held,
  holdOf,
  inTurn,
  openAccount,
  settlementOf,
  startBank,
  startMoney,
  times,
} from "../support/money-setup.ts";

test("a capture stores all fields of the call, and its settlement charges the account", async () => {
  const { money, account } = await startBank();
  const hold = await held(money, holdOf(account, 300n));
  const attempts = [
    { upstream: "azure", startedMs: 4, durationMs: 30, outcome: "busy", status: 429 },
    {
      upstream: "google",
      model: "google/gemini",
      startedMs: 35,
      durationMs: 9,
      outcome: "refused",
      code: "invalid_value",
    },
    { upstream: "openai", startedMs: 45, durationMs: 1_100, outcome: "cancelled" },
  ] as const;
  const times = { queueMs: 3, firstTokenMs: 40 };
  const { won, entry } = await money.charge(
    captureOf(hold, 120n, {
      status: "cancelled",
      error: "upstream_error",
      ...times,
      attempts,
      upstreamCostNanoUsd: 77n,
    }),
  );
  expect(won).toBe(true);
  expect(entry).toEqual({
    id: hold.requestId,
    account,
    kind: "usage",
    amountNanoUsd: -120n,
    costNanoUsd: 120n,
    createdAt: expect.any(Date),
    request: {
      key: "key_test",
      endpoint: "/v1/chat/completions",
      model: "openai/gpt",
      upstream: "openai",
      attempts,
      status: "cancelled",
      error: "upstream_error",
      usage: { input: 10, output: 5 },
      estimated: false,
      queueMs: 3,
      firstTokenMs: 40,
      totalMs: 1_200,
      shortfallNanoUsd: 0n,
      upstreamCostNanoUsd: 77n,
    },
  });
  expect(await money.findEntry(hold.requestId)).toEqual(entry);
  expect(await balance(money, account)).toEqual(free(880n));
  expect(await money.check()).toMatchObject({ ok: true, differenceNanoUsd: 0n, openHolds: 0 });
});

test("an unknown field is absent from the entry", async () => {
  const { money, account, mongo } = await startBank();
  const hold = await held(money, holdOf(account, 3n));
  await money.charge(captureOf(hold, 1n, { upstream: undefined, error: undefined }));
  const stored = await mongo.connection.collection<{ _id: string }>("ledger").findOne({ _id: hold.requestId });
  expect(stored).not.toHaveProperty("request.upstream");
  expect(stored).not.toHaveProperty("request.error");
  expect(stored).not.toHaveProperty("request.queueMs");
});

test("one of several concurrent captures wins, and all return its entry", async () => {
  const { money, account, another } = await startBank();
  const processes = [money, await another(), await another()] as const;
  for (let round = 0; round < 5; round++) {
    const hold = await held(money, holdOf(account, 100n));
    const captured = await Promise.all(times(9, (at) => inTurn(processes, at).charge(captureOf(hold, BigInt(at + 1)))));
    expect(captured.filter(({ won }) => won)).toHaveLength(1);
    expect(new Set(captured.map(({ entry }) => entry.costNanoUsd)).size).toBe(1);
    expect(captured[0]?.entry).toEqual(await money.findEntry(hold.requestId));
  }
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 0 });
});

test("a later capture returns the earlier entry, even in a group with new ones", async () => {
  const { money, account } = await startBank();
  const holds = await Promise.all(times(6, () => held(money, holdOf(account, 10n))));
  for (const hold of holds.slice(0, 3)) await money.charge(captureOf(hold, 1n));
  const captured = await Promise.all(holds.map((hold) => money.charge(captureOf(hold, 2n))));
  expect(captured.map(({ won }) => won)).toEqual([false, false, false, true, true, true]);
  expect(captured.map(({ entry }) => entry.costNanoUsd)).toEqual([1n, 1n, 1n, 2n, 2n, 2n]);
  expect(await balance(money, account)).toEqual(free(991n));
});

test.each(["lose the answer", "lose the request"] as const)(
  "an insert that breaks twice (%s) is made again, and its decider has won",
  async (fate) => {
    const bank = await startBank();
    const { money, account } = bank;
    const other = await openAccount(money, 10n);
    const { money: far, sent } = await losingMoney(bank, ({ insert }) => insert === "ledger", fate, 2);
    const holds = [await held(money, holdOf(account, 100n)), await held(money, holdOf(other, 10n))] as const;
    const captured = await Promise.all(holds.map((hold) => far.charge(captureOf(hold, 7n))));
    expect(captured.map(({ won }) => won)).toEqual([true, true]);
    expect(sent()).toBeGreaterThan(2);
    expect((await money.findEntry(holds[0].requestId))?.costNanoUsd).toBe(7n);
    expect(await balance(money, account)).toEqual(free(993n));
    expect(await balance(money, other)).toEqual(free(3n));
    expect(await money.check()).toMatchObject({ ok: true, openHolds: 0 });
  },
);

test("a capture that was overtaken while its insert was lost has not won", async () => {
  const { money, uri, account } = await startBank();
  const hold = await held(money, holdOf(account, 100n));
  let inserts = 0;
  let overtaken = false;
  const wire = await brokenWire(uri, async (command) => {
    if (command.insert !== "ledger" || overtaken) return "pass";
    inserts += 1;
    if (inserts === 2) {
      await money.charge(captureOf(hold, 0n, { status: "failed" }));
      overtaken = true;
    }
    return "lose the request";
  });
  const { money: far } = await startMoney(wire);
  const { won, entry } = await far.charge(captureOf(hold, 90n));
  expect(won).toBe(false);
  expect(entry.costNanoUsd).toBe(0n);
  expect(await balance(money, account)).toEqual(free(1_000n));
});

test("a capture waits for MongoDB until its signal aborts", async () => {
  const { money, uri, account } = await startBank();
  const hold = await held(money, holdOf(account, 100n));
  const inserted = Promise.withResolvers<void>();
  const wire = await brokenWire(uri, (command) => {
    if (command.insert === "ledger") inserted.resolve();
    return command.insert === "ledger" ? "lose the request" : "pass";
  });
  const { money: far } = await startMoney(wire);
  const leaving = new AbortController();
  const settling = far.charge(captureOf(hold, 1n, { signal: leaving.signal }));
  void inserted.promise.then(() => leaving.abort(new Error("shutting down")));
  await expect(settling).rejects.toThrow("shutting down");
  expect(await money.findEntry(hold.requestId)).toBeUndefined();
  await expect(far.capture(captureOf(hold, 1n, { signal: leaving.signal }))).rejects.toThrow("shutting down");
});

test("a capture whose insert hangs rejects as soon as its signal aborts", async () => {
  const { money, uri, account } = await startBank();
  const hold = await held(money, holdOf(account, 100n));
  const leaving = new AbortController();
  const sent = Promise.withResolvers<void>();
  const wire = await brokenWire(uri, async (command) => {
    if (command.insert !== "ledger") return "pass" as const;
    leaving.abort(new Error("shutting down"));
    await sent.promise;
    return "pass" as const;
  });
  const { money: far } = await startMoney(wire);
  await expect(far.charge(captureOf(hold, 1n, { signal: leaving.signal }))).rejects.toThrow("shutting down");
  sent.resolve();
  // The command was sent and executed anyway: the next capture returns its entry.
  await expect.poll(() => money.findEntry(hold.requestId)).toBeDefined();
  expect(await money.charge(captureOf(hold, 0n))).toMatchObject({ won: false, entry: { costNanoUsd: 1n } });
  expect(await balance(money, account)).toEqual(free(999n));
});

test("a cost above the hold is not charged, but recorded and counted as shortfall", async () => {
  const shortfalls: bigint[] = [];
  const ignore = () => {};
  const observer: MoneyObserver = {
    captured: (_, { shortfallNanoUsd }) => void shortfalls.push(shortfallNanoUsd),
    late: ignore,
    lost: ignore,
    writes: { ledger: ignore, holds: ignore, applications: ignore, leases: ignore },
  };
  const { money, account } = await startBank({ observer });
  const hold = await held(money, holdOf(account, 100n));
  const { entry } = await money.charge(captureOf(hold, 130n));
  expect(entry).toMatchObject({ costNanoUsd: 100n, request: { shortfallNanoUsd: 30n } });
  // The losing capture charged nothing.
  expect((await money.charge(captureOf(hold, 150n))).won).toBe(false);
  expect(shortfalls).toEqual([30n]);
  expect(await balance(money, account)).toEqual(free(900n));
  expect(await money.check()).toMatchObject({ ok: true });
});

test("an entry that is too large is refused alone", async () => {
  const { money, account } = await startBank();
  const [large, usual] = await Promise.all(times(2, () => held(money, holdOf(account, 10n))));
  if (!large || !usual) throw new Error("no holds");
  const outcomes = await Promise.allSettled([
    money.charge(captureOf(large, 1n, { model: "x".repeat(17_000) })),
    money.charge(captureOf(usual, 1n)),
  ]);
  expect(outcomes).toMatchObject([{ status: "rejected", reason: { name: "RangeError" } }, { status: "fulfilled" }]);
  expect(await money.findEntry(large.requestId)).toBeUndefined();
  // The caller settles at 0 instead.
  await money.charge(captureOf(large, 0n, { status: "failed" }));
  expect(await balance(money, account)).toEqual(free(999n));
});

test("an entry that MongoDB refuses does not delay others, and is retried until it is written", async () => {
  const { money, mongo, account } = await startBank();
  const [refused, usual] = await Promise.all(times(2, () => held(money, holdOf(account, 10n))));
  if (!refused || !usual) throw new Error("no holds");
  const rule = (validator: object) => mongo.connection.db?.command({ collMod: "ledger", validator });
  await rule({ "request.model": { $ne: "refused" } });
  const waiting = money.charge(captureOf(refused, 1n, { model: "refused" }));
  await money.charge(captureOf(usual, 1n));
  expect(await balance(money, account)).toEqual({ availableNanoUsd: 989n, heldNanoUsd: 10n, openHolds: 1 });
  await rule({});
  expect((await waiting).won).toBe(true);
  expect(await balance(money, account)).toEqual(free(998n));
});

test.each([
  ["a negative cost", { costNanoUsd: -1n }],
  ["a cost that is no bigint", { costNanoUsd: 1 as unknown as bigint }],
  ["a cost beyond an Int64", { costNanoUsd: 2n ** 63n }],
])("a capture with %s is refused", async (_, wrong) => {
  const { money, account } = await startBank();
  const hold = await held(money, holdOf(account, 100n));
  await expect(money.charge(captureOf(hold, 1n, wrong))).rejects.toThrow("costNanoUsd");
  await expect(money.settle({ ...settlementOf(hold, 1n), ...wrong })).rejects.toThrow("costNanoUsd");
  expect(await money.findEntry(hold.requestId)).toBeUndefined();
});

test("the attempt of an ordinary entry takes at most 32 bytes more than the bare number", async () => {
  const { money, account, mongo } = await startBank();
  const hold = await held(money, holdOf(account, 300n));
  await money.charge(captureOf(hold, 0n));
  const stored = await mongo.connection.collection<{ _id: string }>("ledger").findOne({ _id: hold.requestId });
  const { attempts } = (stored as unknown as { request: { attempts: object[] } }).request;
  expect(attempts).toEqual([{ s: 1, d: 40 }]);
  const bytes = (value: unknown) => driver.BSON.serialize({ attempts: value }).length;
  expect(bytes(attempts) - bytes(1)).toBeLessThanOrEqual(32);
});
