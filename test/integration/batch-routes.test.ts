import { expect, test } from "vitest";
import { batchStatuses, isEnded } from "../../shared/batches/index.ts";
import { keyOf, managedAccount } from "../support/account-caller.ts";
import { openBatches } from "../support/batches-setup.ts";
import { eventually } from "../support/service.ts";
import { refusalOf, serviceOfFile } from "../support/service-setup.ts";
import { insertBatches } from "../support/stored-batches.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true", BATCH_CONCURRENCY_PER_ACCOUNT: "2" });

const line = { model: "local/chat", messages: [{ role: "user", content: "Hello." }] };
const message = { ...line, max_tokens: 20 };
const inline = (more: object = {}) => ({
  endpoint: "/v1/chat/completions",
  completion_window: "24h",
  requests: [{ custom_id: "1", body: line }],
  ...more,
});
const without = (name: string, from: object) =>
  Object.fromEntries(Object.entries(from).filter(([key]) => key !== name));
const withFile = (id: unknown, more: object = {}) => ({ ...without("requests", inline(more)), input_file_id: id });
const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`n${n}`, "x"]));
const life = (seconds: number, anchor = "created_at") => ({ output_expires_after: { anchor, seconds } });

interface Shown {
  readonly id: string;
  readonly [field: string]: unknown;
}
interface Page {
  readonly data: readonly Shown[];
  readonly [field: string]: unknown;
}

const refusedBatches: readonly (readonly [param: string, body: object, headers?: Record<string, string>])[] = [
  ["input_file_id", without("requests", inline())],
  ["requests", inline({ input_file_id: "file-none" })],
  ["requests", inline({ requests: [] })],
  ["requests[0].body", inline({ requests: [{ custom_id: "1", body: "x" }] })],
  ["requests[0].custom_id", inline({ requests: [{ body: line }] })],
  ["requests[0].method", inline({ requests: [{ custom_id: "1", body: line, method: "POST" }] })],
  ["endpoint", inline({ endpoint: "/v1/messages" })],
  ["endpoint", without("endpoint", inline())],
  ["completion_window", inline({ completion_window: "48h" })],
  ["completion_window", without("completion_window", inline())],
  ["metadata", inline({ metadata: pairs(17) })],
  ["metadata.n", inline({ metadata: { n: "x".repeat(513) } })],
  ["metadata.n", inline({ metadata: { n: 1 } })],
  [`metadata.${"n".repeat(65)}`, inline({ metadata: { ["n".repeat(65)]: "x" } })],
  ["output_expires_after.seconds", inline(life(3_599))],
  ["output_expires_after.seconds", inline(life(2_592_001))],
  ["output_expires_after.anchor", inline(life(3_600, "completed_at"))],
  ["window", inline({ window: 1 })],
  ["x-xm-webhook", inline(), { "x-xm-webhook": "we_none" }],
  ["x-xm-tags", inline(), { "x-xm-tags": "a,,b" }],
];

test.for(refusedBatches)("a batch that is refused names the field: %s", async ([param, body, headers = {}]) => {
  const { account, ask } = await managedAccount(running.service);
  expect(await refusalOf(await account.post("/v1/batches", body, { headers }))).toMatchObject({
    status: 400,
    error: { code: "invalid_value", param, message: expect.stringContaining(param) },
  });
  expect([(await ask("GET", "/batches")).body.data, (await ask("GET", "/files")).body.data ?? []]).toEqual([[], []]);
});

const requests = (...params: readonly object[]) => ({
  requests: params.map((each, at) => ({ custom_id: `r-${at}`, params: each })),
});

const refusedMessages: readonly (readonly [field: string, body: object, headers?: Record<string, string>])[] = [
  ["requests", {}],
  ["requests", { requests: [] }],
  ["requests[0].params", { requests: [{ custom_id: "a" }] }],
  ["requests[0].custom_id", { requests: [{ custom_id: "a b", params: message }] }],
  ["requests[0].custom_id", { requests: [{ custom_id: "x".repeat(65), params: message }] }],
  ["requests[1].custom_id", { requests: ["a", "a"].map((id) => ({ custom_id: id, params: message })) }],
  ["requests[1].params.max_tokens", requests(message, without("max_tokens", message))],
  ["requests[0].params.max_tokens", requests({ ...message, max_tokens: 0 })],
  ["requests[0].params.stream", requests({ ...message, stream: true })],
  ["requests[0].params.messages", requests(without("messages", message))],
  ["metadata", { ...requests(message), metadata: {} }],
  ["x-xm-webhook", requests(message), { "x-xm-webhook": "we_none" }],
];

