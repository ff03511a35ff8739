import { expect, test } from "vitest";
import { wavOf } from "../support/generation-setup.ts";
import { type Customer, eventually } from "../support/service.ts";
import { entriesOf, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true", WORKER_CONCURRENCY_CHAT: "1" });

const messages = [{ role: "user", content: "Hello." }];
const async = { prefer: "respond-async" };

interface Job {
  readonly id: string;
  readonly status: string;
  readonly cost_usd: string;
  readonly [field: string]: unknown;
}

const get = (customer: Customer, path: string) =>
  fetch(`${running.service.baseUrl}${path}`, { headers: { authorization: `Bearer ${customer.key}` } });
const jobOf = async (answer: Response): Promise<Job> => (await answer.json()) as Job;

/** The job, once it has ended. */
const endedJob = (customer: Customer, id: string, query = "") =>
  eventually(async () => {
    const job = await jobOf(await get(customer, `/v1/jobs/${id}?wait=30${query}`));
    return !["queued", "in_progress"].includes(job.status) && job;
  });

const calls = [
  ["/v1/chat/completions", { model: "local/chat", messages }],
  ["/v1/messages", { model: "local/chat", messages, max_tokens: 20 }],
  ["/v1beta/models/local/chat:generateContent", { contents: [{ role: "user", parts: [{ text: "Hello." }] }] }],
  ["/v1beta/models/local/embeddings:embedContent", { content: { parts: [{ text: "Hello." }] } }],
  ["/v1/completions", { model: "local/chat", prompt: "Hello." }],
  ["/v1/embeddings", { model: "local/embeddings", input: "Hello." }],
  ["/v1/rerank", { model: "local/rerank", query: "a", documents: ["a", "b"] }],
  ["/v2/rerank", { model: "local/rerank", query: "a", documents: ["a", "b"] }],
  ["/v1/images/generations", { model: "local/image", prompt: "A lighthouse", size: "256x256" }],
  ["/v1/media/generations", { model: "local/speech", input: { text: "Hello." } }],
  ["/v1/audio/speech", { model: "local/speech", input: "Hello.", voice: "alloy" }],
] as const;

const send = (customer: Customer, method: string, path: string) =>
  fetch(`${running.service.baseUrl}${path}`, { method, headers: { authorization: `Bearer ${customer.key}` } });

test.for([
  ["json", { text: expect.any(String) as string }],
  ["verbose_json", expect.objectContaining({ text: expect.any(String) as string })],
  ["srt", null],
] as const)("the job of a transcript has its JSON as the result, and no other text: %s", async ([format, result]) => {
  const customer = await running.service.account("1");
  const form = new FormData();
  form.append("file", new Blob([wavOf(1)]), "a.wav");
  form.append("model", "local/transcription");
  form.append("response_format", format);
  const { id } = await jobOf(
    await fetch(`${running.service.baseUrl}/v1/audio/transcriptions`, {
      method: "POST",
      headers: { ...async, authorization: `Bearer ${customer.key}` },
      body: form,
    }),
  );
  const job = await endedJob(customer, id, "&include=result");
  expect(job).toMatchObject({ status: "completed", result, result_omitted: result === null });
  const answered = await (await get(customer, `/v1/jobs/${id}/result`)).text();
  expect(result === null || JSON.parse(answered)).toEqual(result === null || job["result"]);
});

test.for(calls)("a call becomes a job, and its result is the synchronous answer: %s", async ([path, body]) => {
  const { service } = running;
  const customer = await service.account("1");
  const headers = { "x-xm-metadata": '{"order":"17"}', "x-xm-tags": "a,b" };
  const accepted = await customer.post(path, body, { headers: { ...async, ...headers } });
  const job = await jobOf(accepted);
  expect([accepted.status, job]).toEqual([
    202,
    expect.objectContaining({ status: "queued", metadata: { order: "17" } }),
  ]);
  expect(accepted.headers.get("location")).toBe(`${service.baseUrl}/v1/jobs/${job.id}`);
  expect(accepted.headers.get("preference-applied")).toBe("respond-async");
  const ended = await endedJob(customer, job.id);
  expect(ended).toMatchObject({ id: job.id, object: "job", status: "completed", status_code: 200, error: null });
  const result = await get(customer, `/v1/jobs/${job.id}/result`);
  const synchronous = await customer.post(path, body, { headers });
  expect([result.status, result.headers.get("content-type")]).toEqual([200, synchronous.headers.get("content-type")]);
  expect(result.headers.get("x-xm-cost-usd")).toBe(ended.cost_usd);
  const named = synchronous.headers.has("request-id") ? job.id.replace("job_", "req_") : null;
  expect(result.headers.get("request-id")).toBe(named);
  const answer = await result.text();
  expect(answer.length).toBeGreaterThan(20);
  const shown = await jobOf(await get(customer, `/v1/jobs/${job.id}?include=result`));
  const isJson = result.headers.get("content-type")?.startsWith("application/json") === true;
  expect([shown["result"], shown["result_omitted"]]).toEqual(isJson ? [JSON.parse(answer), false] : [null, true]);
  const file = /\/media\/\w+/.exec(answer)?.[0];
  const statusOfFile = async () => file && (await fetch(`${service.baseUrl}${file}`)).status;
  expect(await statusOfFile()).toBe(file && 200);
  expect((await send(customer, "DELETE", `/v1/jobs/${job.id}`)).status).toBe(200);
  expect(await statusOfFile()).toBe(file && 404);
  const entries = await entriesOf(service, customer);
  expect(entries.map(({ request }) => request)).toMatchObject([{ tags: ["a", "b"] }, { tags: ["a", "b"] }]);
});

test.for([400, 429, 502])(
  "a job that fails costs nothing, has the error of the synchronous call, and answers it: %i",
  async (status) => {
    const customer = await running.service.account("1");
    const body = { model: "local/chat", messages: [{ role: "user", content: `error:${status}` }] };
    const { id } = await jobOf(await customer.post("/v1/chat/completions", body, { headers: async }));
    const ended = await endedJob(customer, id);
    const synchronous = await customer.post("/v1/chat/completions", body);
    const { error } = (await synchronous.json()) as { error: object };
    expect(ended).toMatchObject({ status: "failed", status_code: synchronous.status, cost_usd: "0.00", error });
    const result = await get(customer, `/v1/jobs/${id}/result`);
    expect([result.status, await result.json()]).toMatchObject([synchronous.status, { error }]);
    for (const name of ["retry-after", "x-should-retry", "content-type"])
      expect([name, result.headers.get(name)]).toEqual([name, synchronous.headers.get(name)]);
    expect(await customer.available()).toBe("1.00");
  },
);

test("a caller who waits long enough gets the answer, else the job", async () => {
  const customer = await running.service.account("1");
  const ask = (content: string, prefer: string) =>
    customer.post(
      "/v1/chat/completions",
      { model: "local/chat", messages: [{ role: "user", content }] },
      { headers: { prefer } },
    );
  const answer = await ask("Hello.", "respond-async, wait=60");
  expect([answer.status, await answer.json()]).toMatchObject([200, { object: "chat.completion" }]);
  const accepted = await ask("slow:60001", "respond-async, wait=1");
  expect(accepted.status).toBe(202);
  const { id } = await jobOf(accepted);
  await eventually(() => running.isWaiting(60_001));
  running.advance(60_001);
  expect(await endedJob(customer, id, "&include=result")).toMatchObject({
    status: "completed",
    result: { object: "chat.completion" },
  });
  const list = (await (await get(customer, "/v1/jobs?status=completed&limit=1")).json()) as {
    data: Job[];
    next: string;
  };
  expect(list).toMatchObject({ has_more: true, data: [{ id }] });
  expect(await (await get(customer, `/v1/jobs?limit=5&after=${list.next}`)).json()).toMatchObject({
    has_more: false,
    data: [{ status: "completed" }],
  });
});

test("a caller who waited gets the job as it is then, and one who leaves changes nothing", async () => {
  const customer = await running.service.account("1");
  const leaving = new AbortController();
  const ask = (content: string, signal?: AbortSignal) =>
    fetch(`${running.service.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${customer.key}`,
        "content-type": "application/json",
        prefer: "respond-async, wait=30",
      },
      body: JSON.stringify({ model: "local/chat", messages: [{ role: "user", content }] }),
      ...(signal && { signal }),
    });
  const asking = ask("slow:60003");
  await eventually(() => running.isWaiting(60_003));
  running.advance(30_000);
  const accepted = await asking;
  expect([accepted.status, await jobOf(accepted)]).toMatchObject([202, { status: "in_progress" }]);
  running.advance(30_003);

  const left = ask("slow:60004", leaving.signal);
  await eventually(() => running.isWaiting(60_004));
  leaving.abort();
  await expect(left).rejects.toThrow("aborted");
  running.advance(60_004);
  await running.service.settled();
  const { data } = (await (await get(customer, "/v1/jobs")).json()) as { data: Job[] };
  expect(data.map(({ status }) => status)).toEqual(["completed", "completed"]);
  expect(await customer.ledger("usage")).toHaveLength(2);
});

