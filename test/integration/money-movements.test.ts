import { expect, test } from "vitest";
import { newRequestId } from "../../shared/platform/ids.ts";
import { brokenWire, type Command, type Fate, losingMoney } from "../support/money-proxy.ts";
import {
  balance,
  captureOf,
  free,
  held,
  holdOf,
  inTurn,
  startBank,
  startMoney,
  times,
} from "../support/money-setup.ts";
import { eventually } from "../support/service.ts";

test("a credit counts once for each key, and reports whether it was created", async () => {
  const { money, account } = await startBank({ balanceNanoUsd: 0n });
  const credit = { amountNanoUsd: 500n, idempotencyKey: "invoice 7.$x", reason: "invoice 7" };
  const first = await money.credit(account, credit);
  expect(first).toEqual({
    created: true,
    entry: {
      id: `credit:${account}:invoice 7.$x`,
      account,
      kind: "credit",
      amountNanoUsd: 500n,
      costNanoUsd: 0n,
      createdAt: expect.any(Date),
      idempotencyKey: "invoice 7.$x",
      reason: "invoice 7",
    },
  });
  expect(await money.credit(account, credit)).toEqual({ created: false, entry: first.entry });
  await expect(money.credit(account, { ...credit, amountNanoUsd: 501n })).rejects.toMatchObject({ status: 409 });
  expect(await balance(money, account)).toEqual(free(500n));
  expect(await money.check()).toMatchObject({ ok: true });
});

test("equal concurrent credits count once", async () => {
  const { money, account, another } = await startBank();
  const other = await another();
  const credit = { amountNanoUsd: 5n, idempotencyKey: "twice" };
  const moved = await Promise.all(times(10, (at) => (at % 2 ? money : other).credit(account, credit)));
  expect(moved.filter(({ created }) => created)).toHaveLength(1);
  expect(new Set(moved.map(({ entry }) => entry.createdAt.getTime())).size).toBe(1);
  expect(await balance(money, account)).toEqual(free(1_005n));
});

test("available money can be taken back, held money cannot", async () => {
  const { money, account } = await startBank();
  await held(money, holdOf(account, 300n));
  const back = { amountNanoUsd: -700n, idempotencyKey: "back" };
  await expect(money.credit(account, { ...back, amountNanoUsd: -701n })).rejects.toMatchObject({ status: 409 });
  expect(await money.credit(account, back)).toMatchObject({ created: true, entry: { kind: "adjustment" } });
  // The balance is zero, but this key was used before.
  expect(await money.credit(account, back)).toMatchObject({ created: false });
  expect(await balance(money, account)).toEqual({ availableNanoUsd: 0n, heldNanoUsd: 300n, openHolds: 1 });
  expect(await money.check()).toMatchObject({ ok: true });
});

test.each([
  ["nothing", { amountNanoUsd: 0n, idempotencyKey: "k" }, "amount_usd"],
  ["more than an Int64", { amountNanoUsd: 2n ** 63n, idempotencyKey: "k" }, "amount_usd"],
  ["without a key", { amountNanoUsd: 1n, idempotencyKey: "" }, "idempotency_key"],
  ["with a key of 256 characters", { amountNanoUsd: 1n, idempotencyKey: "k".repeat(256) }, "idempotency_key"],
])("a credit of %s is refused", async (_, credit, param) => {
  const { money, account } = await startBank();
  await expect(money.credit(account, credit)).rejects.toMatchObject({ status: 400, param });
  expect(await balance(money, account)).toEqual(free(1_000n));
});

test("a credit to an account that does not exist is refused", async () => {
  const { money } = await startBank();
  const credit = { amountNanoUsd: 1n, idempotencyKey: "k" };
  await expect(money.credit("acct_none", credit)).rejects.toMatchObject({ status: 404 });
  expect(await money.check()).toMatchObject({ ok: true, accounts: 1 });
});

test.each<[string, Fate, (command: Command) => boolean]>([
  ["answer to the commit is", "lose the answer", (command) => "commitTransaction" in command],
  ["commit is", "lose the request", (command) => "commitTransaction" in command],
  ["answer to the insert is", "lose the answer", ({ insert }) => insert === "ledger"],
])("a credit whose %s lost three times counts once", async (_, fate, isLost) => {
  const bank = await startBank();
  const { money, account } = bank;
  const { money: far } = await losingMoney(bank, isLost, fate, 3);
  const credit = { amountNanoUsd: 5n, idempotencyKey: "once" };
  expect(await far.credit(account, credit)).toMatchObject({ created: true, entry: { amountNanoUsd: 5n } });
  expect(await far.credit(account, credit)).toMatchObject({ created: false });
  expect(await balance(money, account)).toEqual(free(1_005n));
  expect(await money.check()).toMatchObject({ ok: true });
});

