import { randomBytes } from "node:crypto";
import OpenAI, { toFile } from "openai";
import { expect, test } from "vitest";
import {
  askImage,
  askVideo,
  charges,
  expectFiles,
  holdCommands,
  imagesPath,
  jobsPolled,
  keyed,
  maintenance,
  mediaPath,
  type Outcome,
  outcomeOf,
  postAt,
  posts,
  repeated,
  slowVideo,
} from "../support/chaos-generation-setup.ts";
import {
  ask as askChat,
  availableUsd,
  callCounts,
  callsOf,
  path as chatPath,
  fullCostUsd,
  heldWire,
  lost,
  never,
  startProcesses,
  startProvider,
  startTwoApis,
} from "../support/chaos-setup.ts";
import { mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { brokenWire } from "../support/money-proxy.ts";
import { ownServers, type Stores, testStores } from "../support/servers.ts";
import { eventually, ready, shortTimeouts, spawnWorker } from "../support/service.ts";

const dayMs = 24 * 3_600_000;

test("a worker killed while images are made: one clear error, nothing charged, no file remains; repeated, one run is paid", async () => {
  const { stores } = await ownServers({ s3: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const { client, worker } = await startProcesses(stores, env);
  const customer = await client.account("1.00");
  const keeping = await client.account("1.00");
  const retrying = await client.account("1.00");
  const later = await maintenance(stores);

  // One image is already stored, the other never arrives.
  const second = `${provider.url}/second.png`;
  provider.respond(
    { body: { created: 1, data: [{ b64_json: mockPng.toString("base64") }, { url: second }] } },
    { beforeHeaders: never, body: mockPng },
  );
  const plain = outcomeOf(customer.post(imagesPath, askImage({ n: 2 })));
  await provider.request(1);
  expect(await later.objects()).toHaveLength(1);
  provider.always({ beforeHeaders: never });
  const withKey = outcomeOf(keeping.post(imagesPath, askImage(), keyed()));
  const official = new OpenAI({ apiKey: retrying.key, baseURL: `${client.baseUrl}/v1`, maxRetries: 2 });
  const image = official.images.generate(askImage());
  await provider.request(3);

  provider.always();
  worker.kill("SIGKILL");
  await worker.exited;
  await spawnWorker(stores, env);
  const refused = await plain;
  expect(refused).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1", costUsd: null });
  expect(await withKey).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1", replayed: false });
  expect((await image).data).toHaveLength(1);

  const again = await repeated(() => keeping.post(imagesPath, askImage(), keyed()));
  expect(again).toMatchObject({ replayed: false, costUsd: "0.04" });
  await expectFiles(client, again, mockPng);
  expect(await charges(client, customer)).toEqual([]);
  expect(await callsOf(client, customer)).toMatchObject([
    { id: refused.requestId, amount_usd: "0.00", request: { status: "failed", error: "no_capacity" } },
  ]);
  expect(await charges(client, keeping)).toEqual(["-0.04"]);
  expect(await charges(client, retrying)).toEqual(["-0.04"]);
  expect(posts(provider)).toHaveLength(5);
  // The dead attempt's file has a separate record, which deletes it later.
  expect(await later.objects()).toHaveLength(3);
  await later.pass(dayMs + 60_000);
  expect(await later.objects()).toEqual([]);
});

test("a worker killed while images are edited: nothing is charged, and none of the caller's images remains", async () => {
  const { stores } = await ownServers({ s3: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const { client, worker } = await startProcesses(stores, env);
  const customer = await client.account("1.00");
  const later = await maintenance(stores);
  const official = new OpenAI({ apiKey: customer.key, baseURL: `${client.baseUrl}/v1`, maxRetries: 0 });

  provider.always({ beforeHeaders: never });
  const image = await Promise.all(["a.png", "b.png"].map((name) => toFile(mockPng, name)));
  const edit = official.images.edit({ model: "mock/image", prompt: "A fox", image });
  const refused = edit.catch((error: unknown) => error);
  await provider.request(0);
  expect(await later.objects()).toHaveLength(2);

  worker.kill("SIGKILL");
  await worker.exited;
  await spawnWorker(stores, env);
  expect(await refused).toMatchObject({ status: 503, code: "no_capacity" });
  expect(await charges(client, customer)).toEqual([]);
  await eventually(async () => (await later.objects()).length === 0);
});

/** A connection to MongoDB that breaks at the first reads of a collection. */
async function unlucky(stores: Stores, collection: string): Promise<Stores> {
  let times = 4;
  const MONGODB_URI = await brokenWire(stores.MONGODB_URI, ({ find }) =>
    find === collection && times-- > 0 ? "lose the request" : "pass",
  );
  return { ...stores, MONGODB_URI };
}

test("a worker killed while a provider's jobs run: the next one continues them, on the same connections, paid once", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const { client, worker } = await startProcesses(stores, env);
  const plain = await client.account("1.00");
  const keeping = await client.account("1.00");
  provider.always(slowVideo);
  const answers = [
    outcomeOf(plain.post(mediaPath, askVideo())),
    outcomeOf(keeping.post(mediaPath, askVideo({ duration: 2 }), keyed())),
  ];
  await eventually(() => jobsPolled(provider) === 2);

  worker.kill("SIGKILL");
  await worker.exited;
  // The worker does not mistake a lost connection for a missing job.
  await spawnWorker(await unlucky(stores, "generations"), env);
  const [first, second] = await Promise.all(answers);
  expect(first).toMatchObject({ status: 200, costUsd: "0.40" });
  expect(second).toMatchObject({ status: 200, costUsd: "0.20", replayed: false });
  for (const answer of [first, second]) if (answer) await expectFiles(client, answer, mockMp4);
  expect(posts(provider)).toHaveLength(2);
  expect(await charges(client, plain)).toEqual(["-0.40"]);
  expect(await charges(client, keeping)).toEqual(["-0.20"]);
  const again = await outcomeOf(keeping.post(mediaPath, askVideo({ duration: 2 }), keyed()));
  expect(again).toMatchObject({ status: 200, replayed: true, requestId: second?.requestId, body: second?.body });
});

test("a worker killed between capture and answer: a stored answer is delivered, another one is refunded", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const wire = await heldWire(stores.REDIS_URL);
  const workerStores = { ...stores, REDIS_URL: wire.address };
  const { client, worker } = await startProcesses(stores, env, { workerStores });
  const plain = await client.account("1.00");
  const keeping = await client.account("1.00");

  const gate = Promise.withResolvers<void>();
  // Too large for one frame, and for the document that stores it.
  const image = randomBytes(1_100_000);
  const body = { created: 1, data: [{ b64_json: image.toString("base64") }] };
  provider.always({ beforeHeaders: gate.promise, body });
  const ask = askImage({ response_format: "b64_json" });
  const lost = outcomeOf(plain.post(imagesPath, ask));
  const stored = outcomeOf(keeping.post(imagesPath, ask, keyed()));
  await provider.request(1);
  wire.hold();
  gate.resolve();
  await eventually(async () => {
    const captured = await Promise.all([plain, keeping].map((each) => callsOf(client, each)));
    return captured.flat().filter(({ amount_usd }) => amount_usd === "-0.04").length === 2;
  });
  worker.kill("SIGKILL");
  await worker.exited;
  await spawnWorker(stores, env);

  expect(await lost).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1" });
  const answer = await stored;
  expect(answer).toMatchObject({ status: 200, replayed: false, costUsd: "0.04" });
  expect(answer.body.data?.[0]?.b64_json).toBe(image.toString("base64"));
  await client.settled();
  expect(await availableUsd(client, plain)).toBe("1.00");
  expect(await callsOf(client, plain, "refund")).toHaveLength(1);
  expect(await availableUsd(client, keeping)).toBe("0.96");
  expect(posts(provider)).toHaveLength(2);
  const again = await outcomeOf(keeping.post(imagesPath, ask, keyed()));
  expect(again).toMatchObject({ status: 200, replayed: true, requestId: answer.requestId, body: answer.body });
});

test("a worker killed after its answers were stored and before they were captured: they are delivered, and charged then", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortTimeouts);
  let captures = 0;
  const { stores: workerStores } = await holdCommands(stores, ({ insert }) => {
    if (insert === "ledger") captures += 1;
    return insert === "ledger";
  });
  const { client, worker } = await startProcesses(stores, env, { workerStores });
  const accounts = [await client.account("1.00"), await client.account("1.00")] as const;
  const calls = [
    { customer: accounts[0], path: imagesPath, ask: askImage(), costUsd: "0.04" },
    { customer: accounts[1], path: chatPath, ask: askChat(), costUsd: fullCostUsd },
  ];
  const answers = calls.map(({ customer, path, ask }) => outcomeOf(customer.post(path, ask, keyed())));
  await eventually(() => captures === 2);
  worker.kill("SIGKILL");
  await worker.exited;
  await spawnWorker(stores, env);
  for (const [index, { customer, path, ask, costUsd }] of calls.entries()) {
    const outcome = (await answers[index]) as Outcome;
    expect(outcome).toMatchObject({ status: 200, costUsd, replayed: false });
    if (path === imagesPath) await expectFiles(client, outcome, mockPng);
    const { body } = outcome;
    expect(await outcomeOf(customer.post(path, ask, keyed()))).toMatchObject({ replayed: true, costUsd, body });
    expect(await charges(client, customer)).toEqual([`-${costUsd}`]);
  }
  expect(posts(provider)).toHaveLength(2);
});

test("a stored answer stays paid though its caller is gone and MongoDB is unavailable to the next worker", async () => {
  const shared = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const wire = await heldWire(shared.REDIS_URL);
  const workerStores = { ...shared, REDIS_URL: wire.address };
  const { api, worker, client, redis } = await startTwoApis(shared, env, { workerStores });
  const customer = await client.account("1.00");
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const disconnected = lost(postAt(api.client, customer)(imagesPath, askImage(), keyed()));
  await provider.request(0);
  wire.hold();
  gate.resolve();
  await eventually(async () => (await callsOf(client, customer)).length === 1);
  api.kill("SIGKILL");
  worker.kill("SIGKILL");
  expect(await disconnected).toBe(true);
  await worker.exited;
  // Maintenance reads that collection too.
  const next = await spawnWorker(await unlucky(shared, "detachedCalls"), { ...env, WORKER_POOLS: "image" });
  await next.line(({ msg }) => msg === "the state of an earlier delivery could not be read; retrying");
  await spawnWorker(shared, env);
  await eventually(async () => (await callCounts(redis, "image")).active === 0);
  await ready(client);
  const answer = await outcomeOf(customer.post(imagesPath, askImage(), keyed()));
  expect(answer).toMatchObject({ status: 200, replayed: true, costUsd: "0.04" });
  expect(await charges(client, customer)).toEqual(["-0.04"]);
  expect(await callsOf(client, customer, "refund")).toEqual([]);
  expect(await availableUsd(client, customer)).toBe("0.96");
  expect(posts(provider)).toHaveLength(1);
});

test("SIGTERM to a worker with a provider's job past its grace time: another one ends it; a call without a job gets an error", async () => {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider(shortTimeouts);
  const worker = { DRAIN_GRACE: "0.2" };
  const { client, worker: stopping } = await startProcesses(stores, env, { worker });
  const plain = await client.account("1.00");
  const keeping = await client.account("1.00");
  const hopeless = await client.account("1.00");
  provider.always(slowVideo);
  const answers = [
    outcomeOf(plain.post(mediaPath, askVideo())),
    outcomeOf(keeping.post(mediaPath, askVideo(), keyed())),
  ];
  await eventually(() => jobsPolled(provider) === 2);
  provider.respondTo(`POST ${imagesPath}`, { beforeHeaders: never });
  const image = outcomeOf(hopeless.post(imagesPath, askImage(), keyed()));
  const asked = await eventually(() => posts(provider).find((request) => request.path === imagesPath));
  await spawnWorker(stores, env);

  stopping.kill("SIGTERM");
  expect(await stopping.exited).toBe(0);
  expect(await image).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1" });
  expect(asked.aborted).toBe(true);
  for (const answer of await Promise.all(answers)) {
    expect(answer).toMatchObject({ status: 200, costUsd: "0.40" });
    await expectFiles(client, answer, mockMp4);
  }
  expect(posts(provider)).toHaveLength(3);
  expect(provider.requests.filter(({ method }) => method === "DELETE")).toEqual([]);
  for (const customer of [plain, keeping]) {
    expect(await charges(client, customer)).toEqual(["-0.40"]);
    expect(await callsOf(client, customer)).toHaveLength(1);
  }
  const again = await repeated(() => hopeless.post(imagesPath, askImage(), keyed()));
  expect(again.replayed).toBe(false);
  expect(await charges(client, hopeless)).toEqual(["-0.04"]);
});