test("the same Idempotency-Key gives the same job", async () => {
  const customer = await running.service.account("1");
  const headers = { ...async, "idempotency-key": "order-17" };
  const ask = () =>
    customer.post(
      "/v1/chat/completions",
      { model: "local/chat", messages: [{ role: "user", content: "slow:60002" }] },
      { headers },
    );
  const [first, second] = [await ask(), await ask()];
  const { id } = await jobOf(first);
  expect([second.status, second.headers.get("idempotent-replayed"), await jobOf(second)]).toMatchObject([
    202,
    "true",
    { id },
  ]);
  await eventually(() => running.isWaiting(60_002));
  running.advance(60_002);
  await endedJob(customer, id);
  expect(await jobOf(await ask())).toMatchObject({ id, status: "completed" });
  await running.service.settled();
  expect(await customer.ledger("usage")).toHaveLength(1);
});

const ask = async (customer: Customer, content: string, headers: Record<string, string> = {}) =>
  jobOf(
    await customer.post(
      "/v1/chat/completions",
      { model: "local/chat", messages: [{ role: "user", content }] },
      { headers: { ...async, ...headers } },
    ),
  );

test("a job that waits is cancelled for free or expires, and one that runs is not cut off", async () => {
  const customer = await running.service.account("1");
  const job = async ({ id }: Job) => jobOf(await get(customer, `/v1/jobs/${id}`));
  const result = async ({ id }: Job) => {
    const answer = await get(customer, `/v1/jobs/${id}/result`);
    return [answer.status, ((await answer.json()) as { error: object }).error];
  };
  const first = await ask(customer, "slow:300000", { "x-xm-cancel-after": "100" });
  await eventually(async () => (await job(first)).status === "in_progress" && running.isWaiting(300_000));
  const [withdrawn, late] = [
    await ask(customer, "Hello."),
    await ask(customer, "Hello.", { "x-xm-cancel-after": "100" }),
  ];
  const cancelled = await jobOf(await send(customer, "POST", `/v1/jobs/${withdrawn.id}/cancel`));
  const never = { started_at: null, cost_usd: "0.00", completed_at: expect.any(Number) as number };
  expect(cancelled).toMatchObject({ ...never, status: "cancelled", status_code: 409, error: { code: "conflict" } });
  expect(await result(withdrawn)).toEqual([409, cancelled["error"]]);
  running.advance(150_000);
  // Its provider has begun, and cannot be stopped for free.
  expect((await job(first)).status).toBe("in_progress");
  running.advance(150_000);
  const completed = await endedJob(customer, first.id);
  expect(completed).toMatchObject({ status: "completed", error: null });
  expect(Number(completed.cost_usd)).toBeGreaterThan(0);
  const expired = await endedJob(customer, late.id);
  expect(expired).toMatchObject({ ...never, status: "expired", status_code: 504 });
  expect(await result(late)).toEqual([504, expired["error"]]);

  await running.service.settled();
  const requests = (await (await get(customer, "/v1/requests")).json()) as { data: Record<string, unknown>[] };
  const known = {
    endpoint: "/v1/chat/completions",
    model: "local/chat",
    key: expect.stringMatching(/^key_/) as string,
  };
  for (const [{ id }, status] of [
    [first, "succeeded"],
    [withdrawn, "cancelled"],
    [late, "failed"],
  ] as const)
    expect(requests.data.find((each) => each["id"] === id.replace("job_", "req_"))).toMatchObject({ ...known, status });

  const ended = await job(first);
  expect(await jobOf(await send(customer, "POST", `/v1/jobs/${first.id}/cancel`))).toEqual(ended);
  expect(await (await send(customer, "DELETE", `/v1/jobs/${first.id}`)).json()).toEqual({
    id: first.id,
    object: "job",
    deleted: true,
  });
  expect((await get(customer, `/v1/jobs/${first.id}`)).status).toBe(404);
});

