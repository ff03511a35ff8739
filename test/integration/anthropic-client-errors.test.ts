import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import {
  anthropicService,
  asking,
  clientOf,
  nativeModel,
  newCaller,
  ownName,
} from "../support/anthropic-client-setup.ts";
import { mockAnthropicError } from "../support/mock-anthropic.ts";
import { expectUntouched, localModel } from "../support/service-setup.ts";

const running = anthropicService();
const thrownBy = (calling: Promise<unknown>): Promise<unknown> =>
  calling.then(
    () => {
      throw new Error("the call succeeded");
    },
    (error: unknown) => error,
  );

/** The call in JSON, and through the streaming helper. */
const methods: readonly (readonly [string, (client: Anthropic, model: string, more?: object) => Promise<unknown>])[] = [
  ["JSON", (client, model, more) => client.messages.create({ ...asking(model), ...more })],
  ["stream", (client, model, more) => client.messages.stream({ ...asking(model), ...more }).finalMessage()],
];

describe.each(methods)("the client's error classes, %s", (_, call) => {
  const requestID = expect.stringMatching(/^req_/) as string;

  test("AuthenticationError", async () => {
    const { customer } = await newCaller(running);
    const client = clientOf(running.service, { ...customer, key: `live_${"x".repeat(40)}` });
    const thrown = await thrownBy(call(client, localModel));
    expect(thrown).toBeInstanceOf(Anthropic.AuthenticationError);
    expect(thrown).toMatchObject({ status: 401, type: "authentication_error", requestID });
  });

  test("BadRequestError names the field", async () => {
    const { client } = await newCaller(running);
    const thrown = await thrownBy(call(client, nativeModel, { max_tokens: 0 }));
    expect(thrown).toBeInstanceOf(Anthropic.BadRequestError);
    expect(thrown).toMatchObject({
      status: 400,
      type: "invalid_request_error",
      apiMessage: expect.stringContaining("max_tokens") as string,
      requestID,
    });
  });

  test("PaymentRequiredError names the tokens that the balance covers", async () => {
    const { client, customer } = await newCaller(running, "0.001");
    const thrown = await thrownBy(call(client, nativeModel, { max_tokens: 4_000 }));
    expect(thrown).toBeInstanceOf(Anthropic.PaymentRequiredError);
    const apiMessage = expect.stringMatching(/asked for up to 4000 tokens; the balance covers \d+/) as string;
    expect(thrown).toMatchObject({ status: 402, type: "billing_error", apiMessage, requestID });
    await expectUntouched(running.service, customer, "0.001");
  });

  test("PermissionDeniedError, NotFoundError", async () => {
    const { client, customer } = await newCaller(running);
    const unknown = await thrownBy(call(client, "claude-nothing"));
    expect(unknown).toBeInstanceOf(Anthropic.NotFoundError);
    expect(unknown).toMatchObject({ status: 404, type: "not_found_error", requestID });
    await running.service.admin("PATCH", `/accounts/${customer.id}`, { frozen: true });
    const frozen = await thrownBy(call(client, localModel));
    expect(frozen).toBeInstanceOf(Anthropic.PermissionDeniedError);
    expect(frozen).toMatchObject({ status: 403, type: "permission_error", requestID });
  });

  test("RateLimitError has Retry-After", async () => {
    const customer = await running.service.account("1", { limits: { requests_per_minute: 1 } });
    const client = clientOf(running.service, customer);
    await call(client, localModel);
    const thrown = await thrownBy(call(client, localModel));
    expect(thrown).toBeInstanceOf(Anthropic.RateLimitError);
    expect(thrown).toMatchObject({ status: 429, type: "rate_limit_error", requestID });
    const seconds = Number((thrown as InstanceType<typeof Anthropic.RateLimitError>).headers.get("retry-after"));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
  });

  test("a call above the token limit is not retried", async () => {
    const customer = await running.service.account("1", { limits: { tokens_per_minute: 10 } });
    const statuses: number[] = [];
    const client = clientOf(running.service, customer, {
      maxRetries: 3,
      fetch: async (url: string, init: RequestInit) => {
        const response = await fetch(url, init);
        statuses.push(response.status);
        return response;
      },
    });
    expect(await thrownBy(call(client, localModel))).toBeInstanceOf(Anthropic.RateLimitError);
    expect(statuses).toEqual([429]);
  });
});

