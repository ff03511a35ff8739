import { describe, expect, test } from "vitest";
import { mockError, mockText } from "../support/mock-openai.ts";
import { failingMs, post, routingService } from "../support/routing-setup.ts";
import { eventually } from "../support/service.ts";
import { asking, nanoUsd } from "../support/service-setup.ts";

const running = routingService();
const chat = "/v1/chat/completions";
const [dear, cheap] = ["acme/dear", "acme/cheap"];
const tooLong = mockError(400, "This model's maximum context length is 8192 tokens.", {
  code: "context_length_exceeded",
});
/** No other upstream of the model is tried. */
const unfit = mockError(400, "not this prompt", { code: "invalid_prompt" });
const servedBy = /no upstream 'azure'; 'acme\/dear' is served by 'alpha', 'beta', 'gamma'/;
/** The mock's default response has 9 input and 8 output tokens. */
const [inputTokens, outputTokens] = [9n, 8n];
const costAt = (input: bigint, output: bigint) => inputTokens * input + outputTokens * output;

describe("a list of models", () => {
  test.each([
    ["500", "acme/copy-9", mockError(500, "oops"), { outcome: "failed", status: 500 }],
    [
      "a prompt over its context",
      "acme/copy-10",
      tooLong,
      { outcome: "refused", status: 400, code: "context_length_exceeded" },
    ],
    ["429", "acme/copy-11", mockError(429, "slow down"), { outcome: "busy", status: 429 }],
    ["a refusal", "acme/copy-13", unfit, { outcome: "refused", status: 400, code: "invalid_prompt" }],
    ["a connection that breaks off", "acme/copy-12", { cutAfter: -1 }, { outcome: "failed" }],
  ])("after %s the next model answers, and it alone is charged", async (_, model, failure, outcome) => {
    const { service, alpha, beta, gamma } = running;
    const customer = await service.account("1");
    alpha.always(failure);
    beta.always(failure);
    const body = { ...asking(model), models: [cheap], session_id: "s" };
    const { response, answer, entry } = await post(service, customer, chat, body);
    expect(answer).toMatchObject({ model: cheap, choices: [{ message: { content: mockText } }] });
    expect(response.headers.get("x-xm-model")).toBe(cheap);
    const cost = costAt(100n, 400n);
    expect(nanoUsd(response.headers.get("x-xm-cost-usd") ?? "")).toBe(cost);
    const last = { upstream: "gamma", outcome: "succeeded" };
    const failed = (failure === unfit ? ["alpha"] : ["alpha", "beta"]).map((upstream) => ({
      upstream,
      model,
      ...outcome,
    }));
    expect(entry).toMatchObject({ model: cheap, upstream: "gamma", attempts: [...failed, last] });
    // 9 x 50 + 8 x 123 nano-USD: the operator's cost at the upstream.
    expect(entry).toMatchObject({ upstream_cost_usd: "0.000001434" });
    await service.settled();
    expect(nanoUsd(await customer.available())).toBe(1_000_000_000n - cost);
    expect(gamma.requests[0]?.body).toMatchObject({ model: "gamma-cheap" });
    for (const field of ["models", "provider", "session_id"]) expect(gamma.requests[0]?.body).not.toHaveProperty(field);

    // The preferences apply to every model, so the other one has no upstream here and is skipped.
    const none = await post(service, customer, chat, { ...body, provider: { ignore: ["gamma"] } });
    expect(none.response.ok).toBe(false);
    expect(gamma.requests).toHaveLength(1);
  });

  test("a refused connection moves on to the next upstream and is recorded", async () => {
    const customer = await running.service.account("1");
    const { entry } = await post(running.service, customer, chat, asking("acme/refused"));
    expect(entry?.attempts).toMatchObject([
      { upstream: "dead", outcome: "failed", started_ms: expect.any(Number), duration_ms: expect.any(Number) },
      { upstream: "gamma", outcome: "succeeded" },
    ]);
  });

  test("a stream moves on until its first event, and not after it", async () => {
    const { service, alpha, gamma } = running;
    const customer = await service.account("1");
    alpha.always(unfit);
    const body = { ...asking("acme/copy-1"), models: [cheap], stream: true };
    const whole = await customer.post(chat, body);
    expect(whole.headers.get("x-xm-model")).toBe(cheap);
    const chunks = await whole.text();
    expect(chunks).toContain(`"model":"${cheap}"`);
    expect(chunks).not.toContain("copy-1");
    alpha.always({ cutAfter: 3 });
    const cut = await (await customer.post(chat, body)).text();
    expect(cut).toContain("upstream_error");
    expect(gamma.requests).toHaveLength(1);
    const [last, first] = (await service.settled().then(() => customer.ledger("usage"))) as readonly never[];
    expect([first, last]).toMatchObject([
      { request: { model: cheap, upstream: "gamma" } },
      { request: { model: "acme/copy-1", upstream: "alpha", attempts: [{ outcome: "failed" }] } },
    ]);
  });

  test("the model may be named in the list alone, and twice", async () => {
    const customer = await running.service.account("1");
    const { model: _, ...question } = asking(cheap);
    const listed = await post(running.service, customer, chat, { ...question, models: [cheap, cheap, dear] });
    expect(listed.entry).toMatchObject({ model: cheap, attempts: { length: 1 } });
  });

  test.each([
    ["an unknown model", { models: ["acme/none"] }, 404, "models[0]"],
    ["an unknown model without `model`", { model: undefined, models: [cheap, "acme/none"] }, 404, "models[1]"],
    ["no list", { models: cheap }, 400, "models"],
    ["an empty list", { models: [] }, 400, "models"],
    ["more than eight", { models: Array.from({ length: 9 }, (__, n) => `acme/copy-${n}`) }, 400, "models"],
    ["a preference that would change who sees the call", { provider: { zdr: true } }, 400, "provider.zdr"],
    ["a price limit", { provider: { max_price: { prompt: 1 } } }, 400, "provider.max_price"],
    ["a sort that is an object", { provider: { sort: { by: "price" } } }, 400, "provider.sort"],
    ["a session that is too long", { session_id: "s".repeat(257) }, 400, "session_id"],
    ["an unknown upstream", { provider: { order: ["alpha", "azure"] } }, 400, "provider.order[1]", servedBy],
    ["only upstreams of other models", { provider: { only: ["dead"] } }, 400, "provider.only"],
    ["nothing but ignored upstreams", { provider: { ignore: ["alpha", "beta", "gamma"] } }, 400, "provider.ignore"],
    [
      "a region without the model",
      { provider: { regions: ["eu-west-9"] } },
      400,
      "provider.regions",
      /served by 'alpha', 'beta', 'gamma'/,
    ],
    ["a residence without the model", { provider: { data_residency: "jp" } }, 400, "provider.data_residency"],
    [
      "a residence that a region contradicts",
      { provider: { regions: ["us-east-1"], data_residency: "eu" } },
      400,
      "provider.data_residency",
    ],
    [
      "an order of none without fallbacks",
      { provider: { order: ["dead"], allow_fallbacks: false } },
      400,
      "provider.order",
    ],
  ])("%s is refused by name, and nothing is charged", async (_, more, status, param, message = /./) => {
    const { service, alpha } = running;
    const customer = await service.account("1");
    const refused = await post(service, customer, chat, { ...asking(dear), ...more });
    expect(refused).toMatchObject({ status, answer: { error: { param, message: expect.stringMatching(message) } } });
    expect(alpha.requests).toHaveLength(0);
    await service.settled();
    expect(await customer.available()).toBe("1.00");
  });

  test("models that cannot take the call are skipped; if none can, the first one's error is answered", async () => {
    const { service, gamma } = running;
    const customer = await service.account("1");
    const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
    const withTools = { ...asking(cheap), tools };
    expect((await post(service, customer, chat, { ...withTools, models: [dear] })).entry).toMatchObject({
      model: dear,
    });
    const none = await post(service, customer, chat, { ...withTools, models: ["acme/vectors"] });
    expect(none).toMatchObject({ status: 400, answer: { error: { code: "model_not_supported", param: "tools" } } });
    const long = { ...asking("acme/small", "word ".repeat(3_000)), models: [cheap] };
    expect((await post(service, customer, chat, long)).entry).toMatchObject({ model: cheap, attempts: { length: 1 } });
    expect(gamma.requests.map(({ body }) => body["model"])).toEqual(["gamma-cheap"]);
  });

  test("a model without an upstream that is ready is skipped", async () => {
    const { service, advance } = running;
    const customer = await service.account("1");
    await eventually(async () => {
      advance(1_000);
      return (await post(service, customer, chat, asking("acme/unready"))).status === 503;
    });
    const { entry } = await post(service, customer, chat, { ...asking("acme/unready"), models: [cheap] });
    expect(entry).toMatchObject({ model: cheap, attempts: { length: 1 } });
  });

  test("the balance must cover the dearest model, with as many tokens as it then pays for", async () => {
    const { service, alpha, gamma } = running;
    const capped = { max_tokens: 100 };
    const limited = await service.account("0.005");
    expect((await post(service, limited, chat, { ...asking(cheap), ...capped })).status).toBe(200);
    const both = await post(service, limited, chat, { ...asking(cheap), ...capped, models: [dear] });
    expect(both).toMatchObject({ status: 402, answer: { error: { code: "insufficient_balance" } } });

    const customer = await service.account("0.008");
    alpha.always(unfit);
    const provider = { only: ["alpha", "gamma"], order: ["alpha"] };
    const { entry } = await post(service, customer, chat, { ...asking("acme/dear"), models: [cheap], provider });
    expect(entry).toMatchObject({ model: cheap });
    const asked = [...alpha.requests, ...gamma.requests.slice(-1)].map(({ body }) => Number(body["max_tokens"]));
    expect(asked[0]).toBeGreaterThan(0);
    expect(asked[0]).toBeLessThan(100);
    expect(asked[1]).toBe(4_000);
  });

  test("eight dear models and all their upstreams are at most eight attempts, and a refusal costs nothing", async () => {
    const { service, alpha, beta } = running;
    const customer = await service.account("10");
    alpha.always(unfit);
    const models = Array.from({ length: 8 }, (_, index) => `acme/copy-${index}`);
    const refused = await post(service, customer, chat, { ...asking("acme/copy-8"), models });
    expect(refused).toMatchObject({ status: 400, answer: { error: { code: "invalid_prompt" } } });
    expect(alpha.requests).toHaveLength(8);
    expect(beta.requests).toHaveLength(0);
    alpha.always(mockError(500, "oops"));
    beta.always(mockError(500, "oops"));
    expect(await post(service, customer, chat, { ...asking("acme/copy-8"), models })).toMatchObject({ status: 502 });
    expect(alpha.requests.length + beta.requests.length).toBe(16);
    await service.settled();
    expect(await customer.available()).toBe("10.00");
  });

  test.each([
    ["an answer", "acme/queued", {}],
    ["a stream", "acme/queued", { stream: true }],
    ["a stream that hides its reasoning", "acme/hidden", { stream: true }],
  ])("a caller who disconnects from %s while it waits for the next upstream pays nothing", async (_, model, more) => {
    const { service, alpha, gamma, isWaiting } = running;
    const [busy, customer] = await Promise.all([service.account("1"), service.account("1")]);
    const gate = Promise.withResolvers<void>();
    gamma.respond({ beforeHeaders: gate.promise });
    const blocking = busy.post(chat, { ...asking(model), provider: { only: ["narrow"] } });
    await gamma.request(0);
    alpha.respond(mockError(500, "oops"));
    const leaving = new AbortController();
    const answer = customer.post(chat, { ...asking(model), ...more }, { signal: leaving.signal });
    await alpha.request(0);
    // The wait is shorter by the time between its two looks at the clock.
    await eventually(() => !Array.from({ length: 10_000 }, (__, late) => failingMs - late).some(isWaiting));
    leaving.abort();
    await expect(answer).rejects.toThrow("abort");
    expect(await eventually(async () => (await customer.ledger("usage"))[0])).toMatchObject({
      amount_usd: "0.00",
      request: { status: "cancelled", attempts: [{ upstream: "failing", outcome: "failed" }] },
    });
    gate.resolve();
    expect((await blocking).status).toBe(200);
    expect(gamma.requests).toHaveLength(1);
  });

  test("a repeat with the same Idempotency-Key gets the answer of the model that answered", async () => {
    const { service, alpha, gamma } = running;
    const customer = await service.account("1");
    alpha.always(unfit);
    const body = { ...asking("acme/copy-2"), models: [cheap] };
    const headers = { "idempotency-key": "a-key" };
    const [first, again] = [await customer.post(chat, body, { headers }), await customer.post(chat, body, { headers })];
    expect(await again.text()).toBe(await first.text());
    for (const name of ["x-xm-model", "x-xm-cost-usd"]) expect(again.headers.get(name)).toBe(first.headers.get(name));
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect([alpha.requests.length, gamma.requests.length]).toEqual([1, 1]);
    const other = await customer.post(chat, { ...body, provider: { only: ["gamma"] } }, { headers });
    expect(other.status).toBe(409);
  });
});

