import { expect, test } from "vitest";
import { HoldUnknown } from "../../shared/money/holds.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { brokenWire, type Command } from "../support/money-proxy.ts";
import {
  balance,
  captureOf,
  free,
  held,
  holdOf,
  inTurn,
  openAccount,
  startBank,
  startMoney,
  times,
} from "../support/money-setup.ts";
import { eventually } from "../support/service.ts";

test("exactly those concurrent calls of several processes that the balance covers get a hold", async () => {
  const { money, account, another } = await startBank({ balanceNanoUsd: 2_099n });
  const processes = [money, await another(), await another()] as const;
  const asked = times(200, (at) => holdOf(account, 100n, { minNanoUsd: at % 2 === 0 ? 100n : 1n }));
  const answers = await Promise.all(asked.map((hold, at) => inTurn(processes, at).hold(hold)));

  const sumNanoUsd = answers.reduce((sum, answer) => sum + (answer.ok ? answer.heldNanoUsd : 0n), 0n);
  const fitting = answers.filter((answer) => answer.ok).length;
  expect([20, 21]).toContain(fitting);
  expect(await balance(money, account)).toEqual({
    availableNanoUsd: 2_099n - sumNanoUsd,
    heldNanoUsd: sumNanoUsd,
    openHolds: fitting,
  });
  expect(await money.check()).toMatchObject({ ok: true, openHolds: fitting, undecided: fitting });
});

test("only the id that is held already is refused in its group", async () => {
  const { money, account } = await startBank();
  const hold = await held(money, holdOf(account, 100n));
  const [again, other] = await Promise.allSettled([money.hold(hold), money.hold(holdOf(account, 1n))]);
  expect(again).toMatchObject({ status: "rejected", reason: { message: expect.stringContaining("held already") } });
  expect(other).toMatchObject({ status: "fulfilled", value: { ok: true } });
  expect(await balance(money, account)).toEqual({ availableNanoUsd: 899n, heldNanoUsd: 101n, openHolds: 2 });
});

test("the 2,001st open hold of an account is refused, also within a group", async () => {
  const { money, account } = await startBank({ balanceNanoUsd: 10_000n });
  const answers = await Promise.all(times(2_010, () => money.hold(holdOf(account, 1n))));
  expect(answers.filter((answer) => answer.ok)).toHaveLength(2_000);
  expect(answers.filter((answer) => !answer.ok && answer.reason === "full")).toHaveLength(10);
  expect(await balance(money, account)).toEqual({ availableNanoUsd: 8_000n, heldNanoUsd: 2_000n, openHolds: 2_000 });

  const [first] = await Promise.all(times(1, () => money.hold(holdOf(account, 1n))));
  expect(first).toEqual({ ok: false, reason: "full", availableNanoUsd: 8_000n, heldNanoUsd: 2_000n });
});

test.each(["req_a.amount", "req_$inc", "a", "req_", "req_a\u0000b", "holds.req_a", "", "req_ä"])(
  "the id %j never reaches an update",
  async (requestId) => {
    const { money, account } = await startBank();
    const hold = holdOf(account, 1n, { requestId });
    await expect(money.hold(hold)).rejects.toThrow(TypeError);
    await expect(money.charge(captureOf(hold, 1n))).rejects.toThrow(TypeError);
    await expect(money.settle({ account, requestId, heldNanoUsd: 1n, costNanoUsd: 1n })).rejects.toThrow(TypeError);
    expect(await money.findEntry(requestId)).toBeUndefined();
    expect(await balance(money, account)).toEqual(free(1_000n));
  },
);

test.each([-1n, 2n ** 63n, 1 as unknown as bigint])("an amount of %s is refused", async (maxNanoUsd) => {
  const { money, account } = await startBank();
  await expect(money.hold(holdOf(account, maxNanoUsd, { minNanoUsd: 0n }))).rejects.toThrow("maxNanoUsd");
  await expect(money.hold(holdOf(account, 1n, { minNanoUsd: maxNanoUsd }))).rejects.toThrow("minNanoUsd");
  expect(await balance(money, account)).toEqual(free(1_000n));
});