test("the progress of a job is shown while it runs", async () => {
  const customer = await running.service.account("1");
  const film = { model: "local/video", input: { prompt: "slow:200000", duration: 1 } };
  const { id } = await jobOf(await customer.post("/v1/media/generations", film, { headers: async }));
  const job = async () => jobOf(await get(customer, `/v1/jobs/${id}`));
  await eventually(async () => (await job()).status === "in_progress");
  const seen: unknown[] = [];
  const untilMore = async () => {
    running.advance(40_000);
    await eventually(async () => {
      const { status, progress } = await job();
      if (status !== "in_progress" || progress === null || progress === seen.at(-1)) return false;
      return seen.push(progress) > 0;
    });
  };
  await untilMore();
  await untilMore();
  expect(seen.map((percent) => Number.isInteger(percent) && Number(percent) > 0 && Number(percent) < 100)).toEqual([
    true,
    true,
  ]);
  expect(Number(seen[1])).toBeGreaterThan(Number(seen[0]));
  running.advance(200_000);
  expect(await endedJob(customer, id)).toMatchObject({
    status: "completed",
    progress: null,
  });
  await running.service.settled();
});

const chat = (customer: Customer, headers: Record<string, string> = async, path = "/v1/chat/completions", more = {}) =>
  customer.post(path, { model: "local/chat", messages, ...more }, { headers });

