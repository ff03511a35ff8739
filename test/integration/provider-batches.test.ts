import { expect, test } from "vitest";
import { newProviderBatchId, type StoredBatch } from "../../shared/batches/index.ts";
import { longLeaseOf } from "../../shared/money/index.ts";
import { managedAccount } from "../support/account-caller.ts";
import {
  claimsOf,
  createBatch,
  endOf,
  type Line,
  later,
  laterEndOf,
  openBatches,
  providerBatchesOf,
  resultsOf,
} from "../support/batches-setup.ts";
import { temporaryJson } from "../support/end-of-file.ts";
import { scrape } from "../support/metrics.ts";
import { mockAnthropicError } from "../support/mock-anthropic.ts";
import { startMockAnthropicBatches } from "../support/mock-anthropic-batches.ts";
import { mockError } from "../support/mock-openai.ts";
import { startMockOpenaiBatches } from "../support/mock-openai-batches.ts";
import { movableClock } from "../support/movable-clock.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { eventually, startService } from "../support/service.ts";
import { webhookEnvironment } from "../support/webhook-receiver.ts";

const text = {
  owned_by: "test",
  type: "text",
  released: "2026-01-01",
  context_length: 10_000,
  max_output_tokens: 1_000,
};
/** The only key that the mock of OpenAI accepts. */
const batchKey = "sk-batches-0123456789";
const pricing = { input: "1.00", output: "2.00" };
const served = (upstream: string, model: string, more: object = {}) => ({
  upstreams: [{ upstream, model, batch_discount_bps: 5_000, ...more }],
});
const catalog = {
  elite_discount_bps: 0,
  upstreams: {
    openai: {
      provider: "openai",
      formats: ["chat", "responses"],
      base_url_env: "OPENAI_BASE_URL",
      key_env: "OPENAI_API_KEY",
    },
    anthropic: { provider: "anthropic", base_url_env: "ANTHROPIC_BASE_URL", key_env: "ANTHROPIC_API_KEY" },
  },
  models: [
    { id: "test/one", name: "One", ...text, pricing, ...served("openai", "one-1", { cost: pricing }) },
    { id: "test/two", name: "Two", ...text, pricing, ...served("openai", "two-1"), batch_discount_bps: 1_000 },
    { id: "test/live", name: "Live", ...text, pricing, upstreams: [{ upstream: "openai", model: "live-1" }] },
    { id: "test/claude", name: "Claude", ...text, pricing, ...served("anthropic", "claude-1") },
    {
      id: "test/vectors",
      name: "Vectors",
      ...text,
      type: "embeddings",
      max_output_tokens: undefined,
      pricing: { input: "1.00" },
      ...served("openai", "vectors-1"),
    },
  ],
};

const running = ofFile(
  async (onEnd) => {
    const stores = await testStores();
    const { clock, advance } = movableClock();
    const openai = await startMockOpenaiBatches({ key: batchKey, now: () => clock.now() });
    const anthropic = await startMockAnthropicBatches({ now: () => clock.now() });
    onEnd(async () => void (await Promise.all([openai.close(), anthropic.close()])));
    const env = {
      CATALOG_FILE: temporaryJson("catalog", catalog),
      OPENAI_BASE_URL: openai.url,
      OPENAI_API_KEY: batchKey,
      ANTHROPIC_BASE_URL: anthropic.url,
      ANTHROPIC_API_KEY: "sk-ant-batches",
      NATIVE_FORMATS_ANY_MODEL: "true",
      PROVIDER_BATCH_POLL_SECONDS: "1",
      ...(await webhookEnvironment()),
    };
    const often = ["validate-batches", "run-provider-batches"] as const;
    const service = await startService(stores, { clock, onEnd, env, often });
    const opened = await openBatches(stores, { env, clock, onEnd });
    return { service, opened, openai, anthropic, advance, now: () => clock.now() };
  },
  ({ openai, anthropic }) => {
    openai.reset();
    anthropic.reset();
  },
);

const lineOf = (n: number, model = "test/one", more: object = {}): Line => ({
  custom_id: `c-${n}`,
  body: { model, max_tokens: 100, messages: [{ role: "user", content: `Line ${n}.` }], ...more },
});

async function owner(usd = "10") {
  const { account, id, ask } = await managedAccount(running.service, usd);
  return { account: account.id, keyId: id, ask };
}

const entriesOf = ({ account, _id }: StoredBatch) =>
  running.opened.mongo.db.collection("ledger").find({ account, "request.batch": _id }).toArray();