/** Anthropic's errors name the field in the message. */
const messageError = async (response: Response) => {
  const body = (await response.json()) as { error: { type: string; message: string }; request_id: string };
  expect(body).toMatchObject({ type: "error", request_id: response.headers.get("request-id") });
  return { status: response.status, ...body.error };
};

test.for(refusedMessages)(
  "a message batch that is refused names the field: %s",
  async ([field, body, headers = {}]) => {
    const customer = await running.service.account("1");
    expect(await messageError(await customer.post("/v1/messages/batches", body, { headers }))).toMatchObject({
      status: 400,
      type: "invalid_request_error",
      message: expect.stringMatching(new RegExp(`^${RegExp.escape(field)}\\b`)),
    });
  },
);

test("a message batch of too many requests, and a body that is too large, are a 413", async () => {
  const customer = await running.service.account("1");
  const many = { requests: Array.from({ length: 10_001 }, (_, n) => ({ custom_id: `${n}`, params: {} })) };
  const large = requests({ ...message, system: "x".repeat(25 * 1024 * 1024) });
  for (const body of [many, large])
    expect(await messageError(await customer.post("/v1/messages/batches", body))).toMatchObject({
      status: 413,
      type: "invalid_request_error",
    });
});

test("an input file has to be the account's own, to live, and to have the purpose `batch`", async () => {
  const [mine, other] = [await running.service.account("1"), await running.service.account("1")];
  const upload = async (customer: typeof mine) => {
    const file = new File([JSON.stringify({ custom_id: "1" })], "in.jsonl");
    return (await customer.openai.files.create({ file, purpose: "batch" })).id;
  };
  const [own, theirs] = [await upload(mine), await upload(other)];
  const create = (id: string) => mine.post("/v1/batches", withFile(id));
  for (const id of ["file-none", theirs])
    expect(await refusalOf(await create(id))).toMatchObject({
      status: 404,
      error: { code: "file_not_found", param: "input_file_id" },
    });
  const accepted = (await (await create(own)).json()) as Shown;
  expect(accepted).toMatchObject({
    object: "batch",
    status: "validating",
    input_file_id: own,
    request_counts: { total: 0 },
  });
  running.advance(30 * 86_400_000);
  expect(await refusalOf(await create(own))).toMatchObject({
    status: 410,
    error: { code: "batch_file_expired", param: "input_file_id" },
  });
});

test("a key that may not infer creates no batch, but sees those of its account", async () => {
  const { service } = running;
  const { account, post } = await managedAccount(service);
  const reader = await keyOf(service, account.id, { scopes: ["manage"] });
  expect((await post("/v1/batches", inline())).status).toBe(200);
  expect(await refusalOf(await reader.post("/v1/batches", inline()))).toMatchObject({
    status: 403,
    error: { code: "insufficient_scope" },
  });
  expect((await reader.post("/v1/messages/batches", requests(message))).status).toBe(403);
  expect((await reader.ask("GET", "/batches")).body.data).toHaveLength(1);
});

const repeats: readonly (readonly [path: string, body: (file: string) => object, other: object])[] = [
  ["/v1/batches", () => inline(), inline({ metadata: { a: "b" } })],
  ["/v1/batches", (file) => withFile(file), withFile("file-none")],
  ["/v1/messages/batches", () => requests(message), requests(message, message)],
];

