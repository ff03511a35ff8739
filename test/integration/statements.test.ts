import fc from "fast-check";
import { expect, test } from "vitest";
import type { LedgerEntry, Statement } from "../../shared/money/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { apiOfFile, openCustomer } from "../support/api-server.ts";
import { captureOf, held, holdOf, openAccount, startBank } from "../support/money-setup.ts";
import { runs, step } from "../support/property-runs.ts";
import { dayOf } from "../support/usage-sums.ts";

const api = apiOfFile({ INVOICE_ISSUER: "Example Inference Ltd; 1 High Street ;VAT GB000000000" });

const anyStep = fc.oneof(
  step(6, "call", { cost: fc.bigInt({ min: 0n, max: 90n }), upload: fc.boolean() }),
  step(2, "refund", { pick: fc.nat({ max: 100 }) }),
  step(2, "credit", { amount: fc.bigInt({ min: -50n, max: 500n }).filter((amount) => amount !== 0n) }),
  step(2, "sum"),
  step(3, "later", { hours: fc.nat({ max: 60 }) }),
);

/** The lines of a statement by the entries themselves. */
function plainLines(entries: readonly LedgerEntry[], from: string, to: string) {
  const shown = entries
    .filter(({ createdAt }) => dayOf(createdAt) >= from && dayOf(createdAt) <= to)
    .toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime());
  return [...Map.groupBy(shown, ({ createdAt }) => dayOf(createdAt))].flatMap(([day, of]) => {
    const sumOf = (kind: string, ofKind: readonly LedgerEntry[]) => {
      const amount = ofKind.reduce((sum, { amountNanoUsd }) => sum + amountNanoUsd, 0n);
      return amount === 0n ? [] : [[day, kind, amount, kind === "charges" ? ofKind.length : undefined]];
    };
    const isOf = (...kinds: readonly string[]) => of.filter(({ kind }) => kinds.includes(kind));
    return [
      ...isOf("credit", "adjustment").map(({ kind, amountNanoUsd }) => [day, kind, amountNanoUsd, undefined]),
      ...sumOf("refunds", isOf("refund")),
      ...sumOf("charges", isOf("usage", "storage")),
    ];
  });
}

const shownLines = ({ lines }: Statement) =>
  lines.map((line) => [line.day, line.kind, line.amountNanoUsd, line.kind === "charges" ? line.calls : undefined]);

test("a statement has every movement of its days once, and its balances are those of the ledger at any time", async () => {
  const { money, clock } = await startBank();
  const property = fc.asyncProperty(fc.array(anyStep, { minLength: 5, maxLength: 40 }), async (steps) => {
    const account = await openAccount(money, 10_000n);
    const first = clock.now();
    const calls: string[] = [];
    for (const [at, it] of steps.entries()) {
      if (it.do === "call") {
        const hold = await held(money, holdOf(account, 100n, { expiresAt: clock.now() + dayMs }));
        await money.charge(captureOf(hold, it.cost, it.upload ? { kind: "storage" } : {}));
        if (it.cost > 0n) calls.push(hold.requestId);
      } else if (it.do === "refund") {
        const call = calls[it.pick % Math.max(1, calls.length)];
        if (call !== undefined) await money.refund(account, call);
      } else if (it.do === "credit")
        await money.credit(account, { amountNanoUsd: it.amount, idempotencyKey: `step ${at}` });
      else if (it.do === "sum") await money.sumUsage();
      else clock.later(it.hours * 3_600_000);
    }
    await money.sumUsage();
    const entries = await money.ledger(account, { limit: 1_000 });
    const [from, to] = [dayOf(new Date(first)), dayOf(new Date(clock.now()))];
    const days = Math.round((Date.parse(to) - Date.parse(from)) / dayMs);
    // Any division of the time into two statements has the same lines, and the second begins where the first ends.
    const middle = dayOf(new Date(Date.parse(from) + Math.floor(days / 2) * dayMs));
    const next = dayOf(new Date(Date.parse(middle) + dayMs));
    const read = (first: string, last: string) => money.statement(account, { from: first, to: last, limit: 100 });
    const [whole, earlier, later] = [await read(from, to), await read(from, middle), await read(next, to)];
    expect(shownLines(whole)).toEqual(plainLines(entries, from, to));
    expect([...earlier.lines, ...later.lines]).toEqual(whole.lines);
    expect([whole.openingNanoUsd, earlier.closingNanoUsd]).toEqual([0n, later.openingNanoUsd]);
    expect(whole.closingNanoUsd).toBe((await money.balances([account])).get(account));
    let balance = 0n;
    for (const line of whole.lines) {
      balance += line.amountNanoUsd;
      expect(line.balanceNanoUsd).toBe(balance);
    }
  });
  await fc.assert(property, { numRuns: runs(200, 10) });
});

const toNoon = () => api.clock.later(1.5 * dayMs - (api.clock.now() % dayMs));
const today = () => dayOf(new Date(api.clock.now()));