describe("failures of the provider before its first event", () => {
  const { BadRequestError, InternalServerError, ServiceUnavailableError, GatewayTimeoutError } = Anthropic;
  const failed = { error: InternalServerError, status: 502, type: "api_error" };
  const full = { error: ServiceUnavailableError, status: 503, type: "overloaded_error" };
  const refused = { error: BadRequestError, status: 400, type: "invalid_request_error", says: "Secret" };
  const secret = "Secret words";
  const later = { headers: { "retry-after": "30" } };

  // A busy upstream cools down for the model, so each of these rows has separate models.
  const rows = [
    { ...refused, of: "400", answer: mockAnthropicError(400, secret) },
    { ...refused, of: "413", answer: mockAnthropicError(413, secret) },
    { ...failed, of: "401", answer: mockAnthropicError(401, secret) },
    { ...failed, of: "402", answer: mockAnthropicError(402, secret) },
    { ...failed, of: "403", answer: mockAnthropicError(403, secret) },
    { ...failed, of: "404", answer: mockAnthropicError(404, secret) },
    { ...failed, of: "400 for an empty account", answer: mockAnthropicError(400, "Your credit balance is too low") },
    { ...failed, of: "500", answer: mockAnthropicError(500, secret) },
    { ...failed, of: "an invalid message", answer: { body: "<html>" } },
    {
      ...full,
      of: "429",
      answer: mockAnthropicError(429, secret, later),
      models: ["claude-opus-5", "claude-opus-4-8"],
    },
    {
      ...full,
      of: "529",
      answer: mockAnthropicError(529, secret, later),
      models: ["claude-haiku-5-5", "claude-opus-5-5"],
    },
    {
      error: GatewayTimeoutError,
      status: 504,
      type: "timeout_error",
      of: "504",
      answer: mockAnthropicError(504, secret),
    },
  ];

  test.each(rows)(
    "$of: the caller receives $status and is not charged",
    async ({ answer, error, status, type, ...row }) => {
      const { models = [ownName, ownName] } = row as { models?: readonly string[] };
      for (const [at, [, call]] of methods.entries()) {
        const { client, customer } = await newCaller(running);
        running.anthropic.respond(answer);
        const thrown = await thrownBy(call(client, models[at] ?? ownName));
        expect(thrown).toBeInstanceOf(error);
        expect(thrown).toMatchObject({ status, type });
        expect(/Secret|credit/.test(String(thrown))).toBe("says" in row);
        const retryAfter = (thrown as InstanceType<typeof Anthropic.APIError>).headers?.get("retry-after");
        expect(retryAfter ?? "none").toMatch(status === 503 ? /^(2\d|30)$/ : /^none$/);
        await expectUntouched(running.service, customer, "1.00");
        // The breaker stays closed.
        expect((await client.messages.create(asking(nativeModel))).model).toBe(nativeModel);
      }
    },
  );
});

describe("threads, which would be stored under the operator's key", () => {
  const first = { role: "user" as const, content: "I am Ann." };
  const second = { role: "user" as const, content: "Who am I?" };

  test("are refused with the code that the client expects", async () => {
    const { client, customer } = await newCaller(running);
    const thread = client.beta.messages.thread({ model: nativeModel, max_tokens: 100 });
    const thrown = await thrownBy(thread.send(first));
    expect(thrown).toBeInstanceOf(Anthropic.BadRequestError);
    expect(thrown).toMatchObject({ errorCode: "thread_unsupported_request" });
    expect(running.anthropic.requests).toHaveLength(0);
    await expectUntouched(running.service, customer, "1.00");
  });

  test("the client continues without a thread if it may", async () => {
    const { client } = await newCaller(running);
    const thread = client.beta.messages.thread({
      model: nativeModel,
      max_tokens: 100,
      unsupportedRequestBehavior: "continue_unthreaded",
    });
    await thread.send(first);
    await thread.send(second);
    expect(running.anthropic.requests.map(({ body }) => [body["thread"], body["messages"]])).toMatchObject([
      [undefined, [first]],
      [undefined, [first, { role: "assistant" }, second]],
    ]);
  });
});
