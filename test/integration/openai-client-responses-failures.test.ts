import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { mockChunk, mockError } from "../support/mock-openai.ts";
import { usageOf, withRelayedModel } from "../support/native-formats.ts";
import { hostedModel, nativeModel } from "../support/responses-events.ts";
import { type Customer, eventually } from "../support/service.ts";
import {
  expectUntouched,
  gate,
  localModel,
  nanoUsd,
  never,
  serviceOfFile,
  untilHealthy,
} from "../support/service-setup.ts";

const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const input = "Hello there";
/** Counted by the tokenizer, including the template's tokens. */
const inputTokens = 9n;
const prices: Readonly<Record<string, readonly [bigint, bigint]>> = {
  [nativeModel]: [400n, 1_600n],
  [hostedModel]: [150n, 600n],
};
const usageWaitMs = 30_000;
const failed = { code: "upstream_error", param: null };

type Event = OpenAI.Responses.ResponseStreamEvent;

/** A minimal Responses stream that has sent "abcdefgh". */
const response = { id: "resp_1", object: "response", created_at: 1, model: "x", output: [], status: "in_progress" };
const at = { item_id: "msg_1", output_index: 0, content_index: 0, logprobs: [] };
const item = { id: "msg_1", type: "message", role: "assistant", status: "in_progress", content: [] };
const part = { type: "output_text", text: "", annotations: [], logprobs: [] };
const nativeEvents = [
  { type: "response.created", response },
  { type: "response.output_item.added", output_index: 0, item },
  { type: "response.content_part.added", ...at, part },
  { type: "response.output_text.delta", ...at, delta: "abcd" },
  { type: "response.output_text.delta", ...at, delta: "efgh" },
].map((event, sequence_number) => ({ ...event, sequence_number }));
const chatEvents = [mockChunk({ role: "assistant", content: "abcd" }), mockChunk({ content: "efgh" })];
const eventsOf = (model: string): readonly object[] => (model === nativeModel ? nativeEvents : chatEvents);

/** A success after the failures of earlier tests closes the breaker. */
async function customerOfHealthyProvider(model: string): Promise<Customer> {
  const healthy = await running.service.account("1");
  await untilHealthy(running, () => healthy.post("/v1/responses", { model, input }));
  return running.service.account("1");
}

/** Reads to the end or the error; `onComplete` after the whole text. */
async function readAll(stream: AsyncIterable<Event>, onComplete: () => void) {
  const events: Event[] = [];
  let delivered = "";
  const thrown = await (async () => {
    for await (const event of stream) {
      events.push(event);
      if (event.type === "response.output_text.delta") delivered += event.delta;
      if (delivered === "abcdefgh") onComplete();
    }
  })().catch((error: unknown) => error);
  return { events, delivered, thrown };
}

async function expectDelivered(model: string, customer: Customer, status: string): Promise<void> {
  const entry = await usageOf(running.service, customer);
  const usage = { input: Number(inputTokens), output: 2 };
  expect(entry?.request).toMatchObject({ status, estimated: true, usage });
  const [perInput, perOutput] = prices[model] ?? [0n, 0n];
  expect(nanoUsd(entry?.amount_usd ?? "")).toBe(-(inputTokens * perInput + 2n * perOutput));
}

const failuresOf = (model: string): readonly (readonly [string, object, waits: boolean])[] => {
  const begun = eventsOf(model);
  const secret = "sk-secret overloaded";
  const cut = { events: [...begun, { type: "response.never" }], cutAfter: begun.length };
  const common = [
    ["is cut", cut, true],
    ["ends without a last event", { events: begun, done: false }, false],
    ["has invalid JSON", { events: [...begun, "data: {oops\n\n"] }, true],
  ] as const;
  if (model === hostedModel)
    return [...common, ["sends an error", { events: [...begun, { error: { message: secret, code: 500 } }] }, true]];
  const error = { code: "server_error", message: secret };
  return [
    ...common,
    ["sends an error", { events: [...begun, { type: "error", sequence_number: 5, ...error, param: null }] }, true],
    ["sends a nested error", { events: [...begun, { type: "error", sequence_number: 5, error }] }, true],
    [
      "sends response.failed",
      {
        events: [
          ...begun,
          { type: "response.failed", sequence_number: 5, response: { ...response, status: "failed", error } },
        ],
      },
      true,
    ],
  ];
};

