import { expect, onTestFinished, test } from "vitest";
import { type CallHold, createMoney } from "../../shared/money/index.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { brokenWire } from "../support/money-proxy.ts";
import {
  alone,
  balance,
  captureOf,
  createMovableClock,
  createRecallBus,
  free,
  held,
  holdOf,
  leaseRequestOf,
  leasesOf,
  startBank,
  startMoney,
} from "../support/money-setup.ts";
import { eventually } from "../support/service.ts";

const callHoldOf = (account: string, nanoUsd: bigint, more: Partial<CallHold> = {}): CallHold => ({
  ...holdOf(account, nanoUsd),
  kind: "storage",
  key: "key_test",
  endpoint: "/v1/uploads",
  insufficientText: (availableNanoUsd) => `There are ${availableNanoUsd}.`,
  ...more,
});

test("the call's maximum is held, or all that is available", async () => {
  const { money, account } = await startBank();
  expect(await money.holdForCall(callHoldOf(account, 600n))).toBe(600n);
  expect(await money.holdForCall(callHoldOf(account, 600n, { minNanoUsd: 1n }))).toBe(400n);
  expect(await balance(money, account)).toMatchObject({ availableNanoUsd: 0n, heldNanoUsd: 1_000n });
});

test("an insufficient balance and a frozen account have their own errors, with nothing held", async () => {
  const { money, account } = await startBank();
  const insufficient = {
    code: "insufficient_balance",
    status: 402,
    message: "There are 1000. Top up in the dashboard.",
  };
  await expect(money.holdForCall(callHoldOf(account, 1_001n))).rejects.toMatchObject(insufficient);
  await money.updateAccount(account, { frozen: true });
  await expect(money.holdForCall(callHoldOf(account, 1n))).rejects.toMatchObject({ code: "account_frozen" });
  expect(await balance(money, account)).toEqual(free(1_000n));
});

test("a hold gets what leases do not use, of its own instance and of others; while one does not answer, it is 503", async () => {
  const { uri, money, account } = await startBank();
  const { money: other } = await startMoney(uri);
  const bus = createRecallBus();
  const [one, two] = [leasesOf(money, "api_0", bus("api_0")), leasesOf(other, "api_1", bus("api_1"))];
  const lend = async () => (await one.hold(leaseRequestOf(account, 1_000n))).end(0n);
  for (const bank of [money, other]) {
    await lend();
    const call = callHoldOf(account, 900n);
    expect(await bank.holdForCall(call)).toBe(900n);
    await bank.release({ ...call, key: "key_test", heldNanoUsd: 900n, totalMs: 0 }, { status: "cancelled" });
    await eventually(async () => (await balance(money, account)).availableNanoUsd === 1_000n);
  }
  await lend();
  leasesOf(other, "api_2", alone);
  const onItsWay = { status: 503, message: /on its way back/ };
  await expect(other.holdForCall(callHoldOf(account, 900n))).rejects.toMatchObject(onItsWay);
  await expect(other.holdForCall(callHoldOf(account, 1_001n))).rejects.toMatchObject({ status: 402 });
  await Promise.all([one.settleIdle(), two.settleIdle()]);
});

test("a hold waits a moment for the rest of an earlier call's hold", async () => {
  const { uri, money, account } = await startBank();
  const before = await held(money, holdOf(account, 600n));
  const clock = createManualClock();
  const log = createLogger("test", "silent");
  const mongo = await connectMongo(uri, clock, log);
  onTestFinished(() => mongo.close());
  const timers = clock.pending();
  const taken = createMoney({ mongo, clock, log }).holdForCall(callHoldOf(account, 600n));
  await eventually(() => clock.pending() === timers + 1);
  await money.charge(captureOf(before, 10n));
  clock.advance(50);
  expect(await taken).toBe(600n);
});

test("a hold of unknown outcome is 503, is settled at zero in the background, and settled() waits for that", async () => {
  const { uri, money, account } = await startBank();
  let lose = true;
  const wire = await brokenWire(uri, (command) => {
    if (!lose || command["update"] !== "accounts") return "pass";
    lose = false;
    return "lose the answer";
  });
  const far = (await startMoney(`${wire}&retryWrites=false`, createMovableClock())).money;
  const ask = callHoldOf(account, 300n);
  await expect(far.holdForCall(ask)).rejects.toMatchObject({ code: "no_capacity", retryAfterSeconds: 1 });
  await far.settled();
  const entry = await money.findEntry(ask.requestId);
  expect(entry).toMatchObject({
    kind: "storage",
    costNanoUsd: 0n,
    request: { status: "failed", error: "no_capacity" },
  });
  expect(await balance(money, account)).toEqual(free(1_000n));
});

test("a repeated refusal costs one read and no write, and a credit or release counts at once", async () => {
  const { uri, money, account } = await startBank();
  const sent: string[] = [];
  const wire = await brokenWire(uri, (command) => {
    const [name] = Object.keys(command);
    if (name && command[name] === "accounts") sent.push(name);
    return "pass";
  });
  const { money: far } = await startMoney(wire);
  sent.length = 0;
  const refuse = (nanoUsd: bigint) =>
    expect(far.holdForCall(callHoldOf(account, nanoUsd))).rejects.toMatchObject({ code: "insufficient_balance" });
  await refuse(1_001n);
  expect(sent.splice(0)).toEqual(["update", "find"]);
  for (let again = 0; again < 3; again++) await refuse(1_001n);
  await Promise.all([refuse(1_002n), refuse(1_003n)]);
  expect(sent.splice(0)).toEqual(["find", "find", "find", "find"]);

  await money.credit(account, { amountNanoUsd: 1n, idempotencyKey: "more" });
  const all = callHoldOf(account, 1_001n);
  expect(await far.holdForCall(all)).toBe(1_001n);
  expect(sent.splice(0)).toEqual(["find", "update"]);
  // The amount exceeds even the balance after all holds are released, so the call does not wait for that.
  await refuse(1_002n);
  await refuse(1_002n);
  expect(sent.splice(0)).toEqual(["update", "find", "find"]);
  await money.charge(captureOf(all, 1n));
  expect(await far.holdForCall(callHoldOf(account, 1_000n))).toBe(1_000n);
  expect(sent.splice(0)).toEqual(["find", "update"]);
});

test("a balance that cannot be read is 503, with nothing held and nothing to release", async () => {
  const { uri, money, account } = await startBank();
  let lose = false;
  const wire = await brokenWire(uri, (command) =>
    lose && command["find"] === "accounts" ? "lose the request" : "pass",
  );
  const { money: far } = await startMoney(wire);
  lose = true;
  const ask = callHoldOf(account, 1_001n);
  await expect(far.holdForCall(ask)).rejects.toMatchObject({ code: "no_capacity", retryAfterSeconds: 1 });
  await far.settled();
  expect(await money.findEntry(ask.requestId)).toBeUndefined();
  expect(await balance(money, account)).toEqual(free(1_000n));
});
