import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { adminCli, run } from "../support/admin-cli.ts";
import { apiOfFile, countCalls, settledCall, startApiServer } from "../support/api-server.ts";
import { captureOf, held, holdOf, openAccount, startMoney } from "../support/money-setup.ts";
import { temporaryFolder } from "../support/program.ts";
import { testAdminToken } from "../support/service.ts";
import { insertBatches } from "../support/stored-batches.ts";

const api = apiOfFile({ S3_ENDPOINT: "http://127.0.0.1:1" });
const { start, admin, json } = adminCli(api);

test("accounts, credits and keys are created and changed", async () => {
  const account = await json("accounts", "create", "--name", "acme", "--tier", "elite");
  expect(account).toMatchObject({ object: "account", name: "acme", tier: "elite", frozen: false });
  expect(await json("accounts", "update", account.id, "--freeze", "--name", "Acme")).toMatchObject({
    name: "Acme",
    frozen: true,
  });
  expect(await json("accounts", "update", account.id, "--unfreeze")).toMatchObject({ frozen: false });
  expect(await json("accounts", "list", "--limit", "1")).toMatchObject({ data: [{ id: account.id }], has_more: false });

  const credit = ["credits", "add", account.id, "25.00", "--idempotency-key", "a", "--reason", "invoice 7"];
  const entry = await json(...credit);
  expect(entry).toMatchObject({ kind: "credit", amount_usd: "25.00", reason: "invoice 7" });
  expect(await json(...credit)).toEqual(entry);
  expect(await json("credits", "add", account.id, "-0.5")).toMatchObject({ kind: "adjustment", amount_usd: "-0.50" });
  expect(await json("accounts", "get", account.id)).toMatchObject({ available_usd: "24.50" });

  const made = await json("keys", "create", account.id, "--name", "ci", "--requests-per-minute", "10");
  await expect(api.keys.authenticate(made.key)).resolves.toMatchObject({ account: account.id });
  const changed = await json(
    "keys",
    "update",
    made.id,
    "--requests-per-minute",
    "default",
    "--concurrent-requests",
    "3",
  );
  expect(changed).toMatchObject({ limits: { requests_per_minute: null, concurrent_requests: 3 } });
  const rights = ["--scope", "inference", "--scope", "manage", "--budget", "5/day", "--model", "openai/*"];
  const limited = await json(
    "keys",
    "create",
    account.id,
    ...rights,
    "--model",
    "local/chat",
    "--expires",
    "2099-12-31",
  );
  expect(limited).toMatchObject({
    scopes: ["inference", "manage"],
    budget: { limit_usd: "5.00", period: "day" },
    models: ["openai/*", "local/chat"],
    expires_at: Date.UTC(2099, 11, 31, 23, 59, 59) / 1_000,
  });
  expect(await json("keys", "update", limited.id, "--no-budget", "--no-expires", "--scope", "manage")).toMatchObject({
    scopes: ["manage"],
    budget: null,
    models: ["openai/*", "local/chat"],
    expires_at: null,
  });
  expect(await json("keys", "revoke", limited.id)).toMatchObject({ revoked_at: expect.any(Number) });
  expect(await json("keys", "revoke", made.id)).toMatchObject({ revoked_at: expect.any(Number) });
  expect(await json("keys", "list", account.id)).toMatchObject({ data: [{ id: limited.id }, { id: made.id }] });
});

test("people get tables, and see a secret once", async () => {
  const { id } = await api.money.createAccount({ name: "acme" });
  const created = await admin("keys", "create", id, "--name", "ci");
  const [secret = ""] = /^live_\w{40}$/m.exec(created.out) ?? [];
  expect(created.out).toContain("This is the only time that the key is shown.");
  for (const amount_usd of ["1", "2"])
    await api.admin("POST", `/accounts/${id}/credits`, { amount_usd, idempotency_key: amount_usd });

  const keys = (await admin("keys", "list", id)).out.split("\n");
  expect(keys[0]).toMatch(/^ID +NAME +PREFIX +LIMITS +SCOPES +BUDGET +MODELS +CREATED/);
  expect(keys[1]).toContain(`ci    ${secret.slice(0, 8)}...  default`);
  expect(keys.join()).not.toContain(secret);
  const accounts = (await admin("accounts", "list")).out;
  expect(accounts).toMatch(new RegExp(`^${id}  acme  standard  active  3.00 +3.00 +0.00 +0 `, "m"));
  const page = (await admin("ledger", "list", id, "--limit", "1")).out;
  expect(page).toMatch(/credit +2\.00/);
  expect(page).toMatch(new RegExp(`There are more: --after credit:${id}:`));
  expect((await admin("ledger", "list", id, "--kind", "usage")).out).toBe("None.\n");
});

