import { expect, test } from "vitest";
import { apiOfFile, bearer, openCustomer } from "../support/api-server.ts";

const api = apiOfFile();
const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);

test("usage is grouped as asked; a key sees its own, and one that manages sees the account's", async () => {
  const { money, clock } = api;
  const { manager, first, second, call } = await openCustomer(api);
  const foreign = await openCustomer(api);
  await call({ usage: { input: 7, cached_input: 3, output: 2 } });
  await call({ key: second.id, model: "vendor/image", usage: { image: 2 }, status: "failed", costNanoUsd: 500n });
  await foreign.call();
  clock.later(86_400_000);
  await call();
  await money.sumUsage();
  const [yesterday, today] = [dayOf(clock.now() - 86_400_000), dayOf(clock.now())];
  const read = async (key: typeof first, query = "") => (await key.ask("GET", `/usage?${query}`)).body.data;
  const sums = { object: "usage", calls: 1, failed: 0, input_tokens: 10, output_tokens: 5, cached_tokens: 0, units: 0 };
  expect(await read(first)).toEqual([
    { ...sums, day: yesterday, output_tokens: 2, cached_tokens: 3, cost_usd: "0.000001" },
    { ...sums, day: today, cost_usd: "0.000001" },
  ]);
  const ofImage = { ...sums, failed: 1, input_tokens: 0, output_tokens: 0, units: 2, cost_usd: "0.0000005" };
  expect(await read(manager, `group_by=model,key&to=${yesterday}`)).toEqual([
    { ...sums, model: "openai/gpt", key: first.id, output_tokens: 2, cached_tokens: 3, cost_usd: "0.000001" },
    { ...ofImage, model: "vendor/image", key: second.id },
  ]);
  expect(await read(manager, `group_by=endpoint&key=${second.id}`)).toEqual([
    { ...ofImage, endpoint: "/v1/chat/completions" },
  ]);
  for (const [query, status, param] of [
    ["group_by=day,user", 400, "group_by"],
    ["from=2026-02-30", 400, "from"],
    ["from=2026-11-02&to=2026-11-01", 400, "from"],
    ["from=2025-11-01&to=2026-11-02", 400, "from"],
    ["limit=3", 400, "limit"],
    [`key=${second.id}`, 403, undefined],
  ] as const) {
    const { status: answered, body } = await first.ask("GET", `/usage?${query}`);
    expect([query, answered, body.error.param ?? undefined]).toEqual([query, status, param]);
  }
  expect((await manager.ask("GET", `/usage?key=${foreign.first.id}`)).status).toBe(404);
});

test("the month's invoice has a line a day and model, as JSON or as CSV that no spreadsheet runs", async () => {
  const { money, clock } = api;
  const { account, manager, first, call } = await openCustomer(api);
  await call({ model: '=HYPERLINK("http://example.com")', costNanoUsd: 1_500n });
  await call({ model: "vendor/a,b", costNanoUsd: 2_000n });
  await money.refund(account, await call({ model: "vendor/a,b", costNanoUsd: 700n }));
  await money.sumUsage();
  const day = dayOf(clock.now());
  const month = day.slice(0, 7);
  const line = { day, input_tokens: 10, output_tokens: 5, cached_tokens: 0, units: 0 };
  expect((await manager.ask("GET", `/invoices?month=${month}`)).body).toEqual({
    object: "invoice",
    month,
    lines: [
      { ...line, model: '=HYPERLINK("http://example.com")', calls: 1, cost_usd: "0.0000015" },
      { ...line, model: "vendor/a,b", calls: 2, input_tokens: 20, output_tokens: 10, cost_usd: "0.000002" },
    ],
    total_usd: "0.0000035",
  });
  const csv = await fetch(`${api.baseUrl}/v1/invoices?month=${month}`, {
    headers: { ...bearer(manager.key), accept: "text/csv" },
  });
  expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(csv.headers.get("content-disposition")).toBe(`attachment; filename=invoice-${month}.csv`);
  expect((await csv.text()).split("\r\n")).toEqual([
    "day,model,calls,input_tokens,output_tokens,cached_tokens,units,cost_usd",
    `"${day}","'=HYPERLINK(""http://example.com"")",1,10,5,0,0,0.0000015`,
    `"${day}","vendor/a,b",2,20,10,0,0,0.000002`,
    '"total",,,,,,,0.0000035',
    "",
  ]);
  expect((await first.ask("GET", `/invoices?month=${month}`)).status).toBe(403);
  expect((await manager.ask("GET", "/invoices?month=2026-13")).body.error.param).toBe("month");
});

