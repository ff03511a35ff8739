import { expect, test } from "vitest";
import { systemClock } from "../../shared/platform/clock.ts";
import { createMetrics } from "../../shared/platform/observability/metrics.ts";
import { createAttemptObserver } from "../../workers/metrics.ts";
import { countCalls, startApiServer } from "../support/api-server.ts";
import { captureOf, held, holdOf, openAccount } from "../support/money-setup.ts";
import { eventually } from "../support/service.ts";

test("the overview has the calls and charges of all processes, and says what cannot be read", async () => {
  const server = await startApiServer({ env: { S3_ENDPOINT: "http://127.0.0.1:1" } });
  await countCalls(server, (counter) => {
    for (const status of ["succeeded", "succeeded", "cancelled"]) counter.ended(status, 500_000n);
    counter.refused();
  });
  await countCalls(server, (counter) => {
    counter.ended("failed", 1n);
  });
  // A store that takes longer than a second to answer does not count as there, nor does a registry that is read late.
  const { status, body } = await eventually(async () => {
    const answer = await server.ask("GET", "/overview");
    const { stores, pools } = answer.body as unknown as { stores: { name: string; ok: boolean }[]; pools: unknown };
    return pools !== null && stores.every(({ name, ok }) => ok || name === "s3") && answer;
  });
  const count = { calls: 5, failed: 1, refused: 1, charged_usd: "0.001500001" };
  expect(status).toBe(200);
  expect(body).toMatchObject({
    object: "overview",
    traffic: { last_5_minutes: count, last_hour: count, last_day: count },
    workers: 0,
    // No maintenance worker has counted anything.
    money: null,
    ledger: null,
    owed: { owed_usd: "0.00", payments: 0 },
    stores: [
      { name: "mongodb", ok: true },
      { name: "redis", ok: true },
      { name: "s3", ok: false, ping_ms: null },
    ],
  });
  const { traffic, pools, upstreams } = body as unknown as {
    traffic: { minutes: { at: number; calls: number }[]; hours: unknown[] };
    pools: { pool: string }[];
    upstreams: { id: string; state: string }[];
  };
  expect([traffic.minutes.length, traffic.hours.length]).toEqual([60, 24]);
  expect(traffic.minutes.reduce((sum, { calls }) => sum + calls, 0)).toBe(5);
  expect(pools.map(({ pool }) => pool)).toEqual([
    "chat",
    "embeddings",
    "image",
    "media",
    "batches",
    "webhooks",
    "maintenance",
  ]);
  expect(upstreams).toContainEqual({ id: "local", state: "no key", last_failure: null });
});

test("attempts at upstreams are counted with their failures and times, those with an account's own key are not", async () => {
  const server = await startApiServer();
  const attempt = (upstream: string, isOwn = false) => ({ upstream, model: "openai/gpt", isOwn });
  await countCalls(server, (counter) => {
    const observer = createAttemptObserver(createMetrics("worker", systemClock), counter);
    for (const ms of [100, 200, 300, 4_000]) observer.ended(attempt("openai"), "succeeded", ms);
    for (const outcome of ["failed", "busy", "timeout", "refused", "cancelled"] as const)
      observer.ended(attempt("openai"), outcome, 9_000);
    for (const ms of [50, 60, 70]) observer.firstEvent(attempt("openai"), ms);
    observer.ended(attempt("openai", true), "failed", 9_000);
    observer.firstEvent(attempt("openai", true), 9_000);
  });
  await countCalls(server, (counter) =>
    counter.attempted({ upstream: "openai", model: "openai/gpt-4o-mini" }, { isFailed: true }),
  );
  const shown = async () => {
    const { data } = (await server.ask("GET", "/upstreams")).body as unknown as {
      data: { id: string; traffic: Record<string, Record<string, number>> }[];
    };
    return data.map(({ id, traffic }) => [id, traffic.last_5_minutes, traffic.last_hour, traffic.last_day] as const);
  };
  // The workers are read within a second.
  const rows = await eventually(async () => (await server.ask("GET", "/upstreams")).status === 200 && (await shown()));
  const near = (ms: number) => expect.toSatisfy((each: number) => Math.abs(each - ms) <= 0.05 * ms + 0.5) as number;
  const counts = {
    attempts: 10,
    failed: 4,
    first_token_p50_ms: near(60),
    first_token_p95_ms: near(70),
    total_p50_ms: near(200),
    total_p95_ms: near(4_000),
  };
  expect(rows.find(([id]) => id === "openai")).toEqual(["openai", counts, counts, counts]);
  const none = { attempts: 0, failed: 0, first_token_p50_ms: null, total_p95_ms: null };
  expect(rows.find(([id]) => id === "local")).toMatchObject(["local", none, none, none]);
});

test("usage and margin of all accounts, or of some, by day, model and account", async () => {
  const server = await startApiServer();
  const [one, other] = [await openAccount(server.money, 9_000_000n), await openAccount(server.money, 9_000_000n)];
  const known = { model: "openai/gpt", upstreamCostNanoUsd: 600_000n };
  for (const [account, cost, more] of [
    [one, 1_000_000n, known],
    [one, 2_000_000n, { model: "a/unpriced" }],
    [other, 900_000n, known],
    [other, 500_000n, { ...known, status: "failed" }],
  ] as const)
    await server.money.charge(captureOf(await held(server.money, holdOf(account, 2_000_000n)), cost, more));
  await server.money.sumUsage();
  const usage = async (query: string) =>
    (await server.ask("GET", `/usage?${query}`)).body as unknown as { data: unknown };
  const accounts = `account=${one},${other}`;
  const today = new Date().toISOString().slice(0, 10);
  const sums = (cost: string, upstream: string, unpriced: string, margin: string) => ({
    cost_usd: cost,
    upstream_cost_usd: upstream,
    unpriced_usd: unpriced,
    margin_usd: margin,
  });
  expect((await usage(accounts)).data).toMatchObject([
    { object: "usage", day: today, calls: 4, failed: 1, ...sums("0.0044", "0.0018", "0.002", "0.0006") },
  ]);
  expect((await usage(`${accounts}&group_by=model`)).data).toMatchObject([
    { model: "openai/gpt", calls: 3, ...sums("0.0024", "0.0018", "0.00", "0.0006") },
    { model: "a/unpriced", calls: 1, ...sums("0.002", "0.00", "0.002", "0.00") },
  ]);
  expect((await usage(`account=${other}&group_by=account,model`)).data).toMatchObject([
    { account: other, model: "openai/gpt", ...sums("0.0014", "0.0012", "0.00", "0.0002") },
  ]);
  const { data: ofAll } = await usage("group_by=account");
  expect(ofAll).toContainEqual(expect.objectContaining({ account: one, cost_usd: "0.003" }));
  expect((await usage(`${accounts}&to=2025-01-01`)).data).toEqual([]);
  for (const [query, param] of [
    ["from=2026-02-30", "from"],
    ["from=2025-01-01&to=2026-02-01", "from"],
    ["from=2026-02-02&to=2026-02-01", "from"],
    ["group_by=day,key", "group_by"],
  ] as const)
    expect(await server.ask("GET", `/usage?${query}`)).toMatchObject({ status: 400, body: { error: { param } } });
});