test("a request is shown with its cost, and the ledger is checked", async () => {
  const server = await startApiServer();
  const { admin } = adminCli(server);
  const id = await openAccount(server.money, 1_000_000_000n);
  const requestId = await settledCall(server, id);

  const { code, out } = await admin("requests", "get", requestId);
  expect(code).toBe(0);
  const fields = Object.fromEntries(
    out
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/)),
  );
  expect(fields).toEqual({
    REQUEST: requestId,
    "ENDED (UTC)": expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
    ACCOUNT: id,
    KEY: "key_1",
    ENDPOINT: "/v1/chat/completions",
    MODEL: "local/chat",
    UPSTREAM: "local",
    ATTEMPTS: "local succeeded 40 ms",
    STATUS: "succeeded",
    "IN THE QUEUE": "3 ms",
    "FIRST TOKEN": "20 ms",
    TOTAL: "340 ms",
    USAGE: "input 12, output 30",
    "AMOUNT USD": "-0.001234567",
    "UPSTREAM COST USD": "0.0011",
  });
  const check = await admin("ledger", "check");
  expect(check.code).toBe(0);
  expect(check.out).toMatch(/^ok +true$/m);

  await server.money.checkpoint();
  const entries = server.mongo.connection.collection<{ _id: string }>("ledger");
  await entries.updateOne({ _id: requestId }, { $inc: { amount: 1 } });
  expect((await admin("ledger", "check")).code).toBe(0);
  expect((await admin("ledger", "check", "--full")).code).toBe(1);

  await server.mongo.connection
    .collection<{ _id: string }>("accounts")
    .updateOne({ _id: id }, { $inc: { available: 1 } });
  const wrong = await admin("ledger", "check");
  expect(wrong.code).toBe(1);
  expect(wrong.out).toMatch(/^difference_usd +0\.000000001$/m);
});

test("owed amounts and buybacks are shown, and a refund is recorded", async () => {
  const transaction = "5".repeat(88);
  await api.money.creditPayment({
    memo: "memo",
    messageHash: "hash",
    nanoUsd: 40_000_000n,
    transaction: "6".repeat(88),
  });
  expect((await admin("owed", "list")).out).toMatch(/^PAYMENT +OWED USD .*\nmemo +0\.04 /);
  expect((await admin("owed", "list", "--over")).out).toBe("None.\n");
  expect((await admin("owed", "total")).out).toBe("OWED USD  0.04\nPAYMENTS  1\n");
  expect(await admin("owed", "refund", "memo", "0.04")).toMatchObject({
    code: 1,
    err: expect.stringContaining("--transaction"),
  });
  const refund = ["owed", "refund", "memo", "0.04", "--transaction", transaction, "--reason", "broken"];
  const entry = await json(...refund);
  expect(entry).toMatchObject({ kind: "payout", amount_usd: "-0.04", transaction, reason: "broken" });
  expect((await admin(...refund)).out).toMatch(
    new RegExp(`^AMOUNT USD +-0\\.04$[^]*^TRANSACTION +${transaction}$`, "m"),
  );
  expect((await admin("owed", "total", "--over")).out).toMatch(/^OWED USD +0\.00$/m);
  expect((await admin("buyback", "accruals")).out).toBe("None.\n");
  expect(await json("buyback", "batches", "--limit", "1")).toMatchObject({ data: [], has_more: false });
});

