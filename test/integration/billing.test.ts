import { type IncomingMessage, request } from "node:http";
import { describe, expect, test } from "vitest";
import type { Client, Customer } from "../support/service.ts";
import {
  asking,
  type Entry,
  entryOf,
  localModel,
  nanoUsd,
  providerModel,
  refusalOf,
  serviceOfFile,
} from "../support/service-setup.ts";

const running = serviceOfFile();
const chat = "/v1/chat/completions";

/** A delivered call, and its cost by header, ledger and balance. */
async function paid(service: Client, customer: Customer, body: object, path = chat) {
  const before = nanoUsd(await customer.available());
  const response = await customer.post(path, body);
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  await service.settled();
  const entry = await entryOf(service, response.headers.get("x-request-id"));
  const costNanoUsd = -nanoUsd(entry.amount_usd);
  expect(before - nanoUsd(await customer.available())).toBe(costNanoUsd);
  const costHeader = response.headers.get("x-xm-cost-usd");
  // The cost of a stream is not known when its headers are sent.
  expect(costHeader === null ? null : nanoUsd(costHeader)).toBe("stream" in body ? null : costNanoUsd);
  return { entry, costNanoUsd, costHeader, text };
}

/** Usage in both of the provider's formats: only Responses serves newer models. */
const usage = (prompt: number, completion: number, cached = 0, more: object = {}) => ({
  input_tokens: prompt,
  output_tokens: completion,
  input_tokens_details: { cached_tokens: cached, ...more },
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  prompt_tokens_details: { cached_tokens: cached, ...more },
});

describe("an account without money", () => {
  /** Sends no byte of the body. */
  const announce = (customer: Customer, bytes: number, headers: Record<string, string> = {}) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      request(running.service.baseUrl + chat, {
        method: "POST",
        headers: { authorization: `Bearer ${customer.key}`, "content-length": bytes, ...headers },
      })
        .on("response", resolve)
        .on("error", reject)
        .flushHeaders();
    });

  test("is refused before a large body is read", async () => {
    const customer = await running.service.account("0");
    const answer = await announce(customer, 25 * 1024 * 1024);
    answer.destroy();
    expect(answer.statusCode).toBe(402);
    const body = asking(localModel, "x".repeat(70_000));
    expect(await refusalOf(await customer.post(chat, body))).toMatchObject({
      status: 402,
      error: { code: "insufficient_balance" },
    });
    await running.service.admin("POST", `/accounts/${customer.id}/credits`, { amount_usd: "1", idempotency_key: "a" });
    expect((await customer.post(chat, body)).status).toBe(200);
  });

  test("gets the stored answer to a large body", async () => {
    const customer = await running.service.account("1");
    const body = asking(localModel, "x".repeat(70_000));
    const headers = { "idempotency-key": "large" };
    const first = await (await customer.post(chat, body, { headers })).text();
    await running.service.settled();
    const amount_usd = `-${await customer.available()}`;
    await running.service.admin("POST", `/accounts/${customer.id}/credits`, { amount_usd, idempotency_key: "b" });
    expect(await customer.available()).toMatch(/^0\.0+$/);
    const again = await customer.post(chat, body, { headers });
    expect([again.status, await again.text()]).toEqual([200, first]);
    expect((await customer.post(chat, body, { headers: { "idempotency-key": "other" } })).status).toBe(402);
  });
});

describe("exact to the nano-USD", () => {
  // List prices in USD per million tokens, so in nano-USD per thousandth: gpt-4.1-mini 0.40 / 0.10 cached / 1.60.
  test.each([
    ["standard, 5 of 9 cached", providerModel, "standard", usage(9, 8, 5), 4 * 400 + 5 * 100 + 8 * 1_600],
    // gpt-4o-mini: 0.15 / 0.075 / 0.60. Elite: 135, 67.5 and 540 a token; 5332.5 rounds up.
    ["elite, half a nano-USD rounds up", "openai/gpt-4o-mini", "elite", usage(9, 8, 3), 5_333],
    // gpt-5.6-luna: 0.20 / 0.02 / cache write 0.25 / 1.20.
    [
      "cache writes",
      "openai/gpt-5.6-luna",
      "standard",
      usage(100, 10, 20, { cache_write_tokens: 30 }),
      50 * 200 + 20 * 20 + 30 * 250 + 10 * 1_200,
    ],
  ] as const)("%s", async (_, model, tier, reported, expected) => {
    const customer = await running.service.account("1", { tier });
    running.provider.always({ usage: reported });
    const whole = await paid(running.service, customer, asking(model));
    expect(whole.costNanoUsd).toBe(BigInt(expected));
    expect(JSON.parse(whole.text)).toMatchObject({ usage: { prompt_tokens: reported.prompt_tokens } });
    const streamed = await paid(running.service, customer, { ...asking(model), stream: true });
    expect(streamed.costNanoUsd).toBe(BigInt(expected));
    expect(streamed.entry.request).toMatchObject({ status: "succeeded", estimated: false, shortfall_usd: "0.00" });
    expect(streamed.entry.request.usage).toEqual(whole.entry.request.usage);
  });

  test("embeddings: 0.13 a million, standard and elite", async () => {
    const body = { model: "openai/text-embedding-3-large", input: ["one two three", "four"] };
    const standard = await running.service.account("1");
    expect((await paid(running.service, standard, body, "/v1/embeddings")).costNanoUsd).toBe(4n * 130n);
    const elite = await running.service.account("1", { tier: "elite" });
    expect((await paid(running.service, elite, body, "/v1/embeddings")).costNanoUsd).toBe(4n * 117n);
  });
});

