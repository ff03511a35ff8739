import { expect, test } from "vitest";
import { apiOfFile, bearer, openCustomer } from "../support/api-server.ts";

const api = apiOfFile();
const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);
const dayMs = 86_400_000;

/** Moves the time to the noon of the next day, so that no day ends by itself. */
const toNoon = () => api.clock.later(1.5 * dayMs - (api.clock.now() % dayMs));

test("usage is grouped as asked; a key sees its own, and one that manages sees the account's", async () => {
  const { money, clock } = api;
  const { manager, first, second, call } = await openCustomer(api);
  const foreign = await openCustomer(api);
  toNoon();
  await call({ usage: { input: 7, cached_input: 3, output: 2 } });
  await call({ key: second.id, model: "vendor/image", usage: { image: 2 }, status: "failed", costNanoUsd: 500n });
  await foreign.call();
  clock.later(86_400_000);
  await call();
  await money.sumUsage();
  const [yesterday, today] = [dayOf(clock.now() - 86_400_000), dayOf(clock.now())];
  const read = async (key: typeof first, query = "") => (await key.ask("GET", `/usage?${query}`)).body.data;
  const ended = { calls: 1, failed: 0, cancelled: 0 };
  const sums = {
    object: "usage",
    ...ended,
    input_tokens: 10,
    output_tokens: 5,
    cached_tokens: 0,
    units: 0,
    saved_usd: "0.00",
  };
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
    ["group_by=day,region", 400, "group_by"],
    [`group_by=session&from=${dayOf(clock.now() - 40 * 86_400_000)}`, 400, "from"],
    [`tag=a&user=${"u".repeat(257)}`, 400, "user"],
    ["from=2026-02-30", 400, "from"],
    ["from=2026-11-02&to=2026-11-01", 400, "from"],
    ["from=2025-11-01&to=2026-11-02", 400, "from"],
    ["limit=3", 400, "limit"],
    ["from=2026-11-23T05:30Z", 400, "from"],
    ["from=2026-11-23T24:00Z", 400, "from"],
    [`from=${today}T00:00Z&to=${today}`, 400, "to"],
    [`group_by=hour&from=${dayOf(clock.now() - 15 * 86_400_000)}`, 400, "from"],
    [`group_by=hour&from=${dayOf(clock.now() - 10 * 86_400_000)}&to=${today}&previous=true`, 400, "previous"],
    ["group_by=none,model", 400, "group_by"],
    ["previous=yes", 400, "previous"],
    ["latency=1", 400, "latency"],
    [`key=${second.id}`, 403, undefined],
  ] as const) {
    const { status: answered, body } = await first.ask("GET", `/usage?${query}`);
    expect([query, answered, body.error.param ?? undefined]).toEqual([query, status, param]);
  }
  expect((await manager.ask("GET", `/usage?key=${foreign.first.id}`)).status).toBe(404);
});

test("usage is by hour too, of one model or endpoint, with times, beside the period before", async () => {
  const { money, clock } = api;
  const { manager, first, call } = await openCustomer(api);
  clock.later(86_400_000 - (clock.now() % 86_400_000) + 90 * 60_000);
  await call({ firstTokenMs: 200 });
  await call({ model: "vendor/gone" });
  clock.later(24 * 3_600_000);
  await call({ status: "cancelled", firstTokenMs: 400, usage: { input: 7 } });
  await call({ status: "failed", endpoint: "/v1/messages" });
  clock.later(3_600_000);
  await call({ streamed: true, firstTokenMs: 30_000 });
  await money.sumUsage();
  const read = async (query: string) => (await manager.ask("GET", `/usage?${query}`)).body.data;
  const [yesterday, today] = [dayOf(clock.now() - 86_400_000), dayOf(clock.now())];
  const none = {
    calls: 0,
    failed: 0,
    cancelled: 0,
    input_tokens: 0,
    output_tokens: 0,
    cached_tokens: 0,
    units: 0,
    saved_usd: "0.00",
  };
  const free = { ...none, cost_usd: "0.00" };
  const one = { ...none, calls: 1, input_tokens: 10, output_tokens: 5, cost_usd: "0.000001" };
  const noTimes = { first_token_p50_ms: null, first_token_p95_ms: null };
  const object = "usage";

  const gpt = { ...one, object, model: "openai/gpt" };
  const cancelled = { ...gpt, cancelled: 1, input_tokens: 7, output_tokens: 0 };
  const hours = `from=${today}T01:00Z&to=${today}T02:00Z`;
  const filters = "model=openai/gpt&endpoint=/v1/chat/completions";
  expect(await read(`group_by=hour,model&${hours}&${filters}`)).toEqual([
    { ...cancelled, hour: `${today}T01:00Z` },
    { ...gpt, hour: `${today}T02:00Z` },
  ]);
  expect(await read(`group_by=hour&from=${today}T02:00Z`)).toEqual([{ ...one, object, hour: `${today}T02:00Z` }]);
  expect(await read("group_by=hour&key=" + first.id)).toHaveLength(2);

  // A model that is no longer used remains visible beside its earlier calls.
  const both = await read(`group_by=model&previous=true&latency=true&from=${today}&to=${today}`);
  const before = { first_token_p50_ms: 198, first_token_p95_ms: 198 };
  expect(both).toEqual([
    {
      ...gpt,
      calls: 3,
      failed: 1,
      cancelled: 1,
      input_tokens: 27,
      output_tokens: 10,
      cost_usd: "0.000003",
      first_token_p50_ms: 386,
      first_token_p95_ms: 30_982,
      previous: { ...one, ...before },
    },
    {
      ...free,
      ...noTimes,
      object,
      model: "vendor/gone",
      previous: { ...one, first_token_p50_ms: 1_213, first_token_p95_ms: 1_213 },
    },
  ]);
  expect(await read(`group_by=none&previous=true&from=${yesterday}&to=${yesterday}`)).toEqual([
    { ...one, object, calls: 2, input_tokens: 20, output_tokens: 10, cost_usd: "0.000002", previous: free },
  ]);
  // Each day is beside the one in its place.
  const byDay = await read(`group_by=day&previous=true&from=${today}&to=${dayOf(clock.now() + 86_400_000)}`);
  expect(byDay.map(({ day, calls, previous }) => [day, calls, previous])).toEqual([
    [today, 3, free],
    [dayOf(clock.now() + 86_400_000), 0, expect.objectContaining({ calls: 2 })],
  ]);
});