test.for([
  ["prefer", { prefer: "respond-async, wait=61" }],
  ["prefer", { prefer: "respond-async, wait=soon" }],
  ["x-xm-metadata", { ...async, "x-xm-metadata": "{" }],
  ["x-xm-metadata", { ...async, "x-xm-metadata": '["a"]' }],
  ["x-xm-metadata", { ...async, "x-xm-metadata": '{"a":1}' }],
  ["x-xm-metadata", { ...async, "x-xm-metadata": '{"a":"\u00e9"}' }],
  ["x-xm-metadata", { ...async, "x-xm-metadata": '{"__proto__":"v","a":"b"}' }],
  ["x-xm-metadata", { ...async, "x-xm-metadata": JSON.stringify({ a: "x".repeat(513) }) }],
  ["x-xm-metadata", { ...async, "x-xm-metadata": JSON.stringify({ ["a".repeat(65)]: "" }) }],
  [
    "x-xm-metadata",
    { ...async, "x-xm-metadata": JSON.stringify(Object.fromEntries(Array.from({ length: 17 }, (_, n) => [n, ""]))) },
  ],
  ["x-xm-cancel-after", { ...async, "x-xm-cancel-after": "0" }],
  ["x-xm-cancel-after", { ...async, "x-xm-cancel-after": "86401" }],
  ["x-xm-cancel-after", { "x-xm-cancel-after": "60" }],
  ["x-xm-webhook", { "x-xm-webhook": "https://example.com" }],
  ["x-xm-tags", { ...async, "x-xm-tags": "a,,b" }],
  ["x-xm-tags", { "x-xm-tags": "" }],
  ["x-xm-tags", { "x-xm-tags": "t".repeat(65) }],
  ["x-xm-tags", { "x-xm-tags": "caf\u00e9" }],
  ["x-xm-tags", { "x-xm-tags": Array.from({ length: 11 }, (_, n) => n).join() }],
] as const)("a request for a job that is not valid names the header: %s, %j", async ([param, headers]) => {
  const customer = await running.service.account("1");
  const answer = await chat(customer, headers);
  const { error } = (await answer.json()) as { error: Record<string, string> };
  expect([answer.status, error]).toMatchObject([400, { code: "invalid_value", param }]);
  // The header is named once.
  expect(error["message"]?.split(param)).toHaveLength(2);
  expect(await customer.available()).toBe("1.00");
});

