import { expect, test } from "vitest";
import { createPart } from "../../api/batches/recording.ts";
import { lineIdOf } from "../../shared/batches/index.ts";
import { invalidValue } from "../../shared/errors.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { keyOf, managedAccount } from "../support/account-caller.ts";
import {
  chatLine,
  createBatch,
  endOf,
  type Line,
  later,
  laterEndOf,
  openBatches,
  resultsOf,
} from "../support/batches-setup.ts";
import { scrape } from "../support/metrics.ts";
import { movableClock } from "../support/movable-clock.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { eventually, startAnotherApi, startService } from "../support/service.ts";

const running = ofFile(
  async (onEnd) => {
    const stores = await testStores();
    const { clock, ...time } = movableClock();
    const env = { NATIVE_FORMATS_ANY_MODEL: "true" };
    const service = await startService(stores, { clock, onEnd, env, often: ["validate-batches"] });
    const opened = await openBatches(stores, { clock, onEnd });
    return { service, stores, clock, env, opened, ...time, now: () => clock.now() };
  },
  () => {},
);

const [minuteMs, dayMs] = [60_000, 86_400_000];

async function owner(usd = "10", key?: object) {
  const { service } = running;
  const managed = await managedAccount(service, usd);
  const account = managed.account.id;
  const { id: keyId, post } = key ? await keyOf(service, account, key) : managed;
  return { account, keyId, post, customer: managed.account };
}

const run = async (of: { account: string; keyId: string }, ...rest: BatchArguments) =>
  endOf(running.opened, await createBatch(running.opened, of, ...rest));
type BatchArguments = Parameters<typeof createBatch> extends [unknown, unknown, ...infer Rest] ? Rest : never;

/** The ledger's calls of a batch. */
const entriesOf = ({ account, _id }: { account: string; _id: string }) =>
  running.opened.mongo.db.collection("ledger").find({ account, "request.batch": _id }).toArray();

const chargedBy = (entries: Awaited<ReturnType<typeof entriesOf>>) =>
  entries.reduce((sum, { amount }) => sum - BigInt(amount as bigint), 0n);

const customIds = (results: readonly { custom_id: string }[]) => results.map(({ custom_id }) => custom_id).toSorted();

test("each line has one result, costs what the ledger says, and the batch costs their sum", async () => {
  const { opened, service } = running;
  const lines = Array.from({ length: 300 }, (_, n) => chatLine(n));
  const of = await owner();
  const batch = await run(of, lines, { tags: ["a", "b"] });
  expect(batch).toMatchObject({
    status: "completed",
    lines: 300,
    counts: { succeeded: 300, failed: 0, expired: 0, cancelled: 0 },
    model: "local/chat",
  });
  const results = await resultsOf(opened, batch);
  expect(customIds(results)).toEqual(customIds(lines));
  expect(new Set(results.map(({ response }) => response?.body["object"]))).toEqual(new Set(["chat.completion"]));
  const entries = await entriesOf(batch);
  expect(entries).toHaveLength(300);
  expect(new Set(entries.map(({ request }) => (request as { tags: string[] }).tags.join()))).toEqual(new Set(["a,b"]));
  expect(chargedBy(entries)).toBe(batch.costNanoUsd);
  expect(batch.costNanoUsd).toBeGreaterThan(0n);
  expect(batch.estimateNanoUsd).toBeGreaterThanOrEqual(batch.costNanoUsd);
  expect(await opened.mongo.db.collection("batchLines").countDocuments({ account: of.account })).toBe(0);
  await service.settled();
});

const endpoints: readonly (readonly [endpoint: string, body: object, object: string])[] = [
  ["/v1/responses", { model: "local/chat", input: "Hello." }, "response"],
  ["/v1/completions", { model: "local/chat", prompt: "Hello." }, "text_completion"],
  ["/v1/embeddings", { model: "local/embeddings", input: ["a", "b"] }, "list"],
  ["/v1/moderations", { input: "Hello." }, ""],
  ["/v1/images/generations", { model: "local/image", prompt: "Sun", size: "16x16" }, ""],
];