test("a hold on an account that does not exist rejects and creates nothing", async () => {
  const { money } = await startBank();
  await expect(money.hold(holdOf("acct_none", 1n))).rejects.toThrow("no account");
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 0 });
});

test("a hold whose answer was lost is unknown, is not retried, and is released once", async () => {
  const bank = await startBank();
  const { money, account } = bank;
  const other = await openAccount(money, 1_000n);
  const isHold = (command: Command) => {
    const [update] = (command["updates"] ?? []) as { q: { _id: string; frozen?: boolean } }[];
    return command["update"] === "accounts" && update?.q._id === account && update.q.frozen === false;
  };
  let sent = 0;
  const wire = await brokenWire(bank.uri, async (command) => {
    if (!isHold(command)) return "pass";
    sent += 1;
    // The connection breaks when the other account has its hold, which would fail if it waited for a connection.
    await eventually(async () => (await balance(money, other)).openHolds === 1);
    return "lose the answer";
  });
  const { money: far } = await startMoney(wire, bank.clock);
  const lost = [holdOf(account, 300n, { minNanoUsd: 1n }), holdOf(account, 200n)];
  const [one, two, theirs] = await Promise.allSettled([...lost, holdOf(other, 5n)].map((hold) => far.hold(hold)));

  expect(one).toMatchObject({ status: "rejected", reason: { name: "HoldUnknown", heldNanoUsd: 300n } });
  expect(two).toMatchObject({ status: "rejected", reason: expect.any(HoldUnknown) });
  expect(theirs).toEqual({ status: "fulfilled", value: { ok: true, heldNanoUsd: 5n } });
  // We send it once, and the driver repeats it with an id by which MongoDB detects the repeat, if it finds MongoDB again
  // within a second.
  expect([1, 2]).toContain(sent);
  expect(await balance(money, account)).toEqual({ availableNanoUsd: 500n, heldNanoUsd: 500n, openHolds: 2 });

  for (const hold of [...lost, ...lost]) await far.charge(captureOf(hold, 0n, { status: "failed" }));
  expect(await balance(money, account)).toEqual(free(1_000n));
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 1 });
});

test("an unknown hold reports the amount of its write, also when that was below the maximum", async () => {
  const { money, uri, account } = await startBank({ balanceNanoUsd: 70n });
  let holds = 0;
  const wire = await brokenWire(uri, (command) => {
    if (command.update !== "accounts") return "pass";
    holds += 1;
    return holds === 1 ? "pass" : "lose the answer";
  });
  const { money: far } = await startMoney(wire);
  const hold = holdOf(account, 100n, { minNanoUsd: 1n });
  await expect(far.hold(hold)).rejects.toMatchObject({ name: "HoldUnknown", heldNanoUsd: 70n });
  await money.charge(captureOf(hold, 0n, { heldNanoUsd: 70n, status: "failed" }));
  expect(await balance(money, account)).toEqual(free(70n));
});

test("while MongoDB is known to be unavailable a hold is refused, and nothing is sent", async () => {
  const { uri, account } = await startBank();
  let isCut = false;
  let holds = 0;
  const wire = await brokenWire(uri, (command) => {
    if (command.update === "accounts") holds += 1;
    return isCut ? "lose the request" : "pass";
  });
  const { money: far, mongo } = await startMoney(wire);
  isCut = true;
  // It finds the connection broken, or waits in vain for another.
  await expect(mongo.ping()).rejects.toThrow(/connection|not answered/);
  await expect.poll(() => mongo.upSince(), { interval: 10 }).toBeUndefined();
  await expect(far.hold(holdOf(account, 1n))).rejects.toMatchObject({ status: 503, retryAfterSeconds: 1 });
  expect(holds).toBe(0);
  isCut = false;
  await expect.poll(() => mongo.upSince(), { interval: 10 }).toBeDefined();
  expect(await far.hold(holdOf(account, 1n, { requestId: newRequestId() }))).toMatchObject({ ok: true });
});