test("usage is by tag, session and user, and each key sees the labels of its own calls only", async () => {
  const { money } = api;
  const { manager, first, second, call } = await openCustomer(api);
  const foreign = await openCustomer(api);
  await call({ tags: ["a", "=b"], sessionId: "s", user: "u" });
  await call({ tags: ["a"], sessionId: "s" });
  await call();
  await call({ tags: ["secret"], sessionId: "hidden", user: "u", key: second.id });
  await foreign.call({ tags: ["a"], sessionId: "s", user: "u" });
  await money.sumUsage();
  const read = async (key: typeof first, query: string) => (await key.ask("GET", `/usage?${query}`)).body;
  const rowsOf = async (key: typeof first, group: string, more = "") =>
    Object.fromEntries(
      (await read(key, `group_by=${group}${more}`)).data.map((row) => [row[group as "id"] ?? "none", row["calls"]]),
    );
  expect(await rowsOf(first, "tag")).toEqual({ none: 1, a: 2, "=b": 1 });
  expect(await rowsOf(manager, "tag")).toEqual({ none: 1, a: 2, "=b": 1, secret: 1 });
  expect(await rowsOf(manager, "key", "&tag=a")).toEqual({ [first.id]: 2 });
  expect(await rowsOf(first, "session")).toEqual({ none: 1, s: 2 });
  expect(await rowsOf(manager, "user", "&session_id=s")).toEqual({ none: 1, u: 1 });
  expect(await rowsOf(manager, "tag", "&user=u")).toEqual({ a: 1, "=b": 1, secret: 1 });
  expect(await rowsOf(first, "model", "&session_id=hidden")).toEqual({});
  expect(await read(first, "group_by=tag")).toHaveProperty("groups_overlap", true);
  expect(await read(first, "group_by=session")).not.toHaveProperty("groups_overlap");
  const csv = await fetch(`${api.baseUrl}/v1/usage?group_by=tag,user&session_id=s`, {
    headers: { ...bearer(first.key), accept: "text/csv" },
  });
  expect((await csv.text()).split("\r\n")).toEqual([
    "tag,user,calls,failed,cancelled,input_tokens,output_tokens,cached_tokens,units,cost_usd,saved_usd",
    `"'=b","u",1,0,0,10,5,0,0,0.000001,0.00`,
    `"a","",1,0,0,10,5,0,0,0.000001,0.00`,
    `"a","u",1,0,0,10,5,0,0,0.000001,0.00`,
    "",
  ]);
});

test("the month's invoice has a line a day and model, as JSON or as CSV that no spreadsheet runs", async () => {
  const { money, clock } = api;
  const { account, manager, first, call } = await openCustomer(api);
  toNoon();
  await call({ model: '=HYPERLINK("http://example.com")', costNanoUsd: 1_500n });
  await call({ model: "vendor/a,b", costNanoUsd: 2_000n });
  await money.refund(account, await call({ model: "vendor/a,b", costNanoUsd: 700n }));
  await money.sumUsage();
  const day = dayOf(clock.now());
  const month = day.slice(0, 7);
  const line = { day, input_tokens: 10, output_tokens: 5, cached_tokens: 0, units: 0 };
  expect((await manager.ask("GET", `/invoices?month=${month}`)).body).toMatchObject({
    object: "invoice",
    month,
    status: "open",
    number: null,
    issuer: null,
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
  // An operator who has not named itself issues nothing.
  const past = (await manager.ask("GET", "/invoices?month=2020-02")).body;
  expect(past).toMatchObject({ status: "final", number: null, issued_at: null, total_usd: "0.00" });
  expect((await first.ask("GET", `/invoices?month=${month}`)).status).toBe(403);
  expect((await manager.ask("GET", "/invoices?month=2026-13")).body.error.param).toBe("month");
});

test("a balance alert begins once when less is available, and ends when it rises again", async () => {
  const { money, clock } = api;
  const { account, manager, first } = await openCustomer(api, 6_000_000_000n);
  const change = (alert_below_usd: unknown) => manager.ask("PATCH", "/account", { alert_below_usd });
  const alert = async () => (await first.ask("GET", "/balance")).body["alert"];
  const watch = () => Promise.all([1, 2, 3].map(() => money.watchBalances(async () => {})));
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
