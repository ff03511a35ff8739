import { expect, test } from "vitest";
import { keyOf } from "../support/account-caller.ts";
import { countCalls, startApiServer } from "../support/api-server.ts";
import { browse, signIn } from "../support/dashboard-setup.ts";
import { drawing, images } from "../support/generation-setup.ts";
import { openAccount } from "../support/money-setup.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { startService } from "../support/service.ts";
import { localModel } from "../support/service-setup.ts";

const shared = ofFile(
  async (onEnd) => ({ service: await startService(await testStores(), { onEnd }) }),
  () => {},
);

interface OwnBatches {
  readonly data: readonly { readonly id: string }[];
  readonly next: string | null;
}

test("batches of both interfaces are listed newest first and shown in one shape, to their account alone", async () => {
  const { service } = shared;
  const [customer, other] = [await service.account("0.000000001"), await service.account("0")];
  const body = { model: localModel, messages: [{ role: "user", content: "Hello" }], max_tokens: 5 };
  const requests = [{ custom_id: "a", body }];
  const created = [
    await customer.post("/v1/batches", { endpoint: "/v1/chat/completions", completion_window: "24h", requests }),
    await customer.post("/v1/messages/batches", { requests: [{ custom_id: "a", params: body }] }),
  ];
  const ids = await Promise.all(created.map(async (each) => ((await each.json()) as { id: string }).id));
  const [cookie, theirs] = [await signIn(service, { key: customer.key }), await signIn(service, { key: other.key })];
  const get = (path: string, as = cookie) => browse(service, "GET", `/dashboard/api/batches${path}`, { cookie: as });
  const list = async (query: string, as = cookie) => (await get(query, as)).body as unknown as OwnBatches;
  const { data } = await list("");
  expect(data.map(({ id }) => id)).toEqual(ids.toReversed());
  const shape = { object: "batch", x_cost_usd: "0.00", request_counts: { total: 1, completed: 0, failed: 0 } };
  expect(data).toMatchObject([
    { ...shape, kind: "anthropic", endpoint: "/v1/messages" },
    { ...shape, kind: "openai", endpoint: "/v1/chat/completions" },
  ]);
  const first = await list("?limit=1");
  expect([first.next, (await list(`?limit=1&after=${first.next}`)).data.map(({ id }) => id)]).toEqual([
    ids[1],
    [ids[0]],
  ]);
  for (const id of ids) {
    expect((await get(`/${id}`)).body).toMatchObject({ id });
    expect((await get(`/${id}`, theirs)).status).toBe(404);
  }
  expect((await list("", theirs)).data).toEqual([]);
});

test("generated files are listed newest first with the time until they expire, by pages, to their account alone", async () => {
  const { service } = shared;
  const customer = await service.account("10.00");
  const other = await service.account("1.00");
  for (const n of [1, 2, 3]) expect((await customer.post(images, drawing("a lighthouse", { n }))).status).toBe(200);
  const cookie = await signIn(service, { key: customer.key });
  const list = async (query: string, as = cookie) =>
    (await browse(service, "GET", `/dashboard/api/files${query}`, { cookie: as })).body as unknown as {
      data: { id: string; url: string; created_at: number; expires_at: number; request: string }[];
      has_more: boolean;
      next: string | null;
    };
  const all = await list("");
  expect([all.data.length, all.has_more]).toEqual([6, false]);
  expect(new Set(all.data.map(({ request }) => request)).size).toBe(3);
  for (const { created_at, expires_at } of all.data) expect(expires_at - created_at).toBe(24 * 3_600);
  expect((await fetch(all.data[0]?.url ?? "")).headers.get("content-type")).toBe("image/png");
  const page = await list("?limit=4");
  const rest = await list(`?limit=4&after=${page.next}`);
  expect([...page.data, ...rest.data]).toEqual(all.data);
  const theirs = await signIn(service, { key: other.key });
  expect((await list("", theirs)).data).toEqual([]);
  const foreign = await browse(service, "GET", `/dashboard/api/files?after=${page.next}`, { cookie: theirs });
  expect(foreign.status).toBe(400);
});

test("models show how they performed for all accounts in the last day, and a share only from 20 attempts on", async () => {
  const server = await startApiServer();
  const { key } = await keyOf(server, await openAccount(server.money, 1n));
  const cookie = await signIn(server, { key });
  await countCalls(server, (counter) => {
    const at = { upstream: "local", model: localModel };
    for (let n = 0; n < 19; n++) counter.attempted(at, { ms: 200 });
    counter.attempted(at, { isFailed: true });
    for (const ms of [40, 50, 5_000]) counter.firstEvent(at, ms);
    for (let n = 0; n < 19; n++) counter.attempted({ ...at, model: "local/speech" }, { isFailed: true });
  });
  const { body } = await browse(server, "GET", "/dashboard/api/model-performance", { cookie });
  const { data } = body as unknown as { data: { id: string }[] };
  const near = (ms: number) => expect.toSatisfy((each: number) => Math.abs(each - ms) <= 0.05 * ms + 0.5) as number;
  const shown = (id: string) => data.find((each) => each.id === id);
  // No worker has been seen, so nothing responds.
  const upstream = { id: "local", responds: false, tokens_per_second: null };
  const chat = { availability: 0.95, first_token_ms: near(50), total_ms: near(200) };
  expect(shown(localModel)).toEqual({
    id: localModel,
    object: "model_performance",
    ...chat,
    upstreams: [{ ...upstream, ...chat }],
  });
  const none = { availability: null, first_token_ms: null, total_ms: null };
  for (const id of ["local/speech", "local/embeddings"])
    expect(shown(id)).toEqual({ id, object: "model_performance", ...none, upstreams: [{ ...upstream, ...none }] });
});