test("lost responses that wait are listed, refunded, or their charges are kept", async () => {
  const account = await openAccount(api.money, 1_000n);
  const { connection } = (await startMoney(api.stores.MONGODB_URI)).mongo;
  const ids: string[] = [];
  for (const nanoUsd of [60n, 70n]) {
    const hold = await held(api.money, holdOf(account, 100n));
    await api.money.charge(captureOf(hold, nanoUsd));
    const lost = { account, note: "api_dead", nanoUsd, createdAt: new Date(), state: "waiting" };
    await connection.collection<{ _id: string }>("lostResponses").insertOne({ _id: hold.requestId, ...lost });
    ids.push(hold.requestId);
  }
  const [first = "", second = ""] = ids;
  expect((await admin("lost", "list")).out).toMatch(new RegExp(`^REQUEST .*\n${second} +${account} +0\\.00000007 `));
  expect((await admin("lost", "refund", first)).out).toMatch(/^STATE +refunded$/m);
  expect(await json("lost", "keep", second)).toMatchObject({ id: second, state: "kept", amount_usd: "0.00000007" });
  expect((await admin("lost", "list")).out).toBe("None.\n");
  expect((await admin("lost", "refund", second)).err).toContain("No such lost response");
  expect(await api.money.account(account)).toMatchObject({ availableNanoUsd: 1_000n - 70n });
});

test("open batches of accounts are listed and cancelled", async () => {
  const dueAt = new Date(Date.now() + 600_000);
  const open = { account: "acct_1", kind: "openai", status: "in_progress", dueAt, model: "local/chat" } as const;
  const [id = ""] = await insertBatches(api.stores, [{ ...open, paused: "insufficient_balance" }]);
  const row = `${id} +acct_1 +/v1/chat/completions +local/chat +in_progress, paused: insufficient_balance +3 +3 +0\\.042 `;
  expect((await admin("batches", "list", "--account", "acct_1")).out).toMatch(new RegExp(`^ID .*\n${row}`));
  expect((await admin("batches", "cancel", id)).out).toMatch(/^STATE +cancelling$/m);
  expect((await admin("batches", "list", "--status", "in_progress")).out).toBe("None.\n");
});

