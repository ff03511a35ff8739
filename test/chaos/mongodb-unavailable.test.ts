import { mongo } from "mongoose";
import { expect, onTestFinished, test } from "vitest";
import type { Server } from "../../infra/embedded/index.ts";
import {
  ask,
  availableUsd,
  balanceAfter,
  callCounts,
  callsOf,
  heldWire,
  isWhole,
  loseAnswers,
  outcomeOf,
  path,
  read,
  redisOf,
  startProcesses,
  startProvider,
  worksAgain,
} from "../support/chaos-setup.ts";
import { browse, signIn } from "../support/dashboard-setup.ts";
import { ownServers } from "../support/servers.ts";
import { eventually, shortApiTimeout, spawnApi, testAdminToken } from "../support/service.ts";

test("MongoDB stopped and started: new calls get 503 soon, finished calls wait for their capture", async () => {
  const { mongo, stores } = await ownServers({ mongo: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env);
  const customer = await client.account("1.00");
  const other = await client.account("1.00");
  const redis = redisOf(stores);

  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeEvent: { 4: gate.promise } }, { beforeHeaders: gate.promise });
  const stream = read(await customer.post(path, ask({ stream: true })));
  let answered = false;
  const json = outcomeOf(customer.post(path, ask())).finally(() => {
    answered = true;
  });
  await Promise.all([stream.sees(4), provider.request(1)]);

  await mongo.stop();
  gate.resolve();
  await Promise.all(provider.requests.map(({ closed }) => closed));
  // The key of one call is cached, and that of another would have to be looked up.
  for (const each of [customer, other, customer]) {
    const refused = await outcomeOf(each.post(path, ask()));
    expect(refused).toMatchObject({ status: 503, code: "no_capacity" });
    expect(Number(refused.retryAfter)).toBeGreaterThan(0);
  }
  // The provider has answered, but nothing is settled: no response is sent, no job is acknowledged.
  expect(answered).toBe(false);
  expect(stream.done()).toBe(false);
  expect((await callCounts(redis, "chat")).active).toBe(2);
  await mongo.start();

  expect(await json).toMatchObject({ status: 200 });
  expect(await stream.ended).toBe("closed");
  expect(isWhole(stream)).toBe(true);
  await worksAgain(customer);
  await client.settled();
  await eventually(async () => (await callCounts(redis, "chat")).active === 0);
  expect(provider.requests).toHaveLength(3);
  expect(await availableUsd(client, customer)).toBe(balanceAfter(3));
  expect(await availableUsd(client, other)).toBe("1.00");
});

test("MongoDB unavailable when an API learns of a lost answer: the caller gets the error, and a refund", async () => {
  const { mongo, stores } = await ownServers({ mongo: true });
  const { provider, env } = await startProvider(shortApiTimeout);
  const wire = await heldWire(stores.REDIS_URL);
  const apiStores = { ...stores, REDIS_URL: wire.address };
  const { client } = await startProcesses(stores, env, { apiStores });
  const customer = await client.account("1.00");
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const json = outcomeOf(customer.post(path, ask()));
  await provider.request(0);
  wire.hold();
  gate.resolve();
  await client.settled();
  expect(await availableUsd(client, customer)).toBe(balanceAfter(1));

  const calls = await callsOf(client, customer);
  await loseAnswers(
    redisOf(stores),
    calls.map(({ id }) => id),
  );
  await mongo.stop();
  wire.reconnect();
  await mongo.start();
  expect(await json).toMatchObject({ status: 503, code: "no_capacity" });
  await eventually(async () => (await availableUsd(client, customer)) === "1.00");
  expect(await callsOf(client, customer, "refund")).toHaveLength(1);
  await client.settled();
});

interface Held {
  readonly server: Server;
  readonly uri: string;
}

/** Makes MongoDB answer only heartbeats, as with a held lock or a silently lost connection. */
async function holdOperations(uri: string): Promise<void> {
  const client = await mongo.MongoClient.connect(uri);
  onTestFinished(() => client.close());
  const failCommands = ["find", "aggregate", "insert", "update", "delete", "findAndModify"];
  const data = { failCommands, blockConnection: true, blockTimeMS: 10_000 };
  await client.db("admin").command({ configureFailPoint: "failCommand", mode: "alwaysOn", data });
}

test.for([
  ["frozen", ({ server }: Held) => server.kill("SIGSTOP")],
  ["silent", ({ uri }: Held) => holdOperations(uri)],
] as const)(
  "MongoDB %s: revoking a key, freezing an account and signing out get 503 while it hangs",
  async ([, hold]) => {
    const { mongo: server, stores } = await ownServers({ mongo: true });
    const { client } = await spawnApi(stores);
    const { id, key } = await client.account("1.00");
    const manager = await client.admin<{ key: string; id: string }>("POST", `/accounts/${id}/keys`, {
      scopes: ["manage"],
    });
    const cookie = await signIn(client, { key });
    const withKey = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } });
    const requests = [
      ["DELETE", `/v1/keys/${manager.id}`, withKey(manager.key)],
      ["DELETE", `/admin/v1/keys/${manager.id}`, withKey(testAdminToken)],
      ["PATCH", `/admin/v1/accounts/${id}`, { ...withKey(testAdminToken), body: { frozen: true } }],
      ["DELETE", "/dashboard/session?kind=account", { cookie, headers: { "sec-fetch-site": "same-origin" } }],
    ] as const;
    // Cache the key, so that only its revocation hangs.
    await browse(client, "GET", "/v1/key", withKey(manager.key));

    await hold({ server, uri: stores.MONGODB_URI });
    const changes = requests.map(async ([method, path, request]) => {
      const { status, headers, body } = await browse(client, method, path, request);
      return { status, code: body.error?.code, retryAfter: headers.get("retry-after") };
    });
    const refused = { status: 503, code: "no_capacity", retryAfter: "1" };
    expect(await Promise.all(changes)).toEqual(requests.map(() => refused));
    await server.kill("SIGCONT");
  },
);
