import { expect, test } from "vitest";
import { availableUsd } from "../support/chaos-setup.ts";
import { scrape } from "../support/metrics.ts";
import { type Customer, eventually, type Service } from "../support/service.ts";
import { asking, noCapacity, providerModel, refusal, refusalOf, startWithProvider } from "../support/service-setup.ts";

/** Long responses take memory of their account's share, and no more: in the API until they were read, in a worker. */

const mebi = 1024 * 1024;
/** Larger than the buffers of both ends of a connection. */
const textBytes = 16 * mebi;
const text = "x".repeat(textBytes);
const chat = "/v1/chat/completions";

const heldBytes = async ({ metrics }: Service, budget: "response" | "payload" = "response") =>
  (await scrape(budget === "response" ? metrics.api : metrics.worker)).value("inference_memory_budget_used_bytes", {
    budget,
  }) ?? 0;
const refused = refusal({ ...noCapacity, message: /^Too many large responses/ });

test("unread replays of one stored response are refused before they are decoded, until it was read", async () => {
  const { service, provider } = await startWithProvider({ RESPONSE_BUDGET_BYTES: String(4.5 * textBytes) });
  const [customer, other] = [await service.account("1.00"), await service.account("1.00")];
  provider.respond({ text });
  const ask = (by: Customer) => by.post(chat, asking(providerModel), { headers: { "idempotency-key": "large" } });
  const answer = await (await ask(customer)).text();
  await eventually(async () => (await heldBytes(service)) === 0);

  const unread = await ask(customer);
  expect(unread.headers.get("idempotent-replayed")).toBe("true");
  for (let n = 0; n < 3; n++) expect(await refusalOf(await ask(customer))).toEqual(refused);
  expect(await heldBytes(service)).toBeLessThan(2.2 * textBytes);
  provider.respond({ text });
  expect((await ask(other)).status).toBe(200);
  expect(await unread.text()).toBe(answer);
  await eventually(async () => (await ask(customer)).status === 200);
  expect(await customer.ledger("usage")).toHaveLength(1);
});

test("a long response without room cuts off those of its account that nobody reads, which are charged", async () => {
  const { service, provider } = await startWithProvider({ RESPONSE_BUDGET_BYTES: String(2.5 * textBytes) });
  const customer = await service.account("1.00");
  provider.always({ text });
  const responses = [];
  for (let n = 0; n < 3; n++) responses.push(await customer.post(chat, asking(providerModel)));
  const texts = await Promise.allSettled(responses.map((response) => response.text()));
  expect(texts.map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
  await eventually(async () => (await customer.ledger("usage")).length === 3);
  expect(await customer.ledger("refund")).toEqual([]);
  await eventually(async () => (await heldBytes(service)) === 0);
});

test("a response that is larger than its account's share is refunded, a free one refused", async () => {
  const { service, provider } = await startWithProvider({ RESPONSE_BUDGET_BYTES: "150000" });
  const customer = await service.account("1.00");
  provider.respond({ text: "x".repeat(100_000) });
  const message = /no memory for a response of this size right now; nothing was charged/;
  const tooLarge = refusal({ ...noCapacity, message });
  expect(await refusalOf(await customer.post(chat, asking(providerModel)))).toEqual(tooLarge);
  await eventually(async () => (await availableUsd(service, customer)) === "1.00");
  expect((await customer.post(chat, asking(providerModel))).status).toBe(200);
  const moderation = { model: "local/moderation", input: Array(200).fill("Hello") };
  expect(await refusalOf(await customer.post("/v1/moderations", moderation))).toEqual(tooLarge);
});

test("a worker refuses what an account has no memory for: embeddings before the provider is paid for them", async () => {
  const { service, provider } = await startWithProvider({ WORKER_PAYLOAD_BUDGET_BYTES: String(40 * mebi) });
  const customer = await service.account("1.00");
  const embed = (fields: object) =>
    customer.post("/v1/embeddings", { model: "openai/text-embedding-3-small", input: Array(256).fill("a"), ...fields });
  const message = /not enough memory for a response of this size right now; nothing was charged/;
  const tooLarge = refusal({ ...noCapacity, message });
  // A call is answered a moment before its memory is free.
  const isFree = () => eventually(async () => (await heldBytes(service, "payload")) === 0);
  expect(await refusalOf(await embed({}))).toEqual(tooLarge);
  expect(provider.requests).toEqual([]);
  await isFree();
  expect((await embed({ encoding_format: "base64" })).status).toBe(200);
  await isFree();
  provider.respond({ text: "x".repeat(6 * mebi) });
  expect(await refusalOf(await customer.post(chat, asking(providerModel)))).toEqual(tooLarge);
  await isFree();
  provider.respond({ text: "x".repeat(4 * mebi) });
  expect((await customer.post(chat, asking(providerModel))).status).toBe(200);
  await isFree();
  const charged = (await customer.ledger("usage")).filter(({ amount_usd: amount }) => Number(amount) !== 0);
  expect(charged).toHaveLength(2);
});

test("embeddings that take many frames arrive whole, and a repeat under their key gets the same text", async () => {
  const { service } = await startWithProvider();
  const customer = await service.account("1.00");
  const [texts, dimensions] = [256, 1_024];
  const embed = async () => {
    const body = { model: "openai/text-embedding-3-small", input: Array(texts).fill("a"), dimensions };
    const response = await customer.post("/v1/embeddings", body, { headers: { "idempotency-key": "parts" } });
    const answer = await response.text();
    expect(response.headers.get("content-length")).toBe(String(answer.length));
    return answer;
  };
  const answer = await embed();
  const embedding = (index: number) => Array.from({ length: dimensions }, (_, at) => (at === index ? 1 : 0));
  expect(JSON.parse(answer)).toEqual({
    object: "list",
    model: "openai/text-embedding-3-small",
    data: Array.from({ length: texts }, (_, index) => ({ object: "embedding", index, embedding: embedding(index) })),
    usage: { prompt_tokens: texts, total_tokens: texts },
  });
  expect(await embed()).toBe(answer);
  expect(await customer.ledger("usage")).toHaveLength(1);
});
