import { expect, test } from "vitest";
import { createMoney } from "../../shared/money/index.ts";
import { createPayments } from "../../shared/payments/index.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { type ApiServer, startApiServer } from "../support/api-server.ts";
import { captureOf, held, holdOf, openAccount, times } from "../support/money-setup.ts";

const token = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
const signature = (digit: number) => String(digit).repeat(88);
const seconds = expect.any(Number) as number;

/** Payments that were received and not used. */
async function startOwing(memos: readonly string[]): Promise<ApiServer> {
  const server = await startApiServer();
  for (const [at, memo] of memos.entries()) {
    const messageHash = `hash of ${memo}`;
    await server.money.creditPayment({ memo, messageHash, nanoUsd: 40_000_000n, transaction: signature(at + 1) });
  }
  return server;
}

test("unused payments are listed in pages, with their total", async () => {
  const { ask } = await startOwing(["a", "b", "c"]);
  const { body } = await ask("GET", "/owed?limit=2");
  expect(body).toEqual({
    object: "list",
    data: ["a", "b"].map((id) => ({
      id,
      object: "owed",
      account: `x402:${id}`,
      payer: null,
      transaction: null,
      paid_usd: "0.00",
      owed_usd: "0.04",
      paid_at: seconds,
      good_until: seconds,
    })),
    has_more: true,
    next: "b",
  });
  expect((await ask("GET", "/owed?limit=2&after=b")).body).toMatchObject({ data: [{ id: "c" }], has_more: false });
  expect((await ask("GET", "/owed/total")).body).toEqual({ object: "owed_total", owed_usd: "0.12", payments: 3 });
  expect((await ask("GET", "/owed/total?over=true")).body).toMatchObject({ owed_usd: "0.00", payments: 0 });
  expect((await ask("GET", "/owed?over=true")).body).toMatchObject({ data: [], has_more: false, next: null });
});

test("a refund counts once for its transaction, and is in the ledger with it", async () => {
  const { ask } = await startOwing(["memo"]);
  const transaction = signature(5);
  const refund = { amount_usd: "0.03", transaction, reason: "the model was down" };
  const answers = await Promise.all(times(5, () => ask("POST", "/owed/memo/refunds", refund)));
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 200, 200, 201]);
  const entry = {
    id: `payout:x402:memo:${transaction}`,
    object: "entry",
    account: "x402:memo",
    kind: "payout",
    amount_usd: "-0.03",
    created_at: seconds,
    reason: "the model was down",
    transaction,
  };
  for (const { body } of answers) expect(body).toEqual(entry);
  expect((await ask("GET", "/accounts/x402:memo/ledger?kind=payout")).body).toMatchObject({ data: [entry] });
  expect((await ask("GET", "/owed/total")).body).toMatchObject({ owed_usd: "0.01", payments: 1 });
  const other = await ask("POST", "/owed/memo/refunds", { ...refund, amount_usd: "0.01" });
  expect(other).toMatchObject({ status: 409, body: { error: { code: "conflict" } } });
  expect((await ask("GET", "/ledger/check")).body).toMatchObject({ ok: true });
});

test("a refund that is too large, malformed or incomplete is refused, and the payment stays owed", async () => {
  const { ask } = await startOwing(["memo"]);
  for (const [refund, status, param] of [
    [{ amount_usd: "0.05", transaction: signature(5) }, 409, null],
    [{ amount_usd: "0.0000001", transaction: signature(5) }, 400, "amount_usd"],
    [{ amount_usd: "-0.01", transaction: signature(5) }, 400, "amount_usd"],
    [{ amount_usd: "0", transaction: signature(5) }, 400, "amount_usd"],
    [{ amount_usd: 0.01, transaction: signature(5) }, 400, "amount_usd"],
    [{ amount_usd: "0.01", transaction: "sent" }, 400, "transaction"],
    [{ amount_usd: "0.01" }, 400, "transaction"],
    [{ amount_usd: "0.01", transaction: signature(5), to: "me" }, 400, "to"],
  ] as const) {
    const answer = await ask("POST", "/owed/memo/refunds", refund);
    expect({ refund, ...answer }).toMatchObject({ refund, status, body: { error: { param } } });
  }
  expect((await ask("GET", "/owed/total")).body).toMatchObject({ owed_usd: "0.04" });
});

test("only payments are refunded: neither accounts nor unknown ids are", async () => {
  const { ask, money } = await startOwing([]);
  const account = await openAccount(money, 1_000_000_000n);
  const refund = { amount_usd: "0.01", transaction: signature(5) };
  for (const id of [account, "memo"])
    expect(await ask("POST", `/owed/${id}/refunds`, refund)).toMatchObject({ status: 404 });
  expect(await ask("GET", "/owed?over=maybe")).toMatchObject({ status: 400, body: { error: { param: "over" } } });
});

test("accrued charges are listed by token, then as batches; entries show their share and batch", async () => {
  const server = await startApiServer();
  const { ask, mongo, stores } = server;
  const log = createLogger("test", "silent");
  const payments = createPayments({
    config: loadConfig({ ...stores }),
    mongo,
    money: server.money,
    clock: systemClock,
    log,
  });
  const money = createMoney({ mongo, buyback: { bps: 250, token, eligible: new Set() }, clock: systemClock, log });
  const account = await openAccount(money, 1_000_000_000_000n);
  const hold = await held(money, holdOf(account, 400_000_000_000n));
  await money.charge(captureOf(hold, 400_000_000_000n));
  const entry = (batch: unknown) => ({ buyback: { token, amount_usd: "10.00", batch } });
  expect((await ask("GET", `/requests/${hold.requestId}`)).body).toMatchObject(entry(null));
  const accrual = { object: "accrual", token, amount_usd: "10.00", entries: 1 };
  const list = (data: unknown[]) => ({ object: "list", data, has_more: false, next: null });
  expect((await ask("GET", "/buyback/accruals")).body).toEqual(list([accrual]));
  expect((await ask("GET", "/buyback/batches")).body).toEqual(list([]));

  await payments.buyback.gather();
  expect((await ask("GET", "/buyback/accruals")).body).toEqual(list([]));
  const { body } = await ask("GET", "/buyback/batches");
  const batch = {
    id: expect.stringMatching(/^bb_/),
    object: "batch",
    token,
    state: "due",
    amount_usd: "10.00",
    entries: 1,
    created_at: seconds,
    executor: null,
    transaction: null,
    spent_usd: null,
    received: null,
    done_at: null,
  };
  expect(body).toEqual(list([batch]));
  expect((await ask("GET", `/requests/${hold.requestId}`)).body).toMatchObject(entry(body.data[0]?.id));
  const bought = { kind: "bought", signature: signature(7), spent: 10_000_000n, received: 2n ** 60n } as const;
  const executor = { name: "swap", execute: async () => bought };
  await payments.buyback.execute(executor, new AbortController().signal);
  expect((await ask("GET", "/buyback/batches")).body.data[0]).toEqual({
    ...batch,
    state: "done",
    executor: "swap",
    transaction: signature(7),
    spent_usd: "10.00",
    received: String(2n ** 60n),
    done_at: seconds,
  });
  expect(await ask("GET", "/buyback/accruals?limit=1")).toMatchObject({ status: 400 });
  expect(await ask("GET", "/buyback/batches?after=bb_none")).toMatchObject({ status: 400 });
});
