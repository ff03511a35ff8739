import { expect, test } from "vitest";
import type { StoredBatch } from "../../shared/batches/index.ts";
import { startApiServer } from "../support/api-server.ts";
import { profiled } from "../support/money-setup.ts";
import { insertBatches } from "../support/stored-batches.ts";

const secondMs = 1_000;
const at = Math.floor(Date.now() / secondMs) * secondMs;
/** No process takes a batch whose claim has not ended. */
const claimed = { claimedBy: "api_1", dueAt: new Date(at + 600 * secondMs) };
const created = (ageSeconds: number) => ({ ...claimed, createdAt: new Date(at - ageSeconds * secondMs) });

const [one, two] = ["acct_1", "acct_2"];
const batches: Parameters<typeof insertBatches>[1] = [
  { account: one, kind: "openai", status: "in_progress", _id: "batch_running", ...created(50) },
  {
    account: one,
    kind: "openai",
    status: "validating",
    _id: "batch_b",
    ...created(90),
    claimedBy: "wrk_gone",
    dueAt: new Date(at - secondMs),
  },
  // It was created in the same millisecond as another one, of another status.
  { account: two, kind: "openai", status: "in_progress", _id: "batch_a", ...created(90) },
  {
    account: two,
    kind: "anthropic",
    status: "in_progress",
    _id: "msgbatch_paused",
    ...created(70),
    paused: "insufficient_balance",
    pausedAt: new Date(at - 30 * secondMs),
    progressAt: new Date(at - 40 * secondMs),
    model: "local/chat",
  },
  { account: two, kind: "openai", status: "completed", _id: "batch_done", createdAt: new Date(at - 99 * secondMs) },
];
const oldestFirst = ["batch_a", "batch_b", "msgbatch_paused", "batch_running"];

async function setup() {
  const server = await startApiServer();
  await insertBatches(server.stores, batches);
  return server;
}

test("open batches of all accounts are listed oldest first, by filters and in pages, by an index", async () => {
  const { ask, mongo } = await setup();
  const idsOf = async (query = "") => (await ask("GET", `/batches${query}`)).body.data.map(({ id }) => id);
  expect(await idsOf()).toEqual(oldestFirst);
  expect(await idsOf("?status=in_progress")).toEqual(["batch_a", "msgbatch_paused", "batch_running"]);
  expect(await idsOf(`?account=${one}`)).toEqual(["batch_b", "batch_running"]);
  expect(await idsOf(`?account=${two}&status=in_progress&after=batch_a`)).toEqual(["msgbatch_paused"]);
  expect(await idsOf("?account=acct_none")).toEqual([]);
  const paged: string[] = [];
  for (let next: string | null = ""; next !== null; ) {
    const page: Awaited<ReturnType<typeof ask>>["body"] = (
      await ask("GET", `/batches?limit=1${next && `&after=${next}`}`)
    ).body;
    paged.push(...page.data.map(({ id }) => id));
    next = page.next;
  }
  expect(paged).toEqual(oldestFirst);
  // The last batch of a page may have ended before the next one is read.
  expect(await idsOf("?after=batch_done")).toEqual(oldestFirst);
  for (const [query, param] of [
    ["after=batch_none", "after"],
    ["status=completed", "status"],
    ["kind=openai", "kind"],
  ])
    expect((await ask("GET", `/batches?${query}`)).body).toMatchObject({ error: { code: "invalid_value", param } });

  const [, abandoned, paused] = (await ask("GET", "/batches")).body.data;
  // A claim that was not renewed is that of a dead process.
  expect(abandoned).toMatchObject({ status: "validating", claimed_by: null, paused_at: null, progress_at: null });
  const seconds = at / secondMs;
  expect(paused).toEqual({
    id: "msgbatch_paused",
    object: "account_batch",
    account: two,
    key: "key_test",
    kind: "anthropic",
    endpoint: "/v1/messages",
    model: "local/chat",
    status: "in_progress",
    paused: "insufficient_balance",
    paused_at: seconds - 30,
    lines: 3,
    counts: { succeeded: 2, failed: 1, expired: 0, cancelled: 0 },
    cost_usd: "0.042",
    estimated_max_cost_usd: "0.10",
    created_at: seconds - 70,
    expires_at: seconds - 70 + 86_400,
    progress_at: seconds - 40,
    claimed_by: "api_1",
  });

  const stored = mongo.connection.collection<StoredBatch>("batches");
  // The batch engine, which runs meanwhile, reads one batch at a time.
  const ofPage = { op: "query", "command.find": "batches", "command.limit": { $gt: 1 } };
  const read = async (query: string) => {
    const [page, ...others] = await profiled(mongo, ofPage, () => ask("GET", `/batches?${query}`));
    expect(others).toEqual([]);
    return page;
  };
  await stored.insertMany(
    Array.from({ length: 500 }, (_, n) => ({
      ...(batches[0] as unknown as StoredBatch),
      _id: `batch_later_${n}`,
      account: "acct_3",
      createdAt: new Date(at + n),
    })),
  );
  const ofAll = await read("limit=3");
  expect(ofAll?.["planSummary"]).toContain("status: 1, createdAt: 1, _id: 1");
  expect(ofAll).not.toHaveProperty("hasSortStage");
  expect(ofAll?.["keysExamined"]).toBeLessThan(30);
  const ofAccount = { planSummary: expect.stringContaining("account: 1, dueAt: 1") as string, keysExamined: 2 };
  expect(await read(`account=${one}`)).toMatchObject(ofAccount);
});

test("an operator cancels a batch of an account, which the audit log names", async () => {
  const { ask } = await setup();
  const cancelled = await ask("POST", "/batches/batch_running/cancel");
  expect([cancelled.status, cancelled.body]).toEqual([
    200,
    expect.objectContaining({ id: "batch_running", account: one, status: "cancelling", claimed_by: "api_1" }),
  ]);
  expect((await ask("POST", "/batches/batch_done/cancel")).status).toBe(409);
  expect((await ask("POST", "/batches/batch_none/cancel")).status).toBe(404);
  const { data } = (await ask("GET", "/audit")).body as unknown as { data: object[] };
  const record = { who: "admin", action: "POST /batches/{id}/cancel", changes: null };
  expect(data.toReversed()).toMatchObject([
    { ...record, targets: ["batch_running", one], status: 200 },
    { ...record, targets: ["batch_done"], status: 409 },
    { ...record, targets: ["batch_none"], status: 404 },
  ]);
});