/** The batches at OpenAI, once there are so many. */
const atOpenai = (count: number) =>
  eventually(() => (running.openai.batches.all().length >= count ? running.openai.batches.all() : undefined));

const atAnthropic = () => eventually(() => running.anthropic.batches.all()[0]);

/** Each line has one result, and what the results cost is what the ledger has. */
async function checked(batch: StoredBatch, lines: readonly Line[]) {
  const { opened, service } = running;
  const outputs = await resultsOf(opened, batch);
  const failures = await resultsOf(opened, batch, "failures");
  const ids = [...outputs, ...failures].map(({ custom_id }) => custom_id);
  expect(ids.toSorted()).toEqual(lines.map(({ custom_id }) => custom_id).toSorted());
  const entries = await entriesOf(batch);
  const charged = entries.reduce((sum, { amount }) => sum - BigInt(amount as bigint), 0n);
  expect(charged).toBe(batch.costNanoUsd);
  expect(await service.settled()).toMatchObject({ difference_usd: "0.00", open_holds: 0 });
  await eventually(async () => (await providerBatchesOf(opened, batch)).every(({ status }) => status === "ended"));
  return { outputs, failures, entries, batch };
}

test("lines run in a batch of their provider for each model, and cost its batch price", async () => {
  const { opened, openai } = running;
  const of = await owner();
  const lines = [...Array(6).keys()].map((n) => lineOf(n, n % 2 === 0 ? "test/one" : "test/two"));
  const live = lineOf(6, "test/live");
  const created = await createBatch(opened, of, [...lines, live]);
  const [first, second] = await atOpenai(2);
  openai.batches.complete(first?.id ?? "");
  openai.batches.complete(second?.id ?? "");
  const { batch, entries, outputs } = await checked(await endOf(opened, created), [...lines, live]);
  expect(batch).toMatchObject({ status: "completed", counts: { succeeded: 7, failed: 0 } });
  // 9 input and 8 output tokens at 1 and 2 USD: half of it, and the whole for the model without a batch.
  const costs = entries.map(({ amount, request }) => `${request.model} ${-amount} ${request.upstream}`);
  expect(costs.toSorted()).toEqual([
    "test/live 25000 openai",
    ...Array<string>(3).fill("test/one 12500 openai"),
    ...Array<string>(3).fill("test/two 12500 openai"),
  ]);
  expect(entries.find(({ request }) => request.model === "test/one")?.["request"].upstreamCost).toBe(12_500n);
  const answer = outputs.find(({ custom_id }) => custom_id === "c-0")?.response;
  expect(answer?.body).toMatchObject({ object: "chat.completion", usage: { cost_usd: "0.0000125" } });
  expect(batch.usage).toMatchObject({ inputTokens: 63, outputTokens: 56 });
  // One live call; nothing is left at the provider.
  expect(openai.requests.filter(({ path }) => path === "/v1/chat/completions")).toHaveLength(1);
  await eventually(() => openai.files.stored.size === 0);
});

test("lines for whose model the account has an own key run with it, and not in a batch of the provider", async () => {
  const { opened, openai } = running;
  const of = await owner();
  const own = { provider: "openai", credential: batchKey, models: ["test/one"] };
  const { status, body: key } = await of.ask("POST", "/provider-keys?check=false", own);
  expect(status).toBe(201);
  const lines = [lineOf(0), lineOf(1), lineOf(2, "test/two")];
  const created = await createBatch(opened, of, lines);
  const [only] = await atOpenai(1);
  openai.batches.complete(only?.id ?? "");
  const { entries } = await checked(await endOf(opened, created), lines);
  const costs = entries.map(({ amount, request }) => `${request.model} ${-amount} ${request.byok?.key ?? "shared"}`);
  expect(costs.toSorted()).toEqual([...Array<string>(2).fill(`test/one 1250 ${key.id}`), "test/two 12500 shared"]);
  expect(openai.requests.filter(({ path }) => path === "/v1/chat/completions")).toHaveLength(2);
});