describe("no usage from the provider", () => {
  test("JSON: estimated by bytes, and the entry and the answer say so", async () => {
    const customer = await running.service.account("1");
    running.provider.always({ usage: false, text: "12345678" });
    // Nine bytes of text are three tokens; the framing does not count.
    const body = { ...asking(providerModel, "Well met!"), max_tokens: 100 };
    const input = 3;
    const { entry, costNanoUsd, text } = await paid(running.service, customer, body);
    expect(entry.request).toMatchObject({ status: "succeeded", estimated: true, usage: { input, output: 2 } });
    expect(costNanoUsd).toBe(BigInt(input * 400 + 2 * 1_600));
    expect(JSON.parse(text)).toMatchObject({
      usage: { prompt_tokens: input, completion_tokens: 2, total_tokens: input + 2 },
    });
  });

  test("stream: the last chunk before [DONE] still carries usage", async () => {
    const customer = await running.service.account("1");
    running.provider.always({ usage: false, text: "12345678" });
    const { entry, text } = await paid(running.service, customer, { ...asking(providerModel), stream: true });
    expect(entry.request).toMatchObject({ estimated: true, usage: { output: 2 } });
    expect(text).toMatch(
      /"choices":\[\],"usage":\{"prompt_tokens":\d+,"completion_tokens":2,.*\n\ndata: \[DONE\]\n\n$/,
    );
  });

  test("embeddings: estimated by bytes", async () => {
    const customer = await running.service.account("1");
    const data = [{ index: 0, embedding: [1, 0] }];
    running.provider.respond({ body: { data } });
    const body = { model: "openai/text-embedding-3-small", input: "some text" };
    const input = 3;
    const { entry, costNanoUsd, text } = await paid(running.service, customer, body, "/v1/embeddings");
    expect(entry.request).toMatchObject({ estimated: true, usage: { input } });
    expect(costNanoUsd).toBe(BigInt(input * 20));
    expect(JSON.parse(text)).toMatchObject({ usage: { prompt_tokens: input, total_tokens: input } });
  });

  test("implausible usage is ignored, and callers see what is billed", async () => {
    const customer = await running.service.account("1");
    const reported = { prompt_tokens: "9", completion_tokens: 8, total_tokens: 17 };
    running.provider.always({ usage: reported, text: "12345678" });
    const whole = await paid(running.service, customer, asking(providerModel));
    expect(whole.entry.request).toMatchObject({ estimated: true, usage: { output: 2 } });
    expect(JSON.parse(whole.text)).toMatchObject({
      usage: { prompt_tokens: whole.entry.request.usage["input"], completion_tokens: 2 },
    });
    const streamed = await paid(running.service, customer, { ...asking(providerModel), stream: true });
    expect(streamed.text).toMatch(/"choices":\[\],"usage":\{"prompt_tokens":\d+,"completion_tokens":2,/);
  });
});

describe("caps and holds", () => {
  test("usage above the hold: the hold is charged, the rest is recorded as shortfall", async () => {
    const customer = await running.service.account("1");
    running.provider.always({ usage: usage(9, 1_000_000) });
    const { entry, costNanoUsd } = await paid(running.service, customer, { ...asking(providerModel), max_tokens: 10 });
    const costs = 9n * 400n + 1_000_000n * 1_600n;
    expect(costNanoUsd).toBeLessThan(costs);
    expect(costNanoUsd + nanoUsd(entry.request.shortfall_usd)).toBe(costs);
    // The hold: each byte of the body as a token, an allowance for the call and the message, and the cap.
    const held = (JSON.stringify({ ...asking(providerModel), max_tokens: 10 }).length + 512 + 16) * 400 + 10 * 1_600;
    expect(costNanoUsd).toBe(BigInt(held));
  });

  test("without a cap the balance sets one, and the provider receives it", async () => {
    const customer = await running.service.account("0.0005");
    const body = asking(providerModel);
    const fixed = (JSON.stringify(body).length + 512 + 16) * 400;
    const { entry } = await paid(running.service, customer, body);
    expect(running.provider.requests[0]?.body["max_completion_tokens"]).toBe(Math.floor((500_000 - fixed) / 1_600));
    expect(entry.request.usage).toMatchObject({ input: 9, output: 8 });
  });

  test("the local model respects the cap that the balance sets", async () => {
    const customer = await running.service.account("0.0001");
    const { text, entry } = await paid(running.service, customer, asking(localModel, "tokens:5000"));
    const fixed = (JSON.stringify(asking(localModel, "tokens:5000")).length + 512 + 16) * 100;
    const cap = Math.floor((100_000 - fixed) / 400);
    expect(JSON.parse(text)).toMatchObject({
      usage: { completion_tokens: cap },
      choices: [{ finish_reason: "length" }],
    });
    expect(entry.request.shortfall_usd).toBe("0.00");
  });

  test("the bytes of an image are not counted as text: the catalog's maximum is held", async () => {
    const customer = await running.service.account("0.02");
    const url = `data:image/png;base64,iVBORw0KGgo${"A".repeat(2_000_001)}`;
    const content = [{ type: "image_url", image_url: { url } }];
    const body = { model: providerModel, messages: [{ role: "user", content }], max_tokens: 1 };
    const bytes = JSON.stringify(body).length - url.length;
    // 2,500 tokens per image; as text the two million bytes would have cost at least 0.40 USD.
    running.provider.always({ usage: usage(5_000_000, 1) });
    const { costNanoUsd } = await paid(running.service, customer, body);
    expect(costNanoUsd).toBe(BigInt((bytes + 512 + 16 + 2_500) * 400 + 1_600));
  });
});

test("100 mixed calls: headers, ledger and balance agree", async () => {
  const customer = await running.service.account("100");
  const vectors = { model: "local/embeddings", input: ["some", "texts"] };
  const kinds: readonly (() => Promise<Response>)[] = [
    () => customer.post(chat, asking(localModel)),
    () => customer.post(chat, asking(providerModel)),
    () => customer.post(chat, { ...asking(localModel, "tokens:50"), stream: true }),
    () => customer.post(chat, { ...asking(providerModel), stream: true }),
    () => customer.post("/v1/embeddings", vectors),
    () => customer.post("/v1/embeddings", { ...vectors, model: "openai/text-embedding-3-small" }),
    () => customer.post(chat, asking(localModel, "error:502")),
    () => customer.post(chat, { ...asking(localModel, "stream-error:3"), stream: true }),
    () => customer.post(chat, { ...asking(localModel), max_tokens: 0 }),
    () => customer.post(chat, { ...asking(providerModel), n: 2 }),
  ];
  const answers = await Promise.all(
    Array.from({ length: 100 }, async (_, at) => {
      const response = await (kinds[at % kinds.length] as () => Promise<Response>)();
      await response.text();
      return response;
    }),
  );
  const statuses = answers.map(({ status }) => status);
  expect([200, 400, 502].map((status) => statuses.filter((each) => each === status).length)).toEqual([80, 10, 10]);
  await running.service.settled();
  const usages = (await customer.ledger("usage")) as unknown as Entry[];
  expect(usages).toHaveLength(90);
  const charged = usages.reduce((sum, entry) => sum + nanoUsd(entry.amount_usd), 0n);
  expect(nanoUsd(await customer.available())).toBe(100_000_000_000n + charged);
  const costHeader = answers.reduce((sum, { headers }) => sum + nanoUsd(headers.get("x-xm-cost-usd") ?? "0.00"), 0n);
  const inStreams = usages
    .filter(
      ({ id }) => !answers.some(({ headers }) => headers.get("x-xm-cost-usd") && headers.get("x-request-id") === id),
    )
    .reduce((sum, entry) => sum + nanoUsd(entry.amount_usd), 0n);
  expect(charged).toBe(inStreams - costHeader);
  expect(await running.service.check()).toMatchObject({
    ok: true,
    difference_usd: "0.00",
    open_holds: 0,
    undecided: 0,
  });
});