describe("preferences among upstreams", () => {
  test.each([
    ["the order of the catalog", undefined, "alpha"],
    ["order", { order: ["gamma", "beta"] }, "gamma"],
    ["only", { only: ["beta", "gamma"] }, "beta"],
    ["ignore", { ignore: ["alpha"] }, "beta"],
    ["regions", { regions: ["us-east-1", "eu-west-9"] }, "gamma"],
    ["the residence of data, never an upstream that promises none", { data_residency: "eu" }, "beta"],
    ["the cheapest", { sort: "price" }, "beta"],
    ["order before sort", { order: ["gamma"], sort: "price" }, "gamma"],
    ["one that does not serve the model comes to nothing", { order: ["dead", "beta"] }, "beta"],
    ["null", null, "alpha"],
  ])("%s decides who is asked first", async (_, provider, upstream) => {
    const customer = await running.service.account("1");
    const { entry } = await post(running.service, customer, chat, { ...asking(dear), provider });
    expect(entry).toMatchObject({ upstream, attempts: { length: 1 } });
  });

  test.each([
    ["with fallbacks", { order: ["beta"] }, ["beta", "alpha", "gamma"]],
    ["by price, the unknown last", { sort: "price" }, ["beta", "alpha", "gamma"]],
    ["of the order alone", { order: ["beta", "alpha"], allow_fallbacks: false }, ["beta", "alpha"]],
    ["but not out of a residence", { data_residency: "eu" }, ["beta"]],
    ["of the first alone", { allow_fallbacks: false }, ["alpha"]],
    ["of the cheapest alone", { sort: "price", allow_fallbacks: false }, ["beta"]],
  ])("those that fail are followed by the next, %s", async (_, provider, tried) => {
    const { service, alpha, beta, gamma } = running;
    for (const mock of [alpha, beta, gamma]) mock.respond(mockError(500, "oops"));
    const customer = await service.account("1");
    const failed = await post(service, customer, chat, { ...asking(dear), provider });
    expect(failed.status).toBe(502);
    await service.settled();
    const [entry] = (await customer.ledger("usage")) as unknown as readonly { request: { attempts: object[] } }[];
    expect(entry?.request.attempts).toMatchObject(tried.map((upstream) => ({ upstream, outcome: "failed" })));
    expect(entry?.request).not.toHaveProperty("upstream_cost_usd");
  });

  test("with weights the first is one of those that have one", async () => {
    const { service, alpha, beta, gamma } = running;
    const customer = await service.account("1");
    const answers = Array.from({ length: 20 }, () => post(service, customer, chat, asking("acme/weighed")));
    expect((await Promise.all(answers)).filter(({ status }) => status !== 200)).toEqual([]);
    expect(alpha.requests.length + beta.requests.length).toBe(20);
    expect(gamma.requests).toHaveLength(0);
  });

  test("images take the preferences, but no list of models", async () => {
    const { service, alpha, beta } = running;
    const customer = await service.account("1");
    const body = { model: "acme/image", prompt: "a cat" };
    const path = "/v1/images/generations";
    const cheapest = await post(service, customer, path, { ...body, provider: { sort: "price" } });
    expect(cheapest.entry).toMatchObject({ upstream: "beta", upstream_cost_usd: "0.01" });
    expect(beta.requests[0]?.body).not.toHaveProperty("provider");
    expect(await post(service, customer, path, { ...body, models: ["acme/image"] })).toMatchObject({
      status: 400,
      answer: { error: { param: "models" } },
    });
    expect(alpha.requests).toHaveLength(0);
  });

  test("the fastest as the workers measured it: to the first event, to the whole answer, and in tokens", async () => {
    const { service, alpha, beta, gamma, advance } = running;
    const customer = await service.account("1");
    const model = "acme/copy-3";
    // Measured by the service's clock, which the test moves while a provider is silent.
    const serve = async (mock: typeof alpha, upstream: string, body: object, ms: number, tokens: number) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const usage = { prompt_tokens: 9, completion_tokens: tokens, total_tokens: 9 + tokens };
      mock.respond({ beforeHeaders: promise, usage });
      const before = mock.requests.length;
      const answered = customer.post(chat, { ...asking(model), ...body, provider: { only: [upstream] } });
      await mock.request(before);
      advance(ms);
      resolve();
      await (await answered).text();
    };
    await serve(alpha, "alpha", { stream: true }, 100, 10);
    await serve(beta, "beta", { stream: true }, 30_000, 100_000);
    await serve(alpha, "alpha", {}, 40_000, 40);
    await serve(beta, "beta", {}, 1_000, 1_000);
    const first = async (sort: string, body: object) => {
      advance(1_000);
      const response = await customer.post(chat, { ...asking(model), ...body, provider: { sort } });
      await response.text();
      const { request } = await service.admin<{ request: { upstream: string } }>(
        "GET",
        `/requests/${response.headers.get("x-request-id")}`,
      );
      return request.upstream;
    };
    await expect.poll(() => first("throughput", { stream: true })).toBe("beta");
    await expect.poll(() => first("latency", { stream: true })).toBe("alpha");
    await expect.poll(() => first("latency", {})).toBe("beta");
    expect(gamma.requests).toHaveLength(0);
  });
});
