import { expect, test } from "vitest";
import { newRequestId } from "../../shared/platform/ids.ts";
import { captureOf, createMovableClock, held, holdOf, startBank, startMoney, times } from "../support/money-setup.ts";
import { testStores } from "../support/servers.ts";

test("an account is created, found and updated", async () => {
  const { money, clock } = await startBank();
  const made = await money.createAccount({ name: "acme", tier: "elite", buybackToken: "mint" });
  expect(made).toEqual({
    id: expect.stringMatching(/^acct_[0-9A-Za-z]{20}$/),
    name: "acme",
    tier: "elite",
    frozen: false,
    buybackToken: "mint",
    availableNanoUsd: 0n,
    heldNanoUsd: 0n,
    openHolds: 0,
    alertBelowNanoUsd: null,
    alertSince: null,
    createdAt: expect.any(Date),
  });
  expect(await money.account(made.id)).toEqual(made);
  clock.later(1);
  const changed = { ...made, tier: "standard", frozen: true, buybackToken: null };
  expect(await money.updateAccount(made.id, { tier: "standard", frozen: true, buybackToken: null })).toEqual(changed);
  expect(await money.updateAccount(made.id, { name: undefined })).toEqual(changed);
  expect(await money.updateAccount(made.id, {})).toEqual(changed);
  expect(await money.account(made.id)).toEqual(changed);
});

test("an update cannot change the balance, and must be valid", async () => {
  const { money, account } = await startBank();
  const before = await money.account(account);
  await money.updateAccount(account, { available: 5n, $inc: { available: 5n } } as never);
  expect(await money.account(account)).toEqual(before);
  await expect(money.updateAccount(account, { tier: "gold" as never })).rejects.toThrow("tier");
  await expect(money.updateAccount("acct_none", { frozen: true })).rejects.toMatchObject({ status: 404 });
  expect(await money.account("acct_none")).toBeUndefined();
});

test("accounts are listed newest first, page by page, also those of one millisecond", async () => {
  const { MONGODB_URI } = await testStores();
  const clock = { ...createMovableClock(), now: () => nowMs };
  let nowMs = 1_000;
  const { money } = await startMoney(MONGODB_URI, clock);
  for (const at of [1_000, 2_000, 2_000, 2_000, 3_000]) {
    nowMs = at;
    await money.createAccount({ name: `${at}` });
  }
  const all = await money.accounts({ limit: 10 });
  expect(all.map(({ name }) => name)).toEqual(["3000", "2000", "2000", "2000", "1000"]);
  const paged = [];
  for (let page = await money.accounts({ limit: 2 }); page.length > 0; ) {
    paged.push(...page);
    page = await money.accounts({ limit: 2, after: page.at(-1)?.id });
  }
  expect(paged).toEqual(all);
  await expect(money.accounts({ limit: 2, after: "acct_none" })).rejects.toMatchObject({ status: 400, param: "after" });
});

test("a ledger is listed newest first, page by page and by kind, without other accounts' entries", async () => {
  const { money, account } = await startBank();
  for (let at = 0; at < 5; at++) await money.charge(captureOf(await held(money, holdOf(account, 10n)), BigInt(at)));
  await money.credit(account, { amountNanoUsd: -1n, idempotencyKey: "back" });
  const all = await money.ledger(account, { limit: 10 });
  expect(all.map(({ amountNanoUsd }) => amountNanoUsd)).toEqual([-1n, -4n, -3n, -2n, -1n, 0n, 1_000n]);
  const paged = [];
  for (let page = await money.ledger(account, { limit: 3 }); page.length > 0; ) {
    paged.push(...page);
    page = await money.ledger(account, { limit: 3, after: page.at(-1)?.id });
  }
  expect(paged).toEqual(all);
  expect((await money.ledger(account, { limit: 10, kind: "usage" })).map(({ kind }) => kind)).toEqual(
    times(5, () => "usage"),
  );
  const { id: other } = await money.createAccount({ name: "other" });
  expect(await money.ledger(other, { limit: 10 })).toEqual([]);
  const after = all[0]?.id;
  await expect(money.ledger(other, { limit: 10, after })).rejects.toMatchObject({ status: 400, param: "after" });
});

test("a request has an entry once it is captured, and credits are no requests", async () => {
  const { money, account } = await startBank();
  expect(await money.findEntry(newRequestId())).toBeUndefined();
  expect(await money.findEntry(`credit:${account}:opening`)).toBeUndefined();
});