test.for(endpoints)("%s: lines are answered as its calls are", async ([endpoint, body, object]) => {
  const batch = await run(await owner(), [{ custom_id: "one", body: body as Line["body"] }], { endpoint });
  expect(batch).toMatchObject({ status: "completed", counts: { succeeded: 1 } });
  const [result] = await resultsOf(running.opened, batch);
  expect(result).toMatchObject({ custom_id: "one", response: { status_code: 200 }, error: null });
  expect(result?.response?.body["object"] ?? "").toBe(object);
});

test("a batch of messages has results in Anthropic's shape", async () => {
  const messages = (content: string) => ({ model: "local/chat", max_tokens: 5, messages: [{ role: "user", content }] });
  const lines = [
    { custom_id: "good", body: messages("Hello.") },
    { custom_id: "bad", body: messages("error:400") },
  ];
  const batch = await run(await owner(), lines, { kind: "anthropic", endpoint: "/v1/messages" });
  const results = (await resultsOf(running.opened, batch)) as unknown as { custom_id: string; result: object }[];
  expect(batch).toMatchObject({ status: "completed", counts: { succeeded: 1, failed: 1 }, failures: [] });
  expect(results.toSorted((one, other) => one.custom_id.localeCompare(other.custom_id))).toMatchObject([
    {
      custom_id: "bad",
      result: { type: "errored", error: { type: "error", error: { type: "invalid_request_error" } } },
    },
    { custom_id: "good", result: { type: "succeeded", message: { type: "message", role: "assistant" } } },
  ]);
});

const line = (more: object) => ({ ...chatLine(1), ...more }) as Line;
const body = (more: object) => ({ ...chatLine(1).body, ...more });
const refusals: readonly (readonly [
  name: string,
  lines: readonly (Line | string)[],
  problem: object,
  param?: object,
])[] = [
  ["not JSON", [chatLine(0), "{"], { code: "invalid_json_line", line: 2 }],
  ["not UTF-8", ['{"custom_id":"\ud800"}'], { line: 1 }],
  ["not an object", ["[1]"], { code: "invalid_json_line", line: 1 }],
  ["a missing field", ['{"custom_id":"a","method":"POST"}'], { code: "missing_required_parameter", param: "url" }],
  ["an unknown field", [line({ priority: 1 })], { code: "unknown_parameter", param: "priority" }],
  ["another method", [line({ method: "GET" })], { code: "invalid_method", param: "method" }],
  ["another url", [line({ url: "/v1/embeddings" })], { code: "invalid_url", param: "url" }],
  ["a custom_id twice", [chatLine(1), chatLine(1)], { code: "duplicate_custom_id", param: "custom_id", line: 2 }],
  ["an empty custom_id", [line({ custom_id: "" })], { param: "custom_id" }],
  ["half a character as custom_id", [line({ custom_id: "\ud800" })], { param: "custom_id" }],
  ["a stream", [line({ body: body({ stream: true }) })], { param: "body.stream" }],
  ["an unknown model", [line({ body: body({ model: "no/such" }) })], { code: "model_not_found", param: "body.model" }],
  [
    "an unknown model to fall back to",
    [line({ body: body({ model: undefined, models: ["local/chat", "no/such"] }) })],
    { code: "model_not_found", param: "body.model" },
  ],
  ["a bad parameter", [line({ body: body({ max_tokens: "many" }) })], { param: "body.max_tokens" }],
  ["no line", ["", "  "], { code: "empty_file", line: null }],
];

test.for(refusals)("a file with %s fails, and nothing is held or charged", async ([, lines, problem]) => {
  const of = await owner();
  const batch = await run(of, lines);
  expect(batch.status).toBe("failed");
  expect(batch.problems[0]).toMatchObject(problem);
  expect(await entriesOf(batch)).toEqual([]);
});

test("a line that is too long, and a file with too many problems", async () => {
  const long = JSON.stringify(chatLine(1, "x".repeat(26 * 1024 * 1024)));
  const many = Array.from({ length: 150 }, () => "{");
  expect((await run(await owner(), [chatLine(0), long])).problems).toMatchObject([{ code: "line_too_long", line: 2 }]);
  expect((await run(await owner(), many)).problems).toHaveLength(100);
});