test("a balance alert begins once when less is available, and ends when it rises again", async () => {
  const { money, clock } = api;
  const { account, manager, first } = await openCustomer(api, 6_000_000_000n);
  const change = (alert_below_usd: unknown) => manager.ask("PATCH", "/account", { alert_below_usd });
  const alert = async () => (await first.ask("GET", "/balance")).body["alert"];
  const watch = () => Promise.all([money.watchBalances(), money.watchBalances(), money.watchBalances()]);
  const seconds = () => Math.floor(clock.now() / 1000);
  const add = (amountNanoUsd: bigint, idempotencyKey: string) =>
    money.credit(account, { amountNanoUsd, idempotencyKey });

  expect((await change("5.00")).body).toMatchObject({ id: account, alert_below_usd: "5.00", alert: null });
  await add(-2_000_000_000n, "less");
  expect(await alert()).toBeNull();
  const begun = seconds();
  await watch();
  const found = await alert();
  expect(found).toEqual({ since: expect.any(Number) });
  expect((found as { since: number }).since).toBeGreaterThanOrEqual(begun);
  clock.later(60_000);
  await watch();
  expect(await alert()).toEqual(found);
  // Another threshold below the balance does not repeat the alert.
  expect((await change("4.5")).body).toMatchObject({ alert_below_usd: "4.50", alert: found });
  await add(500_000_000n, "more");
  await watch();
  expect(await alert()).toBeNull();
  expect((await change("100")).body["alert"]).toEqual({ since: expect.any(Number) });
  expect((await change(null)).body).toMatchObject({ alert_below_usd: null, alert: null });
  await watch();
  expect(await alert()).toBeNull();

  for (const wrong of ["0", "-1", "1.0000000001", 5, true])
    expect([wrong, (await change(wrong)).body.error.param]).toEqual([wrong, "alert_below_usd"]);
  expect((await manager.ask("PATCH", "/account", { name: "x" })).status).toBe(400);
  expect((await first.ask("PATCH", "/account", {})).status).toBe(403);
});

test("a call is found by its request id, by an id made from it, and by its provider's id", async () => {
  const [ours, theirs] = [await openCustomer(api), await openCustomer(api)];
  const ended = { streamed: true, finishReason: "length" };
  const made = await ours.call({ answerId: undefined, costNanoUsd: 500_000n, ...ended });
  const random = made.slice("req_".length);
  const named = await ours.call({ answerId: "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG" });
  await theirs.call({ answerId: "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG" });
  const idOf = async (id: string, key = ours.first) => {
    const { status, body } = await key.ask("GET", `/generation?id=${id}`);
    return status === 200 ? (body["data"] as unknown as { id: string }).id : status;
  };
  for (const id of [made, `chatcmpl-${made}`, `msg_${random}`, `resp_${random}`]) expect(await idOf(id)).toBe(made);
  expect(await idOf("chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG")).toBe(named);
  expect(await idOf(made, theirs.first)).toBe(404);
  expect(await idOf(made, ours.second)).toBe(404);
  expect(await idOf("gen-none")).toBe(404);
  expect((await ours.first.ask("GET", "/generation")).body.error.param).toBe("id");
  expect((await ours.first.ask("GET", `/generation?id=${made}`)).body["data"]).toMatchObject({
    id: made,
    model: "openai/gpt",
    provider_name: "openai",
    api_type: "completions",
    total_cost: 0.0005,
    tokens_prompt: 10,
    tokens_completion: 5,
    latency: 1_200,
    generation_time: 40,
    streamed: true,
    finish_reason: "length",
    cancelled: false,
  });
});
