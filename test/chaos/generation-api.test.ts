import { expect, test } from "vitest";
import {
  askImage,
  charges,
  expectFiles,
  holdCommands,
  imagesPath,
  keyed,
  outcomeOf,
  postAt,
  posts,
  repeated,
} from "../support/chaos-generation-setup.ts";
import {
  availableUsd,
  callsOf,
  heldWire,
  lost,
  ready,
  restartEmpty,
  startProcesses,
  startProvider,
  startTwoApis,
} from "../support/chaos-setup.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { brokenWire } from "../support/money-proxy.ts";
import { ownServers, type Stores, testStores } from "../support/servers.ts";
import { eventually, shortApiTimeout } from "../support/service.ts";

/** Starts a worker and two API instances: one to damage, whose lease is returned, and one to switch to. */
async function startTwo(only: Parameters<typeof startProcesses>[2] = {}, given?: Stores) {
  const stores = given ?? (await testStores({ oneServer: true }));
  const { provider, env } = await startProvider(shortApiTimeout);
  const { api, client, leaseEnded } = await startTwoApis(stores, env, only);
  const customer = await client.account("1.00");
  const post = () => customer.post(imagesPath, askImage(), keyed());
  const postThere = (init: { headers?: Record<string, string> } = keyed()) =>
    postAt(api.client, customer)(imagesPath, askImage(), init);
  return { stores, provider, api, client, customer, post, postThere, leaseEnded };
}

test("an API killed: calls with a key continue, and another instance answers them, while they run and later", async () => {
  const { provider, api, client, customer, post, postThere, leaseEnded } = await startTwo();
  const later = await client.account("1.00");
  const gate = Promise.withResolvers<void>();
  provider.always({ beforeHeaders: gate.promise });
  const disconnected = [lost(postThere())];
  await provider.request(0);
  disconnected.push(lost(postThere({})));
  const [withKey, without] = [await provider.request(0), await provider.request(1)];
  disconnected.push(lost(postAt(api.client, later)(imagesPath, askImage(), keyed())));
  await provider.request(2);
  api.kill("SIGKILL");
  expect(await Promise.all(disconnected)).toEqual([true, true, true]);
  const joining = [outcomeOf(post()), outcomeOf(post())];
  await leaseEnded();
  await without.closed;
  expect(without.aborted).toBe(true);
  joining.push(outcomeOf(post()));
  gate.resolve();

  const [first, ...others] = await Promise.all(joining);
  expect(first).toMatchObject({ status: 200, replayed: true, costUsd: "0.04" });
  if (first) await expectFiles(client, first, mockPng);
  expect(withKey.aborted).toBe(false);
  others.push(await outcomeOf(post()));
  for (const { status, replayed, requestId, body } of others)
    expect({ status, replayed, requestId, body }).toEqual({
      status: 200,
      replayed: true,
      requestId: first?.requestId,
      body: first?.body,
    });
  expect(await charges(client, customer)).toEqual(["-0.04"]);
  expect(await callsOf(client, customer)).toHaveLength(2);

  // Nobody asked for this answer until it was stored.
  expect(await charges(client, later)).toEqual(["-0.04"]);
  const stored = await outcomeOf(later.post(imagesPath, askImage(), keyed()));
  expect(stored).toMatchObject({ status: 200, replayed: true, costUsd: "0.04" });
  expect(await availableUsd(client, later)).toBe("0.96");
  for (const each of [customer, later]) expect(await callsOf(client, each, "refund")).toEqual([]);
  expect(posts(provider)).toHaveLength(3);
});

/** An API that was killed when it had written the hold of a call, and another one. */
async function killedBeforeQueue(headers: Record<string, string>) {
  const shared = await testStores({ oneServer: true });
  const wire = await heldWire(shared.REDIS_URL);
  // The hold is written and everything after it is lost, whether the job or the settlement of a disconnected call.
  const { stores } = await holdCommands(shared, ({ update, insert }) => {
    if (update === "accounts") wire.hold();
    return insert === "ledger";
  });
  const { provider, env } = await startProvider(shortApiTimeout);
  const apiStores = { ...stores, REDIS_URL: wire.address };
  const survivor = { MEDIA_SYNC_TIMEOUT: "1" };
  const { api, client, leaseEnded } = await startTwoApis(shared, env, { apiStores, survivor });
  const customer = await client.account("1.00");
  const disconnected = lost(postAt(api.client, customer)(imagesPath, askImage(), { headers }));
  await eventually(async () => (await client.check()).open_holds === 1);
  api.kill("SIGKILL");
  expect(await disconnected).toBe(true);
  return { provider, client, customer, leaseEnded };
}