test("a key that may not call the model, and a file that was deleted", async () => {
  const limited = await owner("10", { models: ["openai/*"] });
  expect((await run(limited, [chatLine(0)])).problems).toMatchObject([{ code: "model_not_allowed", line: 1 }]);
  const of = await owner();
  const gone = await run(of, [chatLine(0)], { inputFile: "file-gone" });
  expect(gone.problems).toMatchObject([{ param: "input_file_id", line: null }]);
});

test("a line that its key's limits can never let pass is refused, and those after it run", async () => {
  const of = await owner("10", { limits: { tokens_per_minute: 10_000 } });
  const large = chatLine(1, "word ".repeat(20_000));
  const batch = await run(of, [chatLine(0), large, chatLine(2)]);
  expect(batch).toMatchObject({ status: "completed", counts: { succeeded: 2, failed: 1 } });
  expect(await resultsOf(running.opened, batch, "failures")).toMatchObject([
    { custom_id: large.custom_id, response: { status_code: 429 } },
  ]);
});

test("a line that MongoDB inserts late, when its result is recorded, has no second result and no second charge", async () => {
  const { opened, service } = running;
  const of = await owner();
  const { db } = opened.mongo;
  const lines = db.collection<{ readonly _id: string; readonly [field: string]: unknown }>("batchLines");
  const created = await createBatch(opened, of, [chatLine(0), chatLine(1, "slow:9000"), chatLine(2, "slow:90000")]);
  const { _id } = created;
  const recorded = (count: number) =>
    eventually(async () => (await opened.batches.find(of.account, _id))?.counts.succeeded === count);
  await recorded(1);
  await eventually(() => running.isWaiting(9_000));
  running.advance(9_000);
  await recorded(2);
  const other = await lines.findOne({ account: of.account, line: 2 });
  const late = { line: 0, customId: chatLine(0).custom_id, byte: 0, requestId: newRequestId(), instance: "api_gone" };
  await lines.insertOne({ ...other, ...late, _id: lineIdOf(_id, 0) });
  // The instance loses the batch, and claims it again.
  const lost = { claimedBy: "api_gone.1", dueAt: new Date(0) };
  await db.collection<{ _id: string }>("batches").updateOne({ _id }, { $set: lost });
  await eventually(async () => (await lines.countDocuments({ account: of.account })) === 1);
  const batch = await laterEndOf(running, created);
  expect(batch).toMatchObject({ status: "completed", counts: { succeeded: 3, failed: 0 } });
  expect(customIds(await resultsOf(opened, batch))).toEqual(["line-0", "line-1", "line-2"]);
  expect(await entriesOf(batch)).toHaveLength(3);
  await service.settled();
});

test("lines take half of the slots of their key, and live calls get the others", async () => {
  const { opened, service } = running;
  const of = await owner("10", { limits: { concurrent_requests: 4 } });
  const { _id } = await createBatch(
    opened,
    of,
    Array.from({ length: 6 }, (_, n) => chatLine(n, "slow:60000")),
  );
  const open = () => opened.mongo.db.collection("batchLines").countDocuments({ account: of.account, batch: _id });
  await eventually(async () => (await open()) === 2);
  const live = Array.from({ length: 2 }, () => of.post("/v1/chat/completions", chatLine(0).body));
  expect((await Promise.all(live)).map(({ status }) => status)).toEqual([200, 200]);
  await eventually(async () => {
    running.advance(60_000);
    return (await opened.batches.find(of.account, _id))?.status === "completed";
  });
  await service.settled();
});