test("a statement is JSON or CSV, of at most 366 days, for keys that manage the account", async () => {
  const { money } = api;
  toNoon();
  const { account, manager, first, call } = await openCustomer(api);
  await (await openCustomer(api)).call();
  const requestId = await call({ costNanoUsd: 1_000_000n });
  await money.credit(account, { amountNanoUsd: 5_000_000_000n, idempotencyKey: "a", reason: '=Top-up, by "wire"' });
  await money.refund(account, requestId);
  await money.sumUsage();
  const { status, body } = await manager.ask("GET", `/statement?from=${today()}`);
  const [opening] = (await money.ledger(account, { limit: 10 })).toReversed();
  const empty = { id: null, created_at: null, reason: null, transaction: null };
  const line = { day: today(), ...empty, calls: null };
  expect([status, body]).toEqual([
    200,
    {
      object: "statement",
      from: today(),
      to: today(),
      opening_usd: "0.00",
      closing_usd: "6.00",
      lines: [
        {
          ...line,
          kind: "credit",
          amount_usd: "1.00",
          balance_usd: "1.00",
          id: opening?.id,
          created_at: expect.any(Number),
        },
        {
          ...line,
          kind: "credit",
          amount_usd: "5.00",
          balance_usd: "6.00",
          id: `credit:${account}:a`,
          created_at: expect.any(Number),
          reason: '=Top-up, by "wire"',
        },
        { ...line, kind: "refunds", amount_usd: "0.001", balance_usd: "6.001", calls: 1 },
        { ...line, kind: "charges", amount_usd: "-0.001", balance_usd: "6.00", calls: 1 },
      ],
    },
  ]);
  const csv = await fetch(`${api.baseUrl}/v1/statement?from=${today()}`, {
    headers: { authorization: `Bearer ${manager.key}`, accept: "text/csv" },
  });
  expect(csv.headers.get("content-disposition")).toBe(`attachment; filename=statement-${today()}-${today()}.csv`);
  const [header, , credit] = (await csv.text()).split("\r\n");
  expect(header).toBe("day,kind,amount_usd,balance_usd,calls,id,reason,transaction");
  // A spreadsheet must not take the operator's text for a formula.
  expect(credit).toBe(`"${today()}","credit",5.00,6.00,"","credit:${account}:a","'=Top-up, by ""wire""",""`);
  for (const [key, query, code, param] of [
    [first, "", 403, null],
    [manager, "?from=2026-02-30", 400, "from"],
    [manager, "?from=2026-11-02&to=2026-11-01", 400, "from"],
    [manager, "?from=2025-11-01&to=2026-11-02", 400, "from"],
    [manager, "?to=2026-11-23T05:00Z", 400, "to"],
    [manager, "?limit=3", 400, "limit"],
  ] as const) {
    const refused = await key.ask("GET", `/statement${query}`);
    expect([query, refused.status, refused.body.error.param]).toEqual([query, code, param]);
  }
});

test("an invoice gets its number and parties once its sums are final, and keeps them", async () => {
  const { money } = api;
  const { account, manager, first, call } = await openCustomer(api);
  // To the middle of a month, so that it does not end by itself.
  while (new Date(api.clock.now()).getUTCDate() !== 15) api.clock.later(dayMs / 2);
  const month = today().slice(0, 7);
  await call({ costNanoUsd: 1_000_000n });
  await money.sumUsage();
  const read = async () => (await manager.ask("GET", `/invoices?month=${month}`)).body;
  const issuer = "Example Inference Ltd\n1 High Street\nVAT GB000000000";
  const open = { object: "invoice", month, status: "open", number: null, issued_at: null, total_usd: "0.001", issuer };
  expect(await read()).toMatchObject({ ...open, customer: { name: "acme", address: null, tax_id: null } });

  const billing = { name: "Acme Ltd", address: "2 Low Street\nLondon", tax_id: "GB123456789" };
  expect((await manager.ask("PATCH", "/account", { billing })).body).toMatchObject({ id: account, billing });
  expect(await read()).toMatchObject({ ...open, customer: billing });
  for (const [body, param] of [
    [{ billing: { name: "" } }, "billing.name"],
    [{ billing: { address: "x".repeat(501) } }, "billing.address"],
    [{ billing: { vat: "1" } }, "billing.vat"],
  ] as const) {
    const refused = await manager.ask("PATCH", "/account", body);
    expect([refused.status, refused.body.error.param]).toEqual([400, param]);
  }
  for (const [method, path] of [
    ["GET", "/account"],
    ["PATCH", "/account"],
    ["GET", `/invoices?month=${month}`],
  ] as const)
    expect((await first.ask(method, path, method === "PATCH" ? {} : undefined)).status).toBe(403);

  // The month is over, but the job that makes its sums final is late: a charge may still be missing.
  const days = 20 * dayMs;
  api.clock.later(days);
  expect(await read()).toMatchObject({ ...open, customer: billing });
  await call();
  await money.sumUsage();
  const number = `${month.replace("-", "")}-${account.slice(-12)}`;
  const final = await read();
  expect(final).toMatchObject({ ...open, status: "final", number, issued_at: Math.floor(api.clock.now() / 1_000) });
  expect(final).toMatchObject({ customer: billing, period: { from: `${month}-01` } });
  expect((await manager.ask("PATCH", "/account", { billing: null })).body).toMatchObject({ billing: { name: "acme" } });
  api.clock.later(days);
  expect(await read()).toEqual(final);
  expect((await manager.ask("GET", "/account")).body).toMatchObject({ object: "account", billing: { name: "acme" } });
  // A month without any charge is final too, although no day of it was ever closed, and takes no number.
  expect((await manager.ask("GET", "/invoices?month=2020-02")).body).toMatchObject({
    status: "final",
    number: null,
    period: { from: "2020-02-01", to: "2020-02-29" },
    lines: [],
    total_usd: "0.00",
  });
});
