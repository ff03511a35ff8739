import { expect, test } from "vitest";
import { type Command, losingMoney } from "../support/money-proxy.ts";
import {
  balance,
  captureOf,
  free,
  held,
  holdOf,
  openAccount,
  settlementOf,
  startBank,
  times,
} from "../support/money-setup.ts";

test("a group with one call that is settled still settles the others", async () => {
  const { money, account, another } = await startBank();
  const holds = await Promise.all(times(8, () => held(money, holdOf(account, 10n))));
  await Promise.all(holds.map((hold) => money.capture(captureOf(hold, 4n))));
  const early = holds[3];
  if (!early) throw new Error("no hold");
  await (await another()).settle(settlementOf(early, 4n));
  await Promise.all(holds.map((hold) => money.settle(settlementOf(hold, 4n))));
  expect(await balance(money, account)).toEqual(free(968n));
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 0 });
});

test("a settlement whose answers were lost is retried and counts once; other accounts do not wait", async () => {
  const bank = await startBank();
  const { money, account } = bank;
  const other = await openAccount(money, 10n);
  const isTheirs = (command: Command) => {
    const [update] = (command["updates"] ?? []) as { q: { _id: string } }[];
    return command["update"] === "accounts" && update?.q._id === account;
  };
  const holds = await Promise.all(times(3, () => held(money, holdOf(account, 100n))));
  const theirs = await held(money, holdOf(other, 10n));
  await Promise.all([...holds, theirs].map((hold) => money.capture(captureOf(hold, 7n))));
  const { money: far, sent } = await losingMoney(bank, isTheirs, "lose the answer", 4);
  await Promise.all([...holds, theirs].map((hold) => far.settle(settlementOf(hold, 7n))));
  expect(sent()).toBeGreaterThan(4);
  expect(await balance(money, account)).toEqual(free(979n));
  expect(await balance(money, other)).toEqual(free(3n));
  expect(await money.check()).toMatchObject({ ok: true, openHolds: 0 });
});

test("a settlement with another amount than the hold's does not change the hold", async () => {
  const { money, account } = await startBank();
  const hold = await held(money, holdOf(account, 100n));
  await money.capture(captureOf(hold, 40n));
  await money.settle({ ...settlementOf(hold, 40n), heldNanoUsd: 400n });
  expect(await balance(money, account)).toEqual({ availableNanoUsd: 900n, heldNanoUsd: 100n, openHolds: 1 });
});

test("a cost above the hold is not settled", async () => {
  const { money, account } = await startBank();
  const hold = await held(money, holdOf(account, 100n));
  await expect(money.settle(settlementOf(hold, 101n))).rejects.toThrow(RangeError);
  expect(await balance(money, account)).toEqual({ availableNanoUsd: 900n, heldNanoUsd: 100n, openHolds: 1 });
});