test("a stream is no job, and preferences that nobody knows are ignored", async () => {
  const customer = await running.service.account("1");
  const stream = await chat(customer, async, undefined, { stream: true });
  expect([stream.status, await stream.json()]).toMatchObject([400, { error: { param: "stream" } }]);
  const speech = { model: "local/speech", input: "Hello.", voice: "alloy", stream_format: "sse" };
  const spoken = await customer.post("/v1/audio/speech", speech, { headers: async });
  expect([spoken.status, await spoken.json()]).toMatchObject([400, { error: { param: "stream_format" } }]);
  const answered = await chat(customer, { prefer: "handling=lenient, wait=5" });
  expect([answered.status, answered.headers.get("preference-applied")]).toEqual([200, null]);
  for (const [query, status] of [
    ["async=1", 202],
    ["async=true", 202],
    ["async=0", 200],
    ["async=yes", 400],
    ["async=1&async=0", 400],
  ] as const)
    expect([query, (await chat(customer, {}, `/v1/chat/completions?${query}`)).status]).toEqual([query, status]);
  expect((await chat(customer, { prefer: 'Respond-Async; foo="a", wait="0"' })).status).toBe(202);
});

test("the limits of a call are checked before the job is accepted", async () => {
  const poor = await running.service.account("0");
  expect((await chat(poor)).status).toBe(402);
  const unknown = await (await running.service.account("1")).post(
    "/v1/chat/completions",
    { model: "local/none", messages },
    { headers: async },
  );
  expect(unknown.status).toBe(404);
});

test("another account knows nothing of a job", async () => {
  const [owner, other] = [await running.service.account("1"), await running.service.account("1")];
  const { id } = await jobOf(await chat(owner));
  await endedJob(owner, id);
  for (const path of [id, `${id}/result`, "job_unknown", id.replace("job_", "req_")])
    expect([path, (await get(other, `/v1/jobs/${path}`)).status]).toEqual([path, 404]);
  expect(await (await get(other, "/v1/jobs")).json()).toMatchObject({ data: [], has_more: false });
  const after = await get(other, `/v1/jobs?after=${id}`);
  const message = expect.stringContaining(`'${id}'`) as string;
  expect([after.status, await after.json()]).toMatchObject([400, { error: { param: "after", message } }]);
});

test("the routes of jobs accept the credentials of every format", async () => {
  const customer = await running.service.account("1");
  const { id } = await jobOf(await chat(customer));
  await endedJob(customer, id);
  for (const headers of [{ "x-api-key": customer.key }, { "x-goog-api-key": customer.key }, undefined])
    for (const [method, path] of [
      ["GET", "/v1/jobs"],
      ["GET", `/v1/jobs/${id}`],
      ["GET", `/v1/jobs/${id}/result`],
      ["POST", `/v1/jobs/${id}/cancel`],
    ] as const) {
      const url = `${running.service.baseUrl}${path}${headers ? "" : `?key=${customer.key}`}`;
      expect([path, (await fetch(url, { method, ...(headers && { headers }) })).status]).toEqual([path, 200]);
    }
});

test("a result is available for 24 hours, and then expired", async () => {
  const customer = await running.service.account("1");
  const { id } = await jobOf(await chat(customer));
  expect(await endedJob(customer, id)).toMatchObject({ status: "completed" });
  running.advance(24 * 3_600_000 - 60_000);
  expect((await get(customer, `/v1/jobs/${id}/result`)).status).toBe(200);
  running.advance(61_000);
  const expired = await get(customer, `/v1/jobs/${id}/result`);
  expect([expired.status, await expired.json()]).toMatchObject([410, { error: { code: "job_expired" } }]);
});