test.for(repeats)(
  "%s: the same Idempotency-Key and body give one batch for 24 hours",
  async ([path, bodyOf, other]) => {
    const { service, advance } = running;
    const account = await service.account("1");
    // No line of this key runs, so the whole balance stays available.
    const { ask, post } = await keyOf(service, account.id, { models: ["none/*"] });
    const file = await account.openai.files.create({ file: new File(["{}"], "in.jsonl"), purpose: "batch" });
    const body = bodyOf(file.id);
    const create = (key = "nightly", sent = body, as = post) => as(path, sent, { headers: { "idempotency-key": key } });
    const idOf = async (response: Response) => [response.status, ((await response.json()) as Shown).id];
    const answers = await Promise.all(Array.from({ length: 6 }, () => create()));
    const [first, ...rest] = answers.filter(({ headers }) => headers.get("idempotent-replayed") !== "true");
    const requestIds = new Set(answers.map(({ headers }) => headers.get("x-request-id")));
    expect([rest, [...requestIds]]).toEqual([[], [first?.headers.get("x-request-id")]]);
    const ids = await Promise.all(answers.map(idOf));
    const [, id] = ids[0] ?? [];
    expect(ids).toEqual(answers.map(() => [200, id]));
    const { data } = (await ask("GET", path.slice(3))).body;
    expect(data.map((each) => each.id)).toEqual([id]);
    // The losers of the race have removed their input.
    const inputs = (await account.openai.files.list()).data.map((each) => each.id);
    expect(inputs).toHaveLength("input_file_id" in body ? 1 : 2);

    const refused = await create("nightly", other);
    expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([409, "false"]);
    for (const key of ["", "k".repeat(256)]) expect((await create(key)).status).toBe(400);
    expect((await idOf(await create("other")))[1]).not.toBe(id);
    const theirs = path === "/v1/batches" ? inline() : body;
    expect((await idOf(await create("nightly", theirs, (await managedAccount(service)).post)))[1]).not.toBe(id);

    // What created it does not have to be there any more.
    for (const input of inputs) await eventually(async () => (await ask("DELETE", `/files/${input}`)).status === 200);
    await service.admin("POST", `/accounts/${account.id}/credits`, { amount_usd: "-1", idempotency_key: "all" });
    expect(await idOf(await create())).toEqual([200, id]);
    advance(86_400_000);
    expect((await create()).status).toBe("input_file_id" in body ? 404 : 402);
  },
);

test("an account without a balance creates no batch, except of free calls", async () => {
  const { account, ask } = await managedAccount(running.service, "0");
  expect(await refusalOf(await account.post("/v1/batches", inline()))).toMatchObject({
    status: 402,
    error: { code: "insufficient_balance", param: null },
  });
  const refused = await account.post("/v1/messages/batches", requests(message));
  expect([refused.headers.get("x-should-retry"), await messageError(refused)]).toMatchObject([
    "false",
    { status: 402, type: "billing_error" },
  ]);
  expect((await ask("GET", "/files")).body.data).toEqual([]);
  const free = { endpoint: "/v1/moderations", requests: [{ custom_id: "1", body: { input: "Hello." } }] };
  expect((await account.post("/v1/batches", inline(free))).status).toBe(200);
});

test("the requests of a body are the lines of a file", async () => {
  const { account, ask } = await managedAccount(running.service);
  const metadata = { order: "17" };
  const headers = { "x-xm-tags": "a" };
  const created = await account.post("/v1/batches", inline({ metadata, ...life(3_600) }), { headers });
  const batch = (await created.json()) as Shown;
  expect([created.status, batch]).toMatchObject([200, { metadata, endpoint: "/v1/chat/completions", errors: null }]);
  const content = await account.openai.files.content(batch["input_file_id"] as string);
  expect(JSON.parse(await content.text())).toEqual({
    custom_id: "1",
    method: "POST",
    url: "/v1/chat/completions",
    body: line,
  });
  expect((await ask("GET", `/batches/${batch.id}`)).body).toMatchObject({ id: batch.id, metadata });
  const tagged = await eventually(async () => {
    const { data } = (await ask("GET", "/requests?tag=a")).body as unknown as Page;
    return data.length > 0 && data;
  });
  expect(tagged).toMatchObject([{ tags: ["a"], endpoint: "/v1/chat/completions" }]);
});

const day = (n: number) => new Date(Date.UTC(2026, 0, n));

