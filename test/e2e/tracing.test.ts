import { expect, onTestFinished, test } from "vitest";
import { startMockOpenai } from "../support/mock-openai.ts";
import { caller, startOtlpReceiver, treeOf } from "../support/otlp-receiver.ts";
import { testStores } from "../support/servers.ts";
import { ready, spawnApi, spawnWorker } from "../support/service.ts";
import { asking, never, providerModel } from "../support/service-setup.ts";

const path = "/v1/chat/completions";
const inference = `chat ${providerModel.replace("openai/", "")}`;

test("over processes a call is one trace, which the log names and a second delivery joins", async () => {
  const stores = await testStores();
  const receiver = await startOtlpReceiver();
  const provider = await startMockOpenai();
  onTestFinished(() => provider.close());
  const env = { ...receiver.env, OPENAI_API_KEY: "sk-operator", OPENAI_BASE_URL: provider.url };
  const [api, worker] = await Promise.all([spawnApi(stores, env), spawnWorker(stores, env)]);
  await ready(api.client);
  const customer = await api.client.account("1");
  const { trace, span, traceparent } = caller(1);
  const call = (header: string) => customer.post(path, asking(providerModel), { headers: { traceparent: header } });

  expect((await call(traceparent)).status).toBe(200);
  const spans = await receiver.trace(trace, `POST ${path}`, "process chat");
  expect(treeOf(spans)).toEqual([
    [`POST ${path}`, ["admission", "queue chat", ["process chat", [[inference, ["POST"]], "decide"]]]],
  ]);
  expect(spans.find(({ kind }) => kind === "server")).toMatchObject({ service: "inference-api", parent: span });
  expect(spans.find(({ kind }) => kind === "consumer")).toMatchObject({ service: "inference-worker" });
  const ended = await api.line(({ msg }) => msg === "call");
  expect(ended).toMatchObject({ trace_id: trace, span_id: spans.find(({ kind }) => kind === "server")?.id });

  const second = caller(2);
  provider.respond({ beforeHeaders: never });
  const answer = call(second.traceparent);
  await provider.request(1);
  worker.kill("SIGKILL");
  const other = await spawnWorker(stores, env);
  expect((await answer).status).toBe(503);
  const joined = await receiver.trace(second.trace, `POST ${path}`, "process chat");
  expect(joined.find(({ name }) => name === "process chat")).toMatchObject({
    isError: true,
    parent: joined.find(({ kind }) => kind === "server")?.id,
    attributes: { "inference.delivery": 2 },
  });
  const withoutRun = await other.line(({ msg }) => msg === "a call ended without being run here");
  expect(withoutRun).toMatchObject({ trace_id: second.trace });

  // What is waiting is sent when a process ends.
  const third = caller(3);
  expect((await call(third.traceparent)).status).toBe(200);
  for (const process of [api, other]) process.kill("SIGTERM");
  expect(await Promise.all([api.exited, other.exited])).toEqual([0, 0]);
  expect(receiver.spans.filter((each) => each.trace === third.trace).length).toBe(spans.length);
  expect(receiver.refused).toEqual([]);
});