test("Anthropic's batches serve both formats, and errors of single lines are those of their calls", async () => {
  const { opened, anthropic } = running;
  const of = await owner();
  const lines = [...Array(4).keys()].map((n) => lineOf(n, "test/claude"));
  const created = await createBatch(opened, of, lines);
  const { id } = await atAnthropic();
  const [refused, overloaded, expired] = anthropic.batches.requests(id).map(({ custom_id }) => custom_id);
  anthropic.batches.end(id, {
    [refused ?? ""]: mockAnthropicError(400, "messages: too long"),
    [overloaded ?? ""]: mockAnthropicError(529, "Overloaded"),
    [expired ?? ""]: "expired",
  });
  // What may pass later is tried again, as a live call.
  const { batch, failures, outputs } = await checked(await laterEndOf(running, created), lines);
  expect(batch).toMatchObject({ status: "completed", counts: { succeeded: 3, failed: 1 } });
  const metrics = await scrape(running.service.metrics.worker);
  const counted = (outcome: string) =>
    metrics.value("inference_provider_batch_lines_total", { upstream: "anthropic", outcome });
  expect(["answered", "failed", "not_run"].map(counted)).toEqual([1, 2, 1]);
  expect(failures[0]).toMatchObject({ response: { status_code: 400 } });
  expect(new Set(outputs.map(({ response }) => response?.body["object"]))).toEqual(new Set(["chat.completion"]));
  expect(anthropic.requests.filter(({ path }) => path === "/v1/messages")).toHaveLength(2);
});

test("embeddings and Responses are answered as their calls are", async () => {
  const { opened, openai } = running;
  const of = await owner();
  const body = { model: "test/vectors", input: ["a", "b"] };
  const vectors = await createBatch(opened, of, [{ custom_id: "v", body }], { endpoint: "/v1/embeddings" });
  const response = { model: "test/one", input: "Hello.", max_output_tokens: 50 };
  const responses = await createBatch(opened, of, [{ custom_id: "r", body: response }], { endpoint: "/v1/responses" });
  for (const { id } of await atOpenai(2)) openai.batches.complete(id);
  const ends = await Promise.all([endOf(opened, vectors), endOf(opened, responses)]);
  const [vector, answer] = await Promise.all(ends.map((end) => resultsOf(opened, end)));
  expect(vector?.[0]?.response?.body).toMatchObject({ object: "list", model: "test/vectors", data: [{}, {}] });
  expect(answer?.[0]?.response?.body).toMatchObject({ object: "response", status: "completed" });
  await running.service.settled();
});

test.for([
  ["refuses the file", async () => undefined],
  ["fails the batch", (id: string) => running.openai.batches.fail(id, [])],
] as const)("a provider that %s: the lines run by themselves, at their own price", async ([how, act]) => {
  const { opened, openai } = running;
  const of = await owner();
  if (how === "refuses the file") openai.respondTo("POST /v1/files", mockError(400, "No batches for you."));
  const lines = [lineOf(1, "test/two"), lineOf(2, "test/two")];
  const created = await createBatch(opened, of, lines);
  if (how !== "refuses the file") act((await atOpenai(1))[0]?.id ?? "");
  const { entries, batch } = await checked(await laterEndOf(running, created), lines);
  expect(batch).toMatchObject({ status: "completed", counts: { succeeded: 2 } });
  const charged = entries.map(({ amount }) => Number(-amount)).filter((cost) => cost > 0);
  expect(charged).toEqual([22_500, 22_500]);
});

const ends: Readonly<Record<string, (of: { account: string; keyId: string }, batch: string) => Promise<unknown>>> = {
  cancelled: ({ account }, batch) => running.opened.batches.cancel(account, batch),
  "cancelled because its key is revoked": ({ keyId }) => running.service.admin("DELETE", `/keys/${keyId}`),
};

test.for(Object.keys(ends))("a batch that is %s keeps what its provider has done", async (how) => {
  const { opened, openai } = running;
  const of = await owner();
  const lines = [lineOf(1), lineOf(2), lineOf(3)];
  const created = await createBatch(opened, of, lines);
  const [{ id } = { id: "" }] = await atOpenai(1);
  openai.batches.start(id);
  await ends[how]?.(of, created._id);
  await later(running, created, () => openai.batches.get(id).status === "cancelling");
  const [{ _id } = { _id: "" }] = await providerBatchesOf(opened, created);
  openai.batches.finishCancel(id, { [`${_id}-0`]: {} });
  const { batch, failures } = await checked(await endOf(opened, created), lines);
  expect(batch).toMatchObject({ status: "cancelled", counts: { succeeded: 1, cancelled: 2, failed: 0 } });
  expect(failures.map(({ error }) => error?.code)).toEqual(["batch_cancelled", "batch_cancelled"]);
});