test("a credit whose commit was lost and whose transaction was retried counts once and reports that it was created", async () => {
  const { money, uri, account, mongo } = await startBank();
  let commits = 0;
  const wire: string = await brokenWire(uri, async (command) => {
    if (command.commitTransaction === undefined) return "pass";
    commits += 1;
    if (commits === 2) {
      // The error of a primary that was elected in between.
      const appName = new URL(wire).searchParams.get("appName");
      const again = { errorCode: 251, errorLabels: ["TransientTransactionError"] };
      const data = { failCommands: ["commitTransaction"], appName, ...again };
      await mongo.connection
        .getClient()
        .db("admin")
        .command({ configureFailPoint: "failCommand", mode: { times: 1 }, data });
    }
    return commits === 1 ? "lose the answer" : "pass";
  });
  const { money: far } = await startMoney(wire);
  expect(await far.credit(account, { amountNanoUsd: 5n, idempotencyKey: "once" })).toMatchObject({ created: true });
  expect(commits).toBe(2);
  expect(await balance(money, account)).toEqual(free(1_005n));
  expect(await money.check()).toMatchObject({ ok: true });
});

test("40 credits succeed alongside 4 busy writers", async () => {
  const { money, account, another } = await startBank({ balanceNanoUsd: 1_000_000n });
  const others = await Promise.all(times(4, another));
  const state = { busy: true, calls: 0 };
  const writers = others.map(async (writer) => {
    while (state.busy) {
      await Promise.all(
        times(10, async () => {
          await writer.charge(captureOf(await held(writer, holdOf(account, 20n)), 1n));
          state.calls += 1;
        }),
      );
    }
  });
  // A credit may be faster than a writer's first calls.
  await eventually(() => state.calls > 40);
  const before = state.calls;
  const credits = times(40, (at) => money.credit(account, { amountNanoUsd: 100n, idempotencyKey: `${at}` }));
  const moved = await Promise.all(credits);
  const beside = state.calls - before;
  state.busy = false;
  await Promise.all(writers);
  expect(moved.every(({ created }) => created)).toBe(true);
  expect(state.calls).toBeGreaterThan(40);
  // A credit waits for some twenty of the writers' calls, however fast they are here, and does not depend on luck.
  expect(beside).toBeLessThan(40 * 500);
  expect(await balance(money, account)).toEqual(free(1_004_000n - BigInt(state.calls)));
  expect(await money.check()).toMatchObject({ ok: true, differenceNanoUsd: 0n, openHolds: 0 });
});

test("a call is refunded in full and once, even before it is settled", async () => {
  const { money, account, another } = await startBank();
  const hold = await held(money, holdOf(account, 300n));
  await money.capture(captureOf(hold, 120n));
  const processes = [money, await another()] as const;
  const entries = await Promise.all(times(6, (at) => inTurn(processes, at).refund(account, hold.requestId)));
  expect(entries[0]).toMatchObject({
    id: `refund:${hold.requestId}`,
    kind: "refund",
    amountNanoUsd: 120n,
    costNanoUsd: 0n,
  });
  for (const entry of entries) expect(entry).toEqual(entries[0]);
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 1 });
  await money.charge(captureOf(hold, 0n));
  expect(await balance(money, account)).toEqual(free(1_000n));
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 0 });
});

test("a refund is retried until MongoDB accepts it, and counts once", async () => {
  const bank = await startBank();
  const { money, account } = bank;
  const hold = await held(money, holdOf(account, 300n));
  await money.charge(captureOf(hold, 120n));
  const { money: far, sent } = await losingMoney(bank, ({ find }) => find === "ledger", "lose the answer", 2);
  expect(await far.refund(account, hold.requestId)).toMatchObject({ amountNanoUsd: 120n });
  expect(sent()).toBeGreaterThan(2);
  expect(await balance(money, account)).toEqual(free(1_000n));
});

test("a refund to a removed account is not retried", async () => {
  const { money, mongo, account } = await startBank();
  const hold = await held(money, holdOf(account, 300n));
  await money.charge(captureOf(hold, 120n));
  await mongo.connection.collection<{ _id: string }>("accounts").deleteOne({ _id: account });
  await expect(money.refund(account, hold.requestId)).rejects.toMatchObject({ status: 404 });
});

test("a call is refunded only to its own account, and not before it is captured", async () => {
  const { money, account } = await startBank();
  const hold = await held(money, holdOf(account, 300n));
  await expect(money.refund(account, hold.requestId)).rejects.toMatchObject({ status: 404 });
  await money.charge(captureOf(hold, 120n));
  const { id: other } = await money.createAccount({ name: "other" });
  await expect(money.refund(other, hold.requestId)).rejects.toMatchObject({ status: 404 });
  await expect(money.refund(account, newRequestId())).rejects.toMatchObject({ status: 404 });
  await expect(money.refund(account, `credit:${account}:opening`)).rejects.toMatchObject({ status: 404 });
  expect(await balance(money, account)).toEqual(free(880n));
});
