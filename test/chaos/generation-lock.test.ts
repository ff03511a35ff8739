import { expect, test } from "vitest";
import {
  askVideo,
  charges,
  expectFiles,
  jobsPolled,
  keyed,
  mediaPath,
  outcomeOf,
  posts,
} from "../support/chaos-generation-setup.ts";
import { callsOf, heldWire, startProcesses, startProvider } from "../support/chaos-setup.ts";
import { mockMp4 } from "../support/mock-openai-media.ts";
import { brokenWire } from "../support/money-proxy.ts";
import { testStores } from "../support/servers.ts";
import { eventually, shortTimeouts, spawnWorker } from "../support/service.ts";

test("a worker that pauses longer than its locks last: the provider's job is ended by another, answered and paid once", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const { client, worker } = await startProcesses(stores, env);
  const [plain, keeping] = await Promise.all([client.account("1.00"), client.account("1.00")]);
  provider.always({ states: ["in_progress", "completed"] });
  const answers = [
    outcomeOf(plain.post(mediaPath, askVideo())),
    outcomeOf(keeping.post(mediaPath, askVideo(), keyed())),
  ];
  await eventually(() => jobsPolled(provider) === 2);
  worker.kill("SIGSTOP");
  await spawnWorker(stores, env);
  const [first, second] = await Promise.all(answers);
  for (const answer of [first, second]) {
    expect(answer).toMatchObject({ status: 200, costUsd: "0.40" });
    if (answer) await expectFiles(client, answer, mockMp4);
  }
  await client.settled();

  // The resumed worker must do no harm with the state that it still has.
  worker.kill("SIGCONT");
  worker.kill("SIGTERM");
  expect(await worker.exited).toBe(0);
  expect(provider.requests.filter(({ method }) => method === "DELETE")).toEqual([]);
  expect(posts(provider)).toHaveLength(2);
  for (const customer of [plain, keeping]) {
    expect(await charges(client, customer)).toEqual(["-0.40"]);
    expect(await callsOf(client, customer, "refund")).toEqual([]);
  }
  const again = await outcomeOf(keeping.post(mediaPath, askVideo(), keyed()));
  expect(again).toMatchObject({ status: 200, replayed: true, requestId: second?.requestId, body: second?.body });
  if (second) await expectFiles(client, second, mockMp4);
});

test("a worker cut off from Redis ends a call that another one has ended: the delivered answer is the stored one", async () => {
  const shared = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const wire = await heldWire(shared.REDIS_URL);
  const late = Promise.withResolvers<void>();
  const MONGODB_URI = await brokenWire(shared.MONGODB_URI, ({ insert }) => {
    if (insert === "ledger") late.resolve();
    return "pass";
  });
  const workerStores = { ...shared, MONGODB_URI, REDIS_URL: wire.address };
  const { client } = await startProcesses(shared, env, { workerStores });
  const customer = await client.account("1.00");
  const post = () => customer.post(mediaPath, askVideo(), keyed());
  const gate = Promise.withResolvers<void>();
  provider.respond({}, {}, { beforeHeaders: gate.promise });
  const answer = outcomeOf(post());
  await provider.request(2);
  wire.hold();
  await spawnWorker(shared, env);
  const outcome = await answer;
  expect(outcome).toMatchObject({ status: 200, replayed: false });

  gate.resolve();
  await late.promise;
  await client.settled();
  expect(await outcomeOf(post())).toMatchObject({ status: 200, replayed: true, body: outcome.body });
  expect(await charges(client, customer)).toEqual(["-0.40"]);
  expect(posts(provider)).toHaveLength(1);
});
