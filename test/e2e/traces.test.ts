import { expect, onTestFinished, test } from "vitest";
import { startMockOpenai } from "../support/mock-openai.ts";
import { caller, startOtlpReceiver, treeOf } from "../support/otlp-receiver.ts";
import { testStores } from "../support/servers.ts";
import { eventually, ready, spawnApi, spawnWorker } from "../support/service.ts";
import { asking, never, providerModel } from "../support/service-setup.ts";

const path = "/v1/chat/completions";
const inference = `chat ${providerModel.replace("openai/", "")}`;

test("over processes a call is one trace, which their logs name, a second delivery joins, and SIGTERM sends", async () => {
  const stores = await testStores({ oneServer: true });
  const receiver = await startOtlpReceiver();
  const provider = await startMockOpenai();
  onTestFinished(() => provider.close());
  const env = { ...receiver.env, OPENAI_API_KEY: "sk-operator", OPENAI_BASE_URL: provider.url };
  const [api, worker] = await Promise.all([spawnApi(stores, env), spawnWorker(stores, env)]);
  await ready(api.client);
  const customer = await api.client.account("1");
  const call = (traceparent: string) => customer.post(path, asking(providerModel), { headers: { traceparent } });

  const first = caller(1);
  expect((await call(first.traceparent)).status).toBe(200);
  const spans = await receiver.trace(first.trace, `POST ${path}`, "process chat");
  expect(treeOf(spans)).toEqual([
    [`POST ${path}`, ["admission", "queue chat", ["process chat", [[inference, ["POST"]], "capture"]]]],
  ]);
  const [server, consumer] = ["server", "consumer"].map((kind) => spans.find((span) => span.kind === kind));
  expect(server).toMatchObject({ service: "inference-api", parent: first.span });
  expect(consumer).toMatchObject({ service: "inference-worker", parent: server?.id });
  const ended = await api.line(({ msg }) => msg === "call");
  expect(ended).toMatchObject({ trace_id: first.trace, span_id: server?.id });

  const second = caller(2);
  provider.respond({ beforeHeaders: never });
  const answer = call(second.traceparent);
  await provider.request(1);
  worker.kill("SIGKILL");
  await worker.exited;
  const other = await spawnWorker(stores, env);
  expect((await answer).status).toBe(503);
  const joined = await receiver.trace(second.trace, `POST ${path}`, "process chat");
  expect(joined.find(({ name }) => name === "process chat")).toMatchObject({
    isError: true,
    parent: joined.find(({ kind }) => kind === "server")?.id,
    attributes: { "inference.delivery": 2 },
  });
  const withoutRun = await other.line(({ msg }) => msg === "a call was ended without running it");
  expect(withoutRun).toMatchObject({ trace_id: second.trace });

  // The outcome of the call is unknown, so its upstream may be avoided for a while: the next call then waits for it.
  const third = await eventually(async () => {
    const { trace, traceparent } = caller(3 + provider.requests.length);
    return (await call(traceparent)).status === 200 ? trace : undefined;
  });
  for (const process of [api, other]) process.kill("SIGTERM");
  expect(await Promise.all([api.exited, other.exited])).toEqual([0, 0]);
  expect(receiver.spans.filter(({ trace }) => trace === third).length).toBe(spans.length);
  expect(receiver.refused).toEqual([]);
});
