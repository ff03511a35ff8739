import { expect, onTestFinished, test } from "vitest";
import { startCallGroups } from "../support/call-groups-setup.ts";
import { mockError, mockText } from "../support/mock-openai.ts";
import { ofFile } from "../support/of-file.ts";
import { caller, type ReceivedSpan, startOtlpReceiver, treeOf } from "../support/otlp-receiver.ts";
import { eventually } from "../support/service.ts";
import {
  asking,
  catalogWith,
  gate,
  localModel,
  providerModel,
  startWithProvider,
  testVideo,
} from "../support/service-setup.ts";

const path = "/v1/chat/completions";
const upstreamModel = providerModel.replace("openai/", "");
const inference = `chat ${upstreamModel}`;

/** One service for most tests. */
const running = ofFile(
  async (onEnd) => {
    const receiver = await startOtlpReceiver(onEnd);
    const more = { OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=a%20b", CATALOG_FILE: catalogWith({}, {}, [testVideo]) };
    const started = await startWithProvider({ ...receiver.env, ...more }, onEnd);
    onEnd(() => started.provider.close());
    return { ...started, receiver };
  },
  ({ provider }) => provider.reset(),
);

async function traced() {
  onTestFinished(() => expect(running.receiver.refused).toEqual([]));
  const { service, provider, receiver } = running;
  return { service, provider, receiver, customer: await service.account("5") };
}

const named = (spans: readonly ReceivedSpan[], name: string) => spans.filter((span) => span.name === name);
const only = (spans: readonly ReceivedSpan[], name: string) => {
  const [span, ...others] = named(spans, name);
  if (!span || others.length > 0) throw new Error(`${1 + others.length} spans ${name}`);
  return span;
};

test("a stream is one trace, with what the conventions say of the model's answer, and without its words", async () => {
  const { customer, receiver } = await traced();
  const { trace, span, traceparent } = caller(1);
  const body = { ...asking(providerModel, "the-words-of-a-prompt"), stream: true, temperature: 0.5, max_tokens: 99 };
  await (await customer.post(path, body, { headers: { traceparent } })).text();
  const spans = await receiver.trace(trace, `POST ${path}`, "process chat");
  expect(treeOf(spans)).toEqual([
    [`POST ${path}`, ["admission", "queue chat", ["process chat", [[inference, ["POST"]], "capture"]]]],
  ]);
  const call = only(spans, `POST ${path}`);
  expect(call).toMatchObject({ parent: span, kind: "server", events: ["first event"], isError: false });
  expect(call.attributes).toMatchObject({ "http.response.status_code": 200, "inference.model": providerModel });
  expect(only(spans, "admission").events).toEqual(["slot", "body"]);
  expect(only(spans, inference)).toMatchObject({
    kind: "client",
    events: ["first chunk"],
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": upstreamModel,
      "gen_ai.request.stream": true,
      "gen_ai.request.temperature": 0.5,
      "gen_ai.request.max_tokens": 99,
      "gen_ai.response.model": upstreamModel,
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.response.time_to_first_chunk": expect.any(Number) as number,
      "gen_ai.usage.input_tokens": 9,
      "gen_ai.usage.output_tokens": 8,
      "inference.outcome": "succeeded",
    },
  });
  expect(only(spans, "POST").attributes).toMatchObject({ "http.response.status_code": 200 });
  expect(only(spans, "process chat").attributes["inference.cost_nanousd"]).toBeGreaterThan(0);
  const all = JSON.stringify(receiver.spans);
  for (const secret of ["the-words-of-a-prompt", mockText, customer.key, "sk-operator"])
    expect(all).not.toContain(secret);
  expect(receiver.headers.at(-1)).toMatchObject({ "x-tenant": "a b" });
});

test("after a failure the next attempt is a separate span; a provider never sees the trace", async () => {
  const { customer, provider, receiver } = await traced();
  provider.always(mockError(500, "oops"));
  const { trace, traceparent } = caller(2);
  const body = { ...asking(providerModel), models: [localModel] };
  expect((await customer.post(path, body, { headers: { traceparent } })).status).toBe(200);
  const spans = await receiver.trace(trace, `POST ${path}`, "process chat");
  const failed = only(spans, inference);
  expect(failed).toMatchObject({ isError: true, attributes: { "error.type": "500", "inference.outcome": "failed" } });
  const answered = spans.find(({ attributes }) => attributes["inference.upstream"] === "local");
  expect(answered).toMatchObject({
    isError: false,
    parent: failed.parent,
    attributes: { "inference.model": localModel },
  });
  expect(only(spans, "process chat").isError).toBe(false);
  expect(provider.requests[0]?.headers).not.toHaveProperty("traceparent");

  const alone = caller(3);
  const answer = await customer.post(path, asking(providerModel), { headers: { traceparent: alone.traceparent } });
  expect(answer.status).toBeGreaterThan(499);
  const ended = await receiver.trace(alone.trace, `POST ${path}`, "process chat");
  expect(only(ended, `POST ${path}`)).toMatchObject({
    isError: true,
    attributes: { "http.response.status_code": answer.status },
  });
  expect(only(ended, "process chat").isError).toBe(true);
});