test("an error is its message and exit code 1", async () => {
  const missing = await admin("accounts", "get", "acct_none");
  expect(missing).toMatchObject({ code: 1, out: "" });
  expect(missing.err).toMatch(/^No such account\. \(404, not_found, req_\w+\)\n$/);
  const wrong = await admin("accounts", "create", "--name", "a", "--buyback-token", "x");
  expect(wrong).toMatchObject({ code: 1, err: expect.stringMatching(/^buyback_token: .*\(400, invalid_value, req_/) });
  expect(await admin("accounts", "create")).toMatchObject({ code: 1, err: expect.stringContaining("--name") });
  expect(await admin("keys", "create", "a", "--tokens-per-minute", "0")).toMatchObject({
    code: 1,
    err: expect.stringContaining("positive whole number"),
  });
  expect(await admin("plans", "list")).toMatchObject({ code: 1, err: expect.stringContaining("unknown command") });
});

test("an unreachable service is reported with a remedy", async () => {
  expect(await admin("accounts", "list", "--token", "wrong")).toMatchObject({
    code: 1,
    err: expect.stringContaining("Missing or invalid admin token."),
  });
  const off = await run(["credits", "add", "a", "1"], { ADMIN_URL: "http://127.0.0.1:9", ADMIN_TOKEN: testAdminToken });
  expect(off).toMatchObject({ code: 1, out: "" });
  expect(off.err).toMatch(/^http:\/\/127\.0\.0\.1:9 does not answer \(.*npm start/);
  expect(off.err).toMatch(/--idempotency-key [0-9a-f-]{36}\n$/);
  expect((await run(["accounts", "list"], {})).err).toMatch(
    /^No service is selected\. Start one here with `npm start`/,
  );
  expect((await run(["accounts", "list", "--url", api.baseUrl], {})).err).toMatch(/requires an admin token/);
});

test("the default is the service that npm start runs here", async () => {
  const dataDir = await temporaryFolder();
  const demo = { baseUrl: api.baseUrl, apiKey: "live_x", accountId: "acct_x", adminToken: testAdminToken };
  await writeFile(join(dataDir, "demo.json"), JSON.stringify(demo));
  expect(await run(["archive", "list"], { DATA_DIR: dataDir })).toEqual({ code: 0, out: "None.\n", err: "" });
});

test("the overview is shown once, or again and again until Ctrl-C, which ends it cleanly", async () => {
  await countCalls(api, (counter) => {
    counter.ended("succeeded", 2_500_000_000n);
  });
  const once1 = await admin("overview");
  expect(once1).toMatchObject({ code: 0, err: "" });
  expect(once1.out).toMatch(/^last hour +1 +0 +0 +2\.50$/m);
  expect(once1.out).toMatch(/^chat +0 +0 +0 +0 +- +0 +-$/m);
  expect(once1.out).toMatch(/s3 DOES NOT ANSWER/);
  expect(once1.out).toMatch(/^holds +not counted: no maintenance worker$/m);

  const { child, ended } = start("overview", "--watch");
  let shown = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    // No control sequences without a terminal.
    expect(line.includes("\u001b")).toBe(false);
    if (line.startsWith("last hour") && ++shown === 2) child.kill("SIGINT");
  }
  const { code, err } = await ended;
  expect([shown, code, err]).toEqual([2, 0, ""]);
});

test("watching a service that refuses the token ends with its message", async () => {
  expect(await admin("overview", "--watch", "--token", "wrong")).toMatchObject({
    code: 1,
    err: expect.stringContaining("Missing or invalid admin token."),
  });
});

test("the audit log, workers, upstreams and holds are tables", async () => {
  const account = await api.account("5");
  await api.admin("PATCH", `/accounts/${account.id}`, { frozen: true });
  const log = (await admin("audit", "list")).out.split("\n");
  expect(log[0]).toMatch(/^TIME \(UTC\) +WHO +ACTION +RESULT +TARGETS +CHANGES +ID$/);
  expect(log[1]).toMatch(new RegExp(`admin  PATCH /accounts/{id} +200 +${account.id} +{"frozen":true}`));
  const of = ["--target", account.id, "--action", "POST /accounts/{id}/credits", "--from", "2020-01-01"];
  const credits = await admin("audit", "list", ...of);
  expect(credits.out.trimEnd().split("\n")).toHaveLength(2);
  expect((await admin("audit", "list", "--to", "2020-01-01T00:00:00Z")).out).toBe("None.\n");
  expect(await admin("audit", "list", "--from", "monday")).toMatchObject({ code: 1, out: "" });

  expect((await admin("workers", "list")).out).toBe("None.\n");
  expect((await admin("upstreams", "list")).out).toMatch(/^local +local +no key +- +\d+ +0 +0( +-){4}$/m);
  expect((await admin("holds", "list")).out).toBe("None.\n");
  await api.admin("PATCH", `/accounts/${account.id}`, { frozen: false });
  const { requestId } = await held(api.money, holdOf(account.id, 2_000_000n));
  expect((await admin("holds", "list")).out).toMatch(new RegExp(`^${requestId}  hold  ${account.id}  0\\.002 `, "m"));
});

test("usage is a table of the groups that were asked for", async () => {
  const account = await api.account("5");
  await settledCall(api, account.id);
  await api.money.sumUsage();
  const usage = async (...more: readonly string[]) =>
    (await admin("usage", "list", "--account", account.id, ...more)).out.split("\n").map((line) => line.split(/ {2,}/));
  const sums = ["1", "0", "0.001234567", "0.0011", "0.00", "0.000134567"];
  expect(await usage("--group-by", "model")).toEqual([
    ["MODEL", "CALLS", "FAILED", "COST USD", "UPSTREAM COST USD", "UNPRICED USD", "MARGIN USD"],
    ["local/chat", ...sums],
    [""],
  ]);
  expect((await usage()).at(1)).toEqual([expect.stringMatching(/^2/), ...sums]);
});

test("a check of many accounts says how far it is, and sums its parts", async () => {
  const server = await startApiServer();
  const { admin } = adminCli(server);
  const accounts = Array.from({ length: 6_000 }, (_, n) => ({
    _id: `acct_${String(n).padStart(20, "0")}`,
    name: "acme",
    tier: "standard",
    frozen: false,
    // Two accounts have money without a ledger entry, one in each part.
    available: n === 5 || n === 5_500 ? 1n : 0n,
    held: 0n,
    holds: {},
    openHolds: 0,
    createdAt: new Date(),
  }));
  await server.mongo.connection.collection<{ _id: string }>("accounts").insertMany(accounts);
  const { code, out, err } = await admin("ledger", "check");
  expect(err).toBe("5000 of about 6000 accounts\n");
  expect(out).toMatch(/^accounts +6000$/m);
  expect(out).toMatch(/^difference_usd +0\.000000002$/m);
  expect(code).toBe(1);
});
