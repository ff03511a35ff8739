import { describe, expect, test } from "vitest";
import { mockError } from "../support/mock-openai.ts";
import type { Customer } from "../support/service.ts";
import { asking, entryOf, localModel, nanoUsd, providerModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ NATIVE_FORMATS_ANY_MODEL: "true" });

const gemini = (model: string, action: string) => `/v1beta/models/${model}:${action}`;
const contents = [{ role: "user", parts: [{ text: "Hello there" }] }];
const responses = (model: string) => ({ model, input: "Hello there" });

/** `inUsage` means that the body's usage has the cost as well. */
type Row = readonly [path: string, body: object, inUsage: boolean];

/** One model per route whose response passes through, and one whose response is converted. */
const rows: readonly Row[] = [
  ...[localModel, providerModel].flatMap((model): Row[] => [
    ["/v1/chat/completions", asking(model), true],
    ["/v1/completions", { model, prompt: "Hello there" }, true],
    ["/v1/responses", responses(model), true],
    ["/v1/messages", { ...asking(model), max_tokens: 20 }, false],
    [gemini(model, "generateContent"), { contents }, false],
  ]),
  ["/v1/embeddings", { model: "local/embeddings", input: "Hello there" }, false],
  [gemini("local/embeddings", "embedContent"), { content: { parts: [{ text: "Hello" }] } }, false],
  ["/v1/rerank", { model: "local/rerank", query: "a", documents: ["a", "b"] }, false],
  ["/v1/images/generations", { model: "local/image", prompt: "A fox" }, false],
  ["/v1/audio/speech", { model: "local/speech", input: "Hello.", stream_format: "audio" }, false],
];

const costsIn = (text: string): string[] => [...text.matchAll(/"cost_usd":"([^"]*)"/g)].map(([, cost = ""]) => cost);

/** The charge of a call in the ledger, the cost in its header, and all costs in its body. */
async function costsOf(response: Response) {
  const text = await response.text();
  await running.service.settled();
  const entry = await entryOf(running.service, response.headers.get("x-request-id"));
  const header = response.headers.get("x-xm-cost-usd");
  return { text, entry, charged: -nanoUsd(entry.amount_usd), header, inBody: costsIn(text).map(nanoUsd) };
}

const isText = (path: string): boolean => /completions|responses|messages|generateContent/.test(path);

async function endOf(customer: Customer, { headers }: Response) {
  const { key } = customer;
  const url = `${running.service.baseUrl}/v1/generation?id=${headers.get("x-request-id")}`;
  const found = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  const { data } = (await found.json()) as { data: Record<"streamed" | "finish_reason", unknown> };
  return { streamed: data.streamed, finish_reason: data.finish_reason };
}

describe.each(rows)("%s %o", (path, body, inUsage) => {
  test("the header, the body and the ledger say the same cost", async () => {
    const customer = await running.service.account("5");
    const response = await customer.post(path, body);
    expect(response.status).toBe(200);
    const { charged, header, inBody } = await costsOf(response);
    const { streamed, finish_reason } = await endOf(customer, response);
    expect(streamed).toBe(path === "/v1/audio/speech");
    expect(isText(path) ? ["stop", "length"] : [null]).toContain(finish_reason);
    // Speech is sent while it is generated.
    expect(header === null ? "a stream" : nanoUsd(header)).toBe(path === "/v1/audio/speech" ? "a stream" : charged);
    expect(inBody).toEqual(inUsage ? [charged] : []);
    expect(charged).toBeGreaterThan(0n);
  });
});

const streams = rows.filter(([path]) => isText(path));

test.each(streams)("a stream of %s %o has the cost in its last usage alone", async (path, body, inUsage) => {
  const customer = await running.service.account("5");
  const streamed = path.replace(":generateContent", ":streamGenerateContent?alt=sse");
  const response = await customer.post(streamed, path === streamed ? { ...body, stream: true } : body);
  const { text, charged, header, inBody } = await costsOf(response);
  expect(await endOf(customer, response)).toEqual({
    streamed: true,
    finish_reason: expect.stringMatching(/^(stop|length)$/),
  });
  expect(header).toBeNull();
  expect(inBody).toEqual(inUsage ? [charged] : []);
  const last = text.split("\n").findLast((line) => line.startsWith("data: {")) ?? "";
  expect(costsIn(last)).toHaveLength(inUsage ? 1 : 0);
});

test.each(["/v1/chat/completions", "/v1/responses"])("%s: usage that is estimated has its cost", async (path) => {
  const customer = await running.service.account("5");
  running.provider.always({ usage: false });
  for (const stream of [false, true]) {
    const body = { ...asking(providerModel), ...responses(providerModel), stream };
    const { messages, input, ...common } = body;
    const { charged, entry, inBody } = await costsOf(
      await customer.post(path, { ...common, ...(path.includes("chat") ? { messages } : { input }) }),
    );
    expect(entry.request).toMatchObject({ estimated: true });
    expect(inBody).toEqual([charged]);
  }
});

test("a call that cost more than its hold shows the charged amount", async () => {
  const customer = await running.service.account("5");
  const usage = { prompt_tokens: 10, completion_tokens: 1_000_000, total_tokens: 1_000_010 };
  for (const stream of [false, true]) {
    running.provider.respond({ usage });
    const { charged, entry, inBody } = await costsOf(
      await customer.post("/v1/chat/completions", { ...asking(providerModel), max_tokens: 10, stream }),
    );
    expect(nanoUsd((entry.request as unknown as { shortfall_usd: string }).shortfall_usd)).toBeGreaterThan(0n);
    expect(inBody).toEqual([charged]);
  }
});

test("an answer that is sent again, and a response that is stored, are the same", async () => {
  const customer = await running.service.account("5");
  const headers = { "idempotency-key": "one" };
  for (const [path, body] of [
    ["/v1/chat/completions", asking(providerModel)],
    ["/v1/responses", responses(providerModel)],
  ] as const) {
    const keyed = { headers: { "idempotency-key": `${headers["idempotency-key"]}${path}` } };
    const first = await costsOf(await customer.post(path, body, keyed));
    const again = await customer.post(path, body, keyed);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(await costsOf(again)).toEqual(first);
  }
  for (const model of [localModel, providerModel]) {
    const { text } = await costsOf(await customer.post("/v1/responses", responses(model)));
    const { id, usage } = JSON.parse(text) as { id: string; usage: { cost_usd: string } };
    expect(await customer.openai.responses.retrieve(id)).toMatchObject({ usage });
    const stream = await customer.openai.responses.create({ ...responses(model), stream: true });
    const last = (await Array.fromAsync(stream)).at(-1);
    if (last?.type !== "response.completed") throw new Error(last?.type);
    expect(last.response.usage).toMatchObject({ cost_usd: expect.stringMatching(/^0[.]0+[1-9]/) });
    expect((await customer.openai.responses.retrieve(last.response.id)).usage).toEqual(last.response.usage);
  }
});

test("a call that failed has no cost", async () => {
  const customer = await running.service.account("5");
  for (const path of ["/v1/chat/completions", "/v1/responses"]) {
    running.provider.respond(mockError(400, "no"));
    const body = { ...(path.includes("chat") ? asking(providerModel) : responses(providerModel)) };
    const response = await customer.post(path, body);
    expect(response.status).toBe(400);
    expect(response.headers.get("x-xm-cost-usd")).toBeNull();
    expect(costsIn(await response.text())).toEqual([]);
  }
});