test("an API killed between hold and queue: its hold is released, and a repeated call with its key runs after the lease", async () => {
  const { provider, client, customer, leaseEnded } = await killedBeforeQueue(keyed().headers);
  const post = () => customer.post(imagesPath, askImage(), keyed());
  const waiting = await outcomeOf(post());
  expect(waiting).toMatchObject({ status: 503, code: "generation_in_progress", retryAfter: "5" });
  await leaseEnded();
  const answer = await repeated(post);
  expect(answer.costUsd).toBe("0.04");
  // The response is sent once its cost is in the ledger; the balance may follow a moment later.
  await client.settled();
  expect(await charges(client, customer)).toEqual(["-0.04"]);
  expect(await availableUsd(client, customer)).toBe("0.96");
  expect(posts(provider)).toHaveLength(1);

  const plain = await killedBeforeQueue({});
  await eventually(async () => (await availableUsd(plain.client, plain.customer)) === "1.00");
  expect(await callsOf(plain.client, plain.customer)).toMatchObject([{ amount_usd: "0.00" }]);
  expect(posts(plain.provider)).toHaveLength(0);
});

test("an API killed and Redis emptied: a repeated call runs again, and only one of the two runs is charged", async () => {
  const { stores } = await ownServers({ redis: true });
  const { provider, api, client, customer, post, postThere } = await startTwo({}, stores);
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const disconnected = lost(postThere());
  await provider.request(0);
  api.kill("SIGKILL");
  expect(await disconnected).toBe(true);
  await restartEmpty(stores);
  await ready(client);
  const answer = await repeated(post);
  expect(answer.replayed).toBe(false);
  gate.resolve();
  expect(await charges(client, customer)).toEqual(["-0.04"]);
  expect(await callsOf(client, customer)).toHaveLength(2);
  expect(await outcomeOf(post())).toMatchObject({ status: 200, replayed: true, body: answer.body });
  expect(posts(provider)).toHaveLength(2);
});

test("a key that was stored although its caller got an error does not stay taken", async () => {
  const stores = await testStores({ oneServer: true });
  let isLosing = true;
  const wire = await brokenWire(stores.MONGODB_URI, ({ insert }) =>
    insert === "idempotency" && isLosing ? "lose the answer" : "pass",
  );
  const { provider, env } = await startProvider(shortApiTimeout);
  const apiStores = { ...stores, MONGODB_URI: wire };
  const { client } = await startProcesses(stores, { ...env, MEDIA_SYNC_TIMEOUT: "20" }, { apiStores });
  const customer = await client.account("1.00");
  const post = () => customer.post(imagesPath, askImage(), keyed());
  expect(await outcomeOf(post())).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1" });
  isLosing = false;
  expect(await outcomeOf(post())).toMatchObject({ status: 200, replayed: false });
  expect(await charges(client, customer)).toEqual(["-0.04"]);
  expect(posts(provider)).toHaveLength(1);
});

test("a key that is stored long after its caller got an error does not stay taken", async () => {
  const shared = await testStores({ oneServer: true });
  const released = Promise.withResolvers<void>();
  const { stores, letThrough } = await holdCommands(shared, (command) => {
    if (command["delete"] === "idempotency") released.resolve();
    return command["insert"] === "idempotency";
  });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(shared, { ...env, MEDIA_SYNC_TIMEOUT: "20" }, { apiStores: stores });
  const customer = await client.account("1.00");
  const post = () => customer.post(imagesPath, askImage(), keyed());
  expect(await outcomeOf(post())).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1" });
  await released.promise;
  await client.check();
  letThrough();
  await client.check();
  expect(await outcomeOf(post())).toMatchObject({ status: 200, replayed: false });
  expect(await charges(client, customer)).toEqual(["-0.04"]);
  expect(posts(provider)).toHaveLength(1);
});

test("SIGTERM to an API past its grace time: 503 now, and the answer from another instance", async () => {
  const { provider, api, client, customer, post, postThere } = await startTwo({ api: { DRAIN_GRACE: "0.2" } });
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const running = outcomeOf(postThere());
  await provider.request(0);
  const joined = outcomeOf(postThere());
  // The API answers a later request, so it has received the earlier one.
  await ready(api.client);
  api.kill("SIGTERM");
  for (const answer of [running, joined])
    expect(await answer).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1" });
  expect(await api.exited).toBe(0);
  const answer = outcomeOf(post());
  gate.resolve();
  expect(await answer).toMatchObject({ status: 200, replayed: true, costUsd: "0.04" });
  expect(await charges(client, customer)).toEqual(["-0.04"]);
  expect(await callsOf(client, customer)).toHaveLength(1);
  expect(posts(provider)).toHaveLength(1);
});
