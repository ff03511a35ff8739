import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import {
  askImage,
  askVideo,
  charges,
  expectFiles,
  imagesPath,
  isRefusal,
  keyed,
  maintenance,
  mediaPath,
  type Outcome,
  outcomeOf,
  posts,
  repeated,
} from "../support/chaos-generation-setup.ts";
import {
  callsOf,
  heldWire,
  loseAnswers,
  onlyCall,
  redisOf,
  restartEmpty,
  startProcesses,
  startProvider,
} from "../support/chaos-setup.ts";
import { mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { ownServers } from "../support/servers.ts";
import { type Customer, eventually, shortApiTimeout } from "../support/service.ts";

const dayMs = 24 * 3_600_000;

test("S3 stopped before and during generations: a clear 503 that costs nothing; started again it works", async () => {
  const { s3, stores } = await ownServers({ s3: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env);
  const later = await maintenance(stores);
  const [customer, keeping] = await Promise.all([client.account("1.00"), client.account("1.00")]);
  const large = askImage({ response_format: "b64_json" });
  const body = { created: 1, data: [{ b64_json: randomBytes(1_100_000).toString("base64") }] };

  const gate = Promise.withResolvers<void>();
  provider.respond(
    { beforeHeaders: gate.promise },
    { beforeHeaders: gate.promise, body },
    {},
    { beforeHeaders: gate.promise },
  );
  const image = outcomeOf(customer.post(imagesPath, askImage()));
  await provider.request(0);
  // S3 stores its response.
  const stored = outcomeOf(keeping.post(imagesPath, large, keyed()));
  await provider.request(1);
  const video = outcomeOf(customer.post(mediaPath, askVideo()));
  await provider.request(3);

  await s3.stop();
  const before = await outcomeOf(customer.post(imagesPath, askImage()));
  gate.resolve();
  for (const refused of [before, await image, await video, await stored]) {
    expect(isRefusal(refused)).toBe(true);
    expect(refused).toMatchObject({ code: "no_capacity", costUsd: null });
    expect(refused.body.error?.message).toMatch(/storage/i);
  }
  expect(posts(provider)).toHaveLength(3);
  expect(await charges(client, customer)).toEqual([]);
  expect(await charges(client, keeping)).toEqual([]);
  // The provider's job is no longer needed, so it is canceled.
  await eventually(() => provider.requests.some(({ method }) => method === "DELETE"));

  await s3.start();
  await expectFiles(client, await outcomeOf(customer.post(imagesPath, askImage())), mockPng);
  provider.respond({ body });
  for (const replayed of [false, true]) {
    const answer = await outcomeOf(keeping.post(imagesPath, large, keyed()));
    expect({ status: answer.status, replayed: answer.replayed }).toEqual({ status: 200, replayed });
    expect(answer.body.data?.[0]?.b64_json === body.data[0]?.b64_json).toBe(true);
  }
  expect(await charges(client, customer)).toEqual(["-0.04"]);
  expect(await charges(client, keeping)).toEqual(["-0.04"]);
  // One image, and one stored response.
  expect(await later.objects()).toHaveLength(2);
  await later.pass(dayMs + 60_000);
  await later.files.expireBodies();
  expect(await later.objects()).toEqual([]);
});

test("Redis stopped and started during a call with a key: the same instance answers it, and it is charged once", async () => {
  const { redis, stores } = await ownServers({ redis: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env);
  const customer = await client.account("1.00");
  const gate = Promise.withResolvers<void>();
  provider.respond({}, { beforeHeaders: gate.promise });
  const post = () => customer.post(mediaPath, askVideo(), keyed());
  const answer = outcomeOf(post());
  await provider.request(1);
  await redis.stop();
  // Repeats count towards the key's limits, which cannot be checked now.
  for (const key of ["once", "another"])
    expect(isRefusal(await outcomeOf(customer.post(mediaPath, askVideo(), keyed(key))))).toBe(true);
  gate.resolve();
  await eventually(async () => (await callsOf(client, customer)).length === 1);
  await redis.start();
  const outcome = await answer;
  expect(outcome).toMatchObject({ status: 200, costUsd: "0.40", replayed: false });
  await expectFiles(client, outcome, mockMp4);
  const again = await repeated(post);
  expect(again).toMatchObject({ status: 200, replayed: true, requestId: outcome.requestId, body: outcome.body });
  expect(await charges(client, customer)).toEqual(["-0.40"]);
  expect(posts(provider)).toHaveLength(1);
});

/** A call with a key that waits for its provider, at an API whose wire to Redis can be held. */
async function heldCall() {
  const { stores } = await ownServers({ redis: true });
  // The worker renews nothing during the test, so it does not notice that Redis lost its job.
  const { provider, env } = await startProvider({ ...shortApiTimeout, JOB_LOCK_MS: "30000" });
  const wire = await heldWire(stores.REDIS_URL);
  const apiStores = { ...stores, REDIS_URL: wire.address };
  const { client } = await startProcesses(stores, env, { apiStores });
  const customer = await client.account("1.00");
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const post = () => customer.post(imagesPath, askImage(), keyed());
  const answer = outcomeOf(post());
  await provider.request(0);
  wire.hold();
  /** Resolves with the call's id once its answer is stored and charged. */
  const end = async () => {
    gate.resolve();
    return (await onlyCall(client, customer)).id;
  };
  const expectOneRun = async () => {
    const { status, requestId, body } = await answer;
    const again = await repeated(post);
    expect(again).toMatchObject({ replayed: true, requestId, ...(status === 200 && { body }) });
    await expectFiles(client, again, mockPng);
    expect(await charges(client, customer)).toEqual(["-0.04"]);
    expect(posts(provider)).toHaveLength(1);
  };
  return { stores, wire, answer, end, expectOneRun };
}

test("Redis comes back empty during a call with a key: a repeated call gets its answer, and one run is charged", async () => {
  const { stores, wire, answer, end, expectOneRun } = await heldCall();
  await restartEmpty(stores);
  await end();
  wire.reconnect();
  const outcome = await answer;
  // The API gives the worker a second to write the answer of a lost job.
  expect([outcome.status === 200 || isRefusal(outcome), outcome.replayed]).toEqual([true, false]);
  await expectOneRun();
});

test("the answer of a call with a key is lost after its charge: 503 promises it, and a repeated call gets it", async () => {
  const { stores, wire, answer, end, expectOneRun } = await heldCall();
  await loseAnswers(redisOf(stores), [await end()]);
  wire.reconnect();
  expect(await answer).toMatchObject({ status: 503, code: "generation_in_progress", costUsd: null });
  await expectOneRun();
});

test("MongoDB stopped at any step of a generation and started again: an answer or a clear 503, and one run is charged", async () => {
  const { mongo, stores } = await ownServers({ mongo: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env);
  const gate = Promise.withResolvers<void>();
  const waiting = { beforeHeaders: gate.promise };
  const calls: { customer: Customer; answer: Promise<Outcome> }[] = [];
  const post = (customer: Customer) => outcomeOf(customer.post(mediaPath, askVideo(), keyed()));
  // The call's request of this number waits: the submission, the poll, or the fetch of the file.
  for (const step of [0, 1, 2]) {
    const customer = await client.account("1.00");
    const before = provider.requests.length;
    provider.respond(...Array.from({ length: step }, () => ({})), waiting);
    calls.push({ customer, answer: post(customer) });
    await provider.request(before + step);
  }
  await mongo.stop();
  gate.resolve();
  for (const meanwhile of await Promise.all(calls.map(({ customer }) => post(customer))))
    expect(isRefusal(meanwhile)).toBe(true);
  await mongo.start();
  for (const { customer, answer } of calls) {
    const outcome = await answer;
    expect(outcome.status === 200 || isRefusal(outcome)).toBe(true);
    const again = await repeated(() => customer.post(mediaPath, askVideo(), keyed()));
    expect(again.replayed).toBe(outcome.status === 200);
    await expectFiles(client, again, mockMp4);
    expect(await charges(client, customer)).toEqual(["-0.40"]);
  }
});