test("lists are newest first, in pages, and have the batches of one interface and one account", async () => {
  const { service, stores } = running;
  const [mine, other] = [await managedAccount(service), await managedAccount(service)];
  const insert = (kind: "openai" | "anthropic", count: number) =>
    insertBatches(
      stores,
      Array.from({ length: count }, (_, n) => ({
        account: mine.account.id,
        kind,
        status: "completed" as const,
        createdAt: day(count - n),
      })),
    );
  const [batches, messages] = [await insert("openai", 25), await insert("anthropic", 5)];
  const page = async (path: string) => (await mine.ask("GET", path)).body as unknown as Page;
  const idsOf = ({ data }: Page) => data.map(({ id }) => id);

  const first = await page("/batches");
  expect(first).toMatchObject({ object: "list", first_id: batches[0], last_id: batches[19], has_more: true });
  const second = await page(`/batches?after=${String(first["last_id"])}`);
  expect(second).toMatchObject({ first_id: batches[20], last_id: batches[24], has_more: false });
  expect([...idsOf(first), ...idsOf(second)]).toEqual(batches);
  expect(await page(`/batches?after=${batches[24]}`)).toEqual({
    object: "list",
    data: [],
    first_id: null,
    last_id: null,
    has_more: false,
  });

  const list = "/messages/batches?limit=2";
  const pages = {
    "": [[0, 2], true],
    [`&after_id=${messages[1]}`]: [[2, 4], true],
    [`&after_id=${messages[3]}`]: [[4, 5], false],
    [`&before_id=${messages[3]}`]: [[1, 3], true],
    [`&before_id=${messages[2]}`]: [[0, 2], false],
    [`&before_id=${messages[0]}`]: [[0, 0], false],
  } as const;
  for (const [query, [[from, to], more]] of Object.entries(pages)) {
    const ids = messages.slice(from, to);
    const shown = await page(list + query);
    expect([query, idsOf(shown)]).toEqual([query, ids]);
    expect(shown).toMatchObject({ has_more: more, first_id: ids[0] ?? null, last_id: ids.at(-1) ?? null });
  }
  for (const [path, field] of [
    [`/batches?after=${messages[0]}`, "after"],
    [`/messages/batches?after_id=${batches[0]}`, "after_id"],
    ["/messages/batches?before_id=none", "before_id"],
    [`/messages/batches?before_id=${messages[0]}&after_id=${messages[0]}`, "before_id"],
    ["/messages/batches?limit=1001", "limit"],
    ["/batches?limit=101", "limit"],
  ] as const) {
    const { status, body } = await mine.ask("GET", path);
    expect([path, status, body.error.message]).toEqual([path, 400, expect.stringContaining(field)]);
  }
  for (const path of ["/batches", "/messages/batches"]) expect((await other.ask("GET", path)).body.data).toEqual([]);
});

test("each batch is shown, cancelled and deleted as its state allows", async () => {
  const { service, stores } = running;
  const { account, ask, key } = await managedAccount(service);
  const headers = { "x-api-key": key };
  for (const status of batchStatuses) {
    const [batch = "", messages = ""] = await insertBatches(
      stores,
      (["openai", "anthropic"] as const).map((kind) => ({ account: account.id, kind, status })),
    );
    expect((await ask("GET", `/batches/${batch}`)).body).toMatchObject({
      status,
      [status === "validating" ? "created_at" : `${status}_at`]: expect.any(Number),
      request_counts: { total: 3, completed: 2, failed: 1 },
      usage: { input_tokens: 30, output_tokens: 12, total_tokens: 42 },
      x_cost_usd: "0.042",
      x_estimated_max_cost_usd: "0.10",
    });
    const ended = isEnded({ status });
    const shown = (await ask("GET", `/messages/batches/${messages}`)).body;
    expect(shown).toMatchObject({
      processing_status: ended ? "ended" : status === "cancelling" ? "canceling" : "in_progress",
      request_counts: { processing: ended ? 0 : 3, succeeded: ended ? 2 : 0, errored: ended ? 1 : 0 },
      results_url: ended ? `http://127.0.0.1/v1/messages/batches/${messages}/results` : null,
    });
    const results = await fetch(`${service.baseUrl}/v1/messages/batches/${messages}/results`, { headers });
    expect([status, results.status, results.headers.get("content-type")]).toEqual([
      status,
      ...(ended ? [200, "application/x-jsonl"] : [409, "application/json; charset=utf-8"]),
    ]);

    const canCancel = ["validating", "in_progress", "cancelling", "finalizing", "cancelled"].includes(status);
    for (const path of [`/batches/${batch}`, `/messages/batches/${messages}`])
      expect([status, path, (await ask("POST", `${path}/cancel`)).status]).toEqual([
        status,
        path,
        canCancel ? 200 : 409,
      ]);
    const isCancelled = ["validating", "in_progress", "cancelling"].includes(status);
    expect((await ask("GET", `/batches/${batch}`)).body).toMatchObject({ status: isCancelled ? "cancelling" : status });

    const deleted = await ask("DELETE", `/messages/batches/${messages}`);
    expect([status, deleted.status, deleted.body]).toMatchObject([
      status,
      ...(ended
        ? [200, { id: messages, type: "message_batch_deleted" }]
        : [409, { error: { type: "invalid_request_error" } }]),
    ]);
    expect((await ask("GET", `/messages/batches/${messages}`)).status).toBe(ended ? 404 : 200);
  }
});

