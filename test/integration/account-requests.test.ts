import { expect, test } from "vitest";
import { apiOfFile, openCustomer } from "../support/api-server.ts";
import { times } from "../support/money-setup.ts";

const api = apiOfFile();

test("a key sees its own calls, one that manages sees all, and neither sees another account's", async () => {
  const { money } = api;
  const [ours, theirs] = [await openCustomer(api), await openCustomer(api)];
  const labels = { sessionId: "s", user: "u", tags: ["a", "b=1"] };
  const [mine, other, foreign] = [
    await ours.call({ endpoint: "/v1/messages", ...labels }),
    await ours.call({ key: ours.second.id }),
    await theirs.call(),
  ];
  const idsOf = async (key: typeof ours.first, path = "/requests") => {
    const { status, body } = await key.ask("GET", path);
    return status === 200 ? body.data.map(({ id }) => id) : [status, body.error.code];
  };
  expect(await idsOf(ours.first)).toEqual([mine]);
  expect(await idsOf(ours.manager)).toEqual([other, mine]);
  expect(await idsOf(ours.manager, `/requests?key=${ours.first.id}`)).toEqual([mine]);
  expect(await idsOf(ours.first, `/requests?key=${ours.second.id}`)).toEqual([403, "insufficient_scope"]);
  for (const key of [theirs.first.id, "key_none"])
    expect(await idsOf(ours.manager, `/requests?key=${key}`)).toEqual([404, "not_found"]);
  expect(await idsOf(ours.manager, `/requests?after=${foreign}`)).toEqual([400, "invalid_value"]);

  for (const id of [other, foreign, "req_none", "credit:x:opening"])
    expect([id, (await ours.first.ask("GET", `/requests/${id}`)).status]).toEqual([id, 404]);
  expect((await ours.manager.ask("GET", `/requests/${foreign}`)).status).toBe(404);
  expect((await ours.manager.ask("GET", `/requests/${mine}`)).body).toEqual({
    id: mine,
    object: "request",
    key: ours.first.id,
    endpoint: "/v1/messages",
    model: "openai/gpt",
    status: "succeeded",
    error: null,
    session_id: "s",
    user: "u",
    tags: ["a", "b=1"],
    cost_usd: "0.000001",
    usage: { input: 10, output: 5 },
    estimated: false,
    streamed: null,
    finish_reason: null,
    input_tokens: 10,
    output_tokens: 5,
    cached_tokens: 0,
    saved_usd: "0.00",
    created_at: expect.any(Number),
    queue_ms: null,
    first_token_ms: null,
    total_ms: 1_200,
    refunded: false,
    byok: false,
    provider_key_id: null,
    list_usd: null,
    fee_usd: null,
    batch: null,
    http_status: null,
    error_message: null,
    error_advice: null,
    job: null,
    files: [],
    attempts: [{ upstream: "openai", credential: "shared", started_ms: 1, duration_ms: 40, outcome: "succeeded" }],
  });
  await money.refund(ours.account, mine);
  expect((await ours.first.ask("GET", `/requests/${mine}`)).body).toMatchObject({
    cost_usd: "0.000001",
    refunded: true,
  });
  const listed = (await ours.first.ask("GET", "/requests")).body.data;
  expect(listed.map(({ id, refunded }) => [id, refunded])).toContainEqual([mine, true]);
  expect(listed.filter(({ refunded }) => refunded)).toHaveLength(1);
});

test("filters by status, model, key and time, alone and together; what is wrong is named", async () => {
  const { clock } = api;
  const { manager, first, second, call } = await openCustomer(api);
  const failed = await call({ status: "failed", error: "upstream_timeout" });
  const rare = await call({ model: "vendor/rare" });
  const later = Math.floor(clock.now() / 1000) + 1_000;
  clock.later(2_000_000);
  const late = await call({ key: second.id, model: "vendor/rare", status: "cancelled" });
  const labeled = await call({ sessionId: "s 1", user: "u", tags: ["a", "b=1"] });
  const found = async (query: string) =>
    (await manager.ask("GET", `/requests?${query}`)).body.data?.map(({ id }) => id);
  expect(await found("status=failed")).toEqual([failed]);
  expect(await found("status=succeeded")).toEqual([labeled, rare]);
  for (const query of ["session_id=s+1", "user=u", "tag=a", "tag=b%3D1&user=u&session_id=s+1"])
    expect([query, await found(query)]).toEqual([query, [labeled]]);
  for (const query of ["session_id=s", "user=u&tag=c", "tag=a&status=failed"])
    expect([query, await found(query)]).toEqual([query, []]);
  expect(await found("model=vendor/rare")).toEqual([late, rare]);
  expect(await found(`model=vendor/rare&status=cancelled&key=${second.id}`)).toEqual([late]);
  expect(await found(`model=vendor/rare&key=${first.id}`)).toEqual([rare]);
  expect(await found(`from=${later}`)).toEqual([labeled, late]);
  expect(await found(`to=${later}`)).toEqual([rare, failed]);
  expect(await found("model=vendor/none")).toEqual([]);
  for (const [query, param] of [
    ["status=running", "status"],
    ["from=yesterday", "from"],
    ["to=99999999999999999", "to"],
    ["limit=0", "limit"],
    ["upstream=openai", "upstream"],
    ["after=req_none", "after"],
  ]) {
    const { status, body } = await manager.ask("GET", `/requests?${query}`);
    expect([query, status, body.error.param]).toEqual([query, 400, param]);
  }
});

test("pages have every call once while others arrive, and continue past calls that a filter excludes", async () => {
  const { mongo, money } = api;
  const { account, manager, call } = await openCustomer(api, 100_000_000_000n);
  const rare = await call({ model: "vendor/rare" });
  const [template] = await mongo.connection
    .collection<{ _id: string; createdAt: Date }>("ledger")
    .find({ _id: rare })
    .toArray();
  // Several share a millisecond; the first call is behind more entries than one page reads.
  const others = times(4_100, (at) => ({
    ...structuredClone({ ...template, createdAt: undefined }),
    _id: `req_many${String(at).padStart(6, "0")}`,
    createdAt: new Date((template?.createdAt.getTime() ?? 0) + 1 + Math.floor(at / 3)),
    request: { ...(template as unknown as { request: object }).request, model: "openai/gpt" },
  }));
  await mongo.connection.collection<{ _id: string }>("ledger").insertMany(others as never);
  const read = async (query: string, limit: number) => {
    const ids: string[] = [];
    let pages = 0;
    for (let next: string | null = ""; next !== null; pages++) {
      const { body } = await manager.ask("GET", `/requests?limit=${limit}${query}${next && `&after=${next}`}`);
      ids.push(...body.data.map(({ id }) => id));
      next = body.next;
      if (pages < 2) await call();
    }
    return { ids, pages };
  };
  const all = await read("", 200);
  expect(new Set(all.ids).size).toBe(all.ids.length);
  expect(all.ids.filter((id) => id.startsWith("req_many") || id === rare)).toHaveLength(4_101);
  // An index answers this at once. Together with a key, each page compares a bounded part of the calls.
  expect(await read("&model=vendor/rare", 50)).toEqual({ ids: [rare], pages: 1 });
  const compared = await read(
    `&model=vendor/rare&key=${(template as unknown as { request: { key: string } }).request.key}`,
    50,
  );
  expect(compared).toEqual({ ids: [rare], pages: 3 });
  expect((await money.findCalls({ account, status: "failed", limit: 10 })).calls).toEqual([]);
});