test("a failure that may pass is tried again, and any other is not", async () => {
  const { opened, advance } = running;
  const of = await owner();
  const retried = async () =>
    (await scrape(running.service.metrics.api)).value("inference_batch_lines_retried_total") ?? 0;
  const before = await retried();
  const batch = await createBatch(opened, of, [chatLine(0, "error:429"), chatLine(1, "error:400"), chatLine(2)]);
  const triesOf = () =>
    opened.mongo.db
      .collection<{ tries: number; retryAt?: Date }>("batchLines")
      .findOne({ account: of.account, line: 0 });
  for (let tries = 1; tries < 5; tries++) {
    await eventually(async () => {
      const line = await triesOf();
      // On a slow machine the next try may have begun by itself.
      return line?.retryAt !== undefined && line.tries >= tries;
    });
    advance(10 * minuteMs + 130_000);
  }
  const ended = await endOf(opened, batch);
  expect(ended).toMatchObject({ status: "completed", counts: { succeeded: 1, failed: 2 } });
  expect((await retried()) - before).toBe(4);
  const failures = await resultsOf(opened, ended, "failures");
  expect(failures.map(({ custom_id, response }) => `${custom_id} ${response?.status_code}`).toSorted()).toEqual([
    "line-0 429",
    "line-1 400",
  ]);
  expect((await entriesOf(ended)).filter(({ amount }) => BigInt(amount as bigint) < 0n)).toHaveLength(1);
});

test("an answer that comes after its line was ended elsewhere costs nothing", async () => {
  const { opened, service, isWaiting } = running;
  const of = await owner();
  const slowMs = 300_000;
  const batch = await createBatch(opened, of, [chatLine(0, `slow:${slowMs}`)]);
  const line = await eventually(async () => (await opened.batches.lines.open(of.account, batch._id))[0]);
  await eventually(() => isWaiting(slowMs));
  const ended = invalidValue(undefined, "It was ended elsewhere.").fields();
  await opened.batches.lines.storeError({ account: of.account, line: line._id, requestId: line.requestId }, ended);
  await later(running, batch, () => !isWaiting(slowMs));
  expect(await endOf(opened, batch)).toMatchObject({ counts: { succeeded: 0, failed: 1 }, costNanoUsd: 0n });
  await service.settled();
  expect(chargedBy(await entriesOf(batch))).toBe(0n);
});

test("a cancelled batch finishes what runs, the rest is cancelled, and storage has the parts that it names", async () => {
  const { opened, advance } = running;
  const of = await owner();
  const lines = Array.from({ length: 200 }, (_, n) => chatLine(n, "slow:10000"));
  const batch = await createBatch(opened, of, lines);
  // A process that died, and the batch whose id is longer.
  for (const owner of [batch._id, `${batch._id}x`]) await opened.files.batchFiles.putPart(owner, "outputs-1", "{}\n");
  await eventually(
    async () => (await opened.mongo.db.collection("batchLines").countDocuments({ account: of.account })) > 10,
  );
  const cancelling = await opened.batches.cancel(of.account, batch._id);
  expect(cancelling).toMatchObject({ status: "cancelling" });
  // The instance learns of it when it renews its claim.
  const dueAt = async () => (await opened.batches.find(of.account, batch._id))?.dueAt?.getTime();
  await eventually(async () => (await dueAt()) !== cancelling?.dueAt?.getTime());
  advance(10_000);
  const ended = await endOf(opened, batch);
  const { succeeded, cancelled } = ended.counts;
  expect([ended.status, succeeded + cancelled, succeeded > 0, cancelled > 0]).toEqual(["cancelled", 200, true, true]);
  const [results, failures] = [await resultsOf(opened, ended), await resultsOf(opened, ended, "failures")];
  expect(customIds([...results, ...failures])).toEqual(customIds(lines));
  expect(new Set(failures.map(({ error }) => error?.code))).toEqual(new Set(["batch_cancelled"]));
  expect(chargedBy(await entriesOf(ended))).toBe(ended.costNanoUsd);
  // The process that lost its claim writes late.
  const late = createPart(batch);
  late.add({ outcome: "succeeded", text: "{}\n" }, 0);
  expect(await late.record(opened, { ...batch, claimedBy: "api_late.0" }, batch.cursor)).toBeUndefined();
  const named = [...ended.outputs, ...ended.failures].map(({ key }) => key);
  expect(await opened.partsOf(batch._id)).toEqual([...named, `batch/${batch._id}x/outputs-1`].toSorted());
});