test("the calls of one job belong to the traces of their callers", async () => {
  const receiver = await startOtlpReceiver();
  const { provider, queues, admit } = await startCallGroups(1, receiver.env);
  const { opened, open } = gate();
  provider.respond({ beforeHeaders: opened });
  const first = await admit(["blocking"]);
  await provider.request(0);
  const callers = [10, 11, 12].map((number) => caller(number));
  const calls = await admit(["a", "b", "c"], {}, (index) => ({ traceparent: callers[index]?.traceparent ?? "" }));
  await eventually(async () => (await queues.backlog("chat")) === 3);
  open();
  for (const { ended } of [...first, ...calls]) expect((await ended).kind).toBe("final");
  for (const [index, { trace, span }] of callers.entries()) {
    const spans = await receiver.trace(trace, "process chat");
    expect(treeOf(spans)).toEqual(["queue chat", ["process chat", [[inference, ["POST"]], "capture"]]]);
    expect(only(spans, "process chat")).toMatchObject({
      parent: span,
      attributes: { "inference.request_id": calls[index]?.requestId },
    });
  }
  expect(receiver.refused).toEqual([]);
});

test("prompts and answers are recorded on request, shortened, and in the shape of the conventions", async () => {
  const receiver = await startOtlpReceiver();
  const env = { ...receiver.env, OTEL_CAPTURE_CONTENT: "true", NATIVE_FORMATS_ANY_MODEL: "on" };
  const { service, provider } = await startWithProvider(env);
  onTestFinished(() => provider.close());
  const customer = await service.account("5");
  const routes = [
    ["/v1/messages", { max_tokens: 50, system: "Be brief" }],
    [path, { stream: true }],
  ] as const;
  for (const [index, [route, fields]] of routes.entries()) {
    const { trace, traceparent } = caller(20 + index);
    const messages = [{ role: "user", content: "y".repeat(30_000) }, ...asking(providerModel).messages];
    const body = { ...asking(providerModel), messages, ...fields };
    await (await customer.post(route, body, { headers: { traceparent } })).text();
    const { attributes } = only(await receiver.trace(trace, inference), inference);
    const input = JSON.parse(attributes["gen_ai.input.messages"] as string) as object[];
    expect(input.at(-1)).toEqual({ role: "user", parts: [{ type: "text", content: "Hello there" }] });
    expect(String(attributes["gen_ai.input.messages"]).length).toBeLessThan(20_000);
    expect(JSON.parse(attributes["gen_ai.output.messages"] as string)).toEqual([
      { role: "assistant", parts: [{ type: "text", content: mockText }], finish_reason: "stop" },
    ]);
  }
  expect(receiver.refused).toEqual([]);
});

test("requests other than calls cause no span, and an invalid header begins a new trace", async () => {
  const { service, customer, receiver } = await traced();
  const { trace, traceparent } = caller(30);
  const headers = { traceparent, "content-type": "application/json" };
  const anonymous = await fetch(`${service.baseUrl}${path}`, { method: "POST", body: "{}", headers });
  expect(anonymous.status).toBe(401);
  const invalid = `00-${trace}-00000000000000f1-01-more`;
  expect((await customer.post(path, asking(localModel), { headers: { traceparent: invalid } })).status).toBe(200);
  const refused = await customer.post(path, asking("no/such"), { headers: { traceparent: caller(31).traceparent } });
  expect(refused.status).toBe(404);
  const spans = await receiver.trace(caller(31).trace, `POST ${path}`);
  expect(only(spans, `POST ${path}`)).toMatchObject({
    isError: false,
    attributes: { "error.type": "model_not_found" },
  });
  const begun = await eventually(() =>
    receiver.spans.find(
      ({ attributes }) => attributes["inference.account"] === customer.id && attributes["inference.model"],
    ),
  );
  expect(begun).toMatchObject({ parent: undefined });
  expect(receiver.spans.filter((each) => each.trace === trace)).toEqual([]);
});

test("a caller who disconnects ends the trace", async () => {
  const { customer, provider, receiver } = await traced();
  const { opened, open } = gate();
  onTestFinished(open);
  provider.respond({ beforeEvent: { 3: opened } });
  const { trace, traceparent } = caller(40);
  const controller = new AbortController();
  const body = { ...asking(providerModel), stream: true };
  const response = await customer.post(path, body, { headers: { traceparent }, signal: controller.signal });
  await response.body?.getReader().read();
  controller.abort();
  const spans = await receiver.trace(trace, `POST ${path}`, "process chat");
  expect(only(spans, `POST ${path}`).attributes["inference.disconnected"]).toBe(true);
  expect(only(spans, inference)).toMatchObject({ isError: false, attributes: { "inference.outcome": "cancelled" } });
  expect(only(spans, "process chat").attributes["inference.status"]).toBe("cancelled");
});

test("a video's submission, each poll and the download are spans of its attempt", async () => {
  const { customer, provider, receiver } = await traced();
  const { trace, traceparent } = caller(50);
  const body = { model: testVideo.id, input: { prompt: "waves" } };
  const answer = await customer.post("/v1/media/generations", body, { headers: { traceparent } });
  expect(answer.status).toBe(200);
  const spans = await receiver.trace(trace, "POST /v1/media/generations", "process media");
  const attempt = only(spans, "generate_content video-1");
  const requests = spans.filter(({ kind, parent }) => kind === "client" && parent === attempt.id);
  expect(requests.map(({ name }) => name)).toEqual(provider.requests.map(({ method }) => method));
  expect(requests.length).toBeGreaterThanOrEqual(3);
});

test("while the receiver hangs, calls are answered as ever", async () => {
  const { service, customer, receiver } = await traced();
  const { opened, open } = gate();
  onTestFinished(open);
  receiver.holdUntil(opened);
  const calls = Array.from({ length: 50 }, () => customer.post(path, asking(localModel)));
  for (const call of calls) expect((await call).status).toBe(200);
  await service.settled();
  open();
  const complete = () => receiver.spans.filter(({ attributes }) => attributes["inference.account"] === customer.id);
  // A request that took too long may be repeated.
  await eventually(() => new Set(complete().map(({ id }) => id)).size === calls.length);
});