describe.each([nativeModel, hostedModel])("%s", (model) => {
  test.each(failuresOf(model))(
    "a stream that %s: response.failed, then an error, and the client throws",
    async (_, answer, waits) => {
      const customer = await customerOfHealthyProvider(model);
      const released = gate();
      running.provider.respond({
        ...answer,
        ...(waits && { beforeEvent: { [eventsOf(model).length]: released.opened } }),
      });
      const stream = await customer.openai.responses.create({ model, input, stream: true });
      const { events, delivered, thrown } = await readAll(stream, released.open);
      expect(delivered).toBe("abcdefgh");
      expect(thrown).toBeInstanceOf(OpenAI.APIError);
      expect(thrown).toMatchObject(failed);
      expect(String(thrown) + JSON.stringify(events)).not.toContain("sk-secret");
      expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, number) => number));
      const last = events.at(-1);
      expect(last).toMatchObject({
        type: "response.failed",
        response: {
          status: "failed",
          error: { code: "server_error" },
          model,
        },
      });
      const created = events[0];
      expect(created?.type === "response.created" && created.response.id).toBe(
        last?.type === "response.failed" && last.response.id,
      );
      await expectDelivered(model, customer, "failed");
    },
  );

  test("the helper rejects when its stream fails", async () => {
    const customer = await customerOfHealthyProvider(model);
    running.provider.respond({ events: eventsOf(model), done: false });
    const runner = customer.openai.responses.stream({ model, input });
    await expect(runner.finalResponse()).rejects.toMatchObject(failed);
  });

  test("a caller who disconnects from a stream pays what was delivered", async () => {
    const customer = await customerOfHealthyProvider(model);
    const before = running.provider.requests.length;
    const begun = eventsOf(model);
    running.provider.respond({
      events: [...begun, { type: "response.never" }],
      beforeEvent: { [begun.length]: never },
    });
    const stream = await customer.openai.responses.create({ model, input, stream: true });
    let delivered = "";
    for await (const event of stream) {
      if (event.type === "response.output_text.delta") delivered += event.delta;
      if (delivered === "abcdefgh") break;
    }
    const request = await running.provider.request(before);
    if (model === hostedModel) {
      // Its provider reports the usage only at the end, so the service reads the stream for a while longer.
      await eventually(() => running.isWaiting(usageWaitMs));
      running.advance(usageWaitMs);
    }
    await request.closed;
    expect(request.aborted).toBe(true);
    await expectDelivered(model, customer, "cancelled");
  });

  test("a caller who disconnects before the JSON answer pays what the provider reports", async () => {
    const customer = await customerOfHealthyProvider(model);
    const before = running.provider.requests.length;
    const answering = gate();
    running.provider.respond({ beforeHeaders: answering.opened });
    const controller = new AbortController();
    const calling = customer.openai.responses.create({ model, input }, { signal: controller.signal });
    const request = await running.provider.request(before);
    controller.abort();
    await expect(calling).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    answering.open();
    await request.closed;
    expect(request.aborted).toBe(false);
    const entry = await usageOf(running.service, customer);
    expect(entry?.request).toMatchObject({ status: "succeeded", estimated: false });
    expect(nanoUsd(entry?.amount_usd ?? "")).toBeLessThan(0n);
  });

  describe.each([false, true])("stream: %s", (stream) => {
    test.each([
      ["500", mockError(500, "oops sk-secret"), OpenAI.InternalServerError, { status: 502, ...failed }],
      ["503", mockError(503, "overloaded"), OpenAI.InternalServerError, { status: 502, ...failed }],
      [
        "429",
        mockError(429, "slow down", { headers: { "retry-after": "1" } }),
        OpenAI.InternalServerError,
        { status: 503, code: "no_capacity" },
      ],
      ["401", mockError(401, "Incorrect API key: sk-secret"), OpenAI.InternalServerError, { status: 502, ...failed }],
      [
        "400",
        mockError(400, "Bad tools.", { param: "tools" }),
        OpenAI.BadRequestError,
        { status: 400, code: "invalid_value", param: "tools", message: "400 Bad tools." },
      ],
      ["no JSON", { body: "<html>" }, OpenAI.InternalServerError, { status: 502, ...failed }],
    ])("a provider's %s before the first byte", async (_, answer, kind, expected) => {
      const customer = await customerOfHealthyProvider(model);
      running.provider.respond(answer);
      const calling = customer.openai.responses.create({ model, input, stream });
      const thrown: unknown = await calling.then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(thrown).toBeInstanceOf(kind);
      expect(thrown).toMatchObject({ ...expected, requestID: expect.stringMatching(/^req_/) as string });
      expect(String(thrown)).not.toContain("sk-secret");
      await expectUntouched(running.service, customer, "1.00");
    });
  });
});

test.each([
  ["failed", { failed: { code: "server_error", message: "sk-secret" } }],
  ["cancelled", { body: { ...response, status: "cancelled", error: null } }],
])("native: a response that %s with a status of 200 is an error, and costs nothing", async (_, answer) => {
  const customer = await customerOfHealthyProvider(nativeModel);
  running.provider.respond(answer);
  const calling = customer.openai.responses.create({ model: nativeModel, input });
  await expect(calling).rejects.toMatchObject({ status: 502, ...failed });
  await expectUntouched(running.service, customer, "1.00");
});

test("local: a failing stream ends with response.failed, and a whole response fails", async () => {
  const { openai } = await running.service.account("1");
  const stream = await openai.responses.create({ model: localModel, input: "stream-error:2", stream: true });
  const { events, thrown } = await readAll(stream, () => {});
  expect(events.at(-1)?.type).toBe("response.failed");
  expect(thrown).toMatchObject(failed);
  const whole = openai.responses.create({ model: localModel, input: "stream-error:2" });
  await expect(whole).rejects.toMatchObject({ status: 502, ...failed });
});