test("lines that have not begun after 24 hours expire", async () => {
  const { opened, advance } = running;
  const of = await owner("0");
  const batch = await createBatch(opened, of, [chatLine(0), chatLine(1)]);
  await eventually(async () => (await opened.batches.find(of.account, batch._id))?.paused);
  advance(dayMs + minuteMs);
  const ended = await endOf(opened, batch);
  expect(ended).toMatchObject({ status: "expired", counts: { expired: 2 }, costNanoUsd: 0n });
  expect((await resultsOf(opened, ended, "failures")).map(({ error }) => error?.code)).toEqual([
    "batch_expired",
    "batch_expired",
  ]);
});

test("at an empty balance a batch pauses with an event, and goes on by itself after a top-up", async () => {
  const { opened, service, advance } = running;
  const of = await owner("0.0001");
  const lines = Array.from({ length: 40 }, (_, n) => chatLine(n));
  const batch = await createBatch(opened, of, lines);
  const paused = await eventually(async () => {
    const found = await opened.batches.find(of.account, batch._id);
    return found?.paused !== undefined && found;
  });
  expect(paused).toMatchObject({ status: "in_progress", paused: "insufficient_balance" });
  await service.admin("POST", `/accounts/${of.account}/credits`, { amount_usd: "1", idempotency_key: "more" });
  advance(10_000);
  const ended = await endOf(opened, batch);
  expect(ended).toMatchObject({ status: "completed", counts: { succeeded: 40 } });
  expect(ended.paused).toBeUndefined();
  // Lines that were admitted and had to wait have left no trace.
  expect(await opened.mongo.db.collection("ledger").countDocuments({ account: of.account, kind: "usage" })).toBe(40);
  expect(chargedBy(await entriesOf(ended))).toBe(ended.costNanoUsd);
});

test.for(["its file is deleted", "its key is revoked"] as const)("a batch ends as cancelled once %s", async (why) => {
  const { opened, service } = running;
  const of = await owner();
  // The first one ends long before the last one begins.
  const lines = Array.from({ length: 600 }, (_, n) => chatLine(n, n === 0 ? "Hello." : "slow:5000"));
  const batch = await createBatch(opened, of, lines);
  await eventually(async () => ((await opened.batches.find(of.account, batch._id))?.counts.succeeded ?? 0) > 0);
  if (why === "its file is deleted") await opened.files.batchFiles.delete(of.account, batch.inputFile);
  else await service.admin("DELETE", `/keys/${of.keyId}`);
  const ended = await laterEndOf(running, batch);
  expect(ended.status).toBe("cancelled");
  expect(chargedBy(await entriesOf(ended))).toBe(ended.costNanoUsd);
  expect(await resultsOf(opened, ended)).toHaveLength(ended.counts.succeeded);
});

test("the lines of an account in all API instances together are at most as many as in one", async () => {
  const { opened, stores, clock, env } = running;
  await startAnotherApi(stores, { clock, env });
  const of = await owner();
  const lines = Array.from({ length: 200 }, (_, n) => chatLine(n, "slow:1000"));
  // An instance works at four batches of an account.
  const batches = await Promise.all(Array.from({ length: 6 }, () => createBatch(opened, of, lines)));
  const inFlight = async () => {
    const runs = { account: of.account, answer: { $exists: false } };
    const found = await opened.mongo.db.collection<{ instance: string }>("batchLines").find(runs).toArray();
    return [...Map.groupBy(found, ({ instance }) => instance).values()].map((each) => each.length);
  };
  const recorded = async () => {
    const found = await Promise.all(batches.map(({ _id }) => opened.batches.find(of.account, _id)));
    return found.reduce((sum, batch) => sum + (batch?.counts.succeeded ?? 0), 0);
  };
  await eventually(async () => (await inFlight()).length === 2);
  // An instance looks for the others every two seconds. Until then it has begun more lines, which end. From then on it
  // begins no more than its part.
  let before = await recorded();
  let isShared = false;
  await eventually(async () => {
    const counts = await inFlight();
    if (Math.max(...counts) > 16) {
      before = await recorded();
      isShared = false;
    }
    isShared ||= counts.length === 2 && Math.min(...counts) > 8;
    return isShared && (await recorded()) > before + 64;
  });
  for (const { _id } of batches) await opened.batches.cancel(of.account, _id);
  for (const batch of batches) expect((await endOf(opened, batch)).status).toBe("cancelled");
});