test("a provider that is too slow is cancelled an hour before the end, and the rest runs by itself", async () => {
  const { opened, openai, advance } = running;
  const of = await owner();
  const lines = [lineOf(1), lineOf(2)];
  const created = await createBatch(opened, of, lines);
  const [{ id } = { id: "" }] = await atOpenai(1);
  openai.batches.start(id);
  await eventually(async () => (await claimsOf(opened, created)).length === 0);
  advance(23.1 * 3_600_000);
  await eventually(() => openai.batches.get(id).status === "cancelling");
  const [{ _id } = { _id: "" }] = await providerBatchesOf(opened, created);
  openai.batches.finishCancel(id, { [`${_id}-1`]: {} });
  const { batch } = await checked(await laterEndOf(running, created), lines);
  expect(batch).toMatchObject({ status: "completed", counts: { succeeded: 2 } });
});

test("a provider's answer to a submission is lost: its batch is found, and none is made twice", async () => {
  const { opened, openai } = running;
  const of = await owner();
  openai.respondTo("POST /v1/batches", { lost: true });
  const created = await createBatch(opened, of, [lineOf(1)]);
  const [{ id } = { id: "" }] = await atOpenai(1);
  await later(running, created, async () => (await providerBatchesOf(opened, created))[0]?.providerId === id);
  openai.batches.complete(id);
  await checked(await endOf(opened, created), [lineOf(1)]);
  expect(openai.batches.all()).toHaveLength(1);
});

test("a balance that covers only some lines: they run, the batch pauses, and goes on after a top-up", async () => {
  const { opened, openai, service, advance } = running;
  // A line holds at most 0.0102 USD.
  const of = await owner("0.015");
  const lines = [...Array(80).keys()].map((n) => lineOf(n, "test/one", { max_tokens: 1_000 }));
  const created = await createBatch(opened, of, lines);
  const pausedBy = async () => (await opened.batches.find(of.account, created._id))?.paused;
  await eventually(async () => (await pausedBy()) === "insufficient_balance");
  // Those whose cost is held go to the provider. Nothing is held for the others.
  const [first] = await atOpenai(1);
  expect(openai.batches.start(first?.id ?? "").request_counts.total).toBeGreaterThan(4);
  advance(2_000);
  await service.admin("POST", `/accounts/${of.account}/credits`, { amount_usd: "5", idempotency_key: created._id });
  const complete = async () => {
    for (const { id, status } of openai.batches.all())
      if (status === "validating" || status === "in_progress") openai.batches.complete(id);
    return (await opened.batches.find(of.account, created._id))?.status === "completed";
  };
  await later(running, created, complete, 2_000);
  const { batch } = await checked(await endOf(opened, created), lines);
  expect(batch.counts.succeeded).toBe(80);
});

test("the input file is deleted while a provider has the lines: the batch is cancelled, and costs nothing", async () => {
  const { opened, openai } = running;
  const of = await owner();
  const created = await createBatch(opened, of, [lineOf(1), lineOf(2)]);
  const [{ id } = { id: "" }] = await atOpenai(1);
  expect(await of.ask("DELETE", `/files/${created.inputFile}`)).toMatchObject({ status: 409 });
  await opened.files.batchFiles.delete(of.account, created.inputFile);
  openai.batches.complete(id);
  const ended = await laterEndOf(running, created);
  expect(ended).toMatchObject({ status: "cancelled", costNanoUsd: 0n, counts: { succeeded: 0 } });
  expect(await running.service.settled()).toMatchObject({ difference_usd: "0.00", open_holds: 0 });
});

test("lines that were collected for a provider and never handed over hold nothing for long", async () => {
  const { opened, service, now } = running;
  const of = await owner();
  const { account, _id: batch } = await createBatch(opened, of, [lineOf(1, "test/live")]);
  await endOf(opened, { account, _id: batch });
  // An instance that stalled had gone on with a batch that another one has ended since.
  const [_id, giveUpAt] = [newProviderBatchId(), new Date(now() + 3_600_000)];
  const more = { account, batch, upstream: "openai", model: "test/one", job: "chat", giveUpAt } as const;
  await opened.batches.providerBatches.create({ _id, ...more });
  const growth = { account, lease: longLeaseOf(_id), isFirst: true, nanoUsd: 10_000n, callsEndAt: now() + 86_400_000 };
  expect(await opened.money.growLongLease(growth)).toBe(true);
  const ended = async () => (await providerBatchesOf(opened, { account, _id: batch }))[0]?.status === "ended";
  await later(running, { account, _id: batch }, ended, 60_000);
  expect(await service.settled()).toMatchObject({ difference_usd: "0.00", open_holds: 0 });
});