test("results are sent in their parts' order, and deleted with their batch", async () => {
  const { service, stores } = running;
  const { account, key, ask } = await managedAccount(service);
  const { files } = await openBatches(stores);
  const texts = [`{"custom_id":"${"a".repeat(200_000)}"}\n`, '{"custom_id":"b"}\n', '{"custom_id":"c"}\n'];
  const outputs = await Promise.all(texts.map((text, at) => files.batchFiles.putPart(account.id, `${at}`, text)));
  // Other tests of this file move the service's time by months.
  const file = { account: account.id, requestId: "batch_1", filename: "output.jsonl", lifetimeMs: 365 * 86_400_000 };
  const { id: outputFile } = await files.batchFiles.createOutput({ ...file, parts: outputs });
  const [id = ""] = await insertBatches(stores, [
    { account: account.id, kind: "anthropic", status: "completed", outputs, outputFile },
  ]);
  const read = (method = "GET") =>
    fetch(`${service.baseUrl}/v1/messages/batches/${id}/results`, { method, headers: { "x-api-key": key } });
  const whole = await read();
  expect(whole.headers.get("content-length")).toBe(String(texts.join("").length));
  expect((await whole.text()) === texts.join("")).toBe(true);
  expect([(await read("HEAD")).status, (await read("POST")).status]).toEqual([200, 405]);
  expect((await ask("GET", `/files/${outputFile}`)).status).toBe(200);
  expect((await ask("DELETE", `/messages/batches/${id}`)).status).toBe(200);
  expect((await ask("GET", `/files/${outputFile}`)).status).toBe(404);
  const [first] = outputs;
  await expect(Array.fromAsync(files.batchFiles.openParts(id, first ? [first] : []))).rejects.toThrow("has expired");
});

test("the batches of other accounts and of the other interface are unknown", async () => {
  const { service, stores } = running;
  const [mine, other] = [await managedAccount(service), await managedAccount(service)];
  const [batch, messages, theirs, theirMessages] = await insertBatches(
    stores,
    [mine, other].flatMap(({ account }) =>
      (["openai", "anthropic"] as const).map((kind) => ({ account: account.id, kind, status: "completed" as const })),
    ),
  );
  const unknown = [
    ...[theirs, messages, "none"].flatMap((id) => [
      ["GET", `/batches/${id}`],
      ["POST", `/batches/${id}/cancel`],
    ]),
    ...[theirMessages, batch, "none"].flatMap((id) => [
      ["GET", `/messages/batches/${id}`],
      ["GET", `/messages/batches/${id}/results`],
      ["POST", `/messages/batches/${id}/cancel`],
      ["DELETE", `/messages/batches/${id}`],
    ]),
  ] as const;
  for (const [method = "", path = ""] of unknown) {
    const { status, body } = await mine.ask(method, path);
    const error = path.startsWith("/messages") ? { type: "not_found_error" } : { code: "not_found" };
    expect([method, path, status, body]).toMatchObject([method, path, 404, { error }]);
  }
});
