import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import {
  holdCommands,
  isRefusal,
  keyed,
  maintenance,
  outcomeOf,
  postAt,
  repeated,
} from "../support/chaos-generation-setup.ts";
import { availableUsd, callsOf, lost, startProcesses, startTwoApis } from "../support/chaos-setup.ts";
import {
  bytes,
  costUsd,
  uploadEnv as env,
  held,
  path,
  sendHalf,
  upload,
  video,
} from "../support/chaos-uploads-setup.ts";
import { ownServers } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

const hourMs = 3_600_000;

test("an API killed in the middle of an upload: its hold is released, and nothing of it stays in storage", async () => {
  const { stores } = await ownServers({ s3: true });
  const survivor = { MEDIA_SYNC_TIMEOUT: "1" };
  const { api, client, leaseEnded } = await startTwoApis(stores, env, { survivor });
  const later = await maintenance(stores);
  const [customer, keeping] = await Promise.all([client.account("10.00"), client.account("10.00")]);
  const headers = { "content-type": "application/json" };
  const started = await postAt(client, customer)(path, { bytes, mime: "video/mp4" }, { headers });
  expect(started.status).toBe(200);
  await held(client);

  await sendHalf(api.client, customer);
  await sendHalf(api.client, keeping, ["idempotency-key: once"]);
  await eventually(async () => (await client.check()).open_holds === 3);
  api.kill("SIGKILL");
  await api.exited;
  expect(await availableUsd(client, keeping)).toBe("6.00");
  // The owner of the key may still be sending.
  const withKey = () => outcomeOf(upload(client, keeping, keyed().headers));
  expect(await withKey()).toMatchObject({ status: 503, code: "generation_in_progress", retryAfter: "5" });
  await leaseEnded();
  const answer = await repeated(() => upload(client, keeping, keyed().headers));
  expect(answer).toMatchObject({ status: 200, body: { status: "active", bytes, cost_usd: costUsd } });

  // The process that lost its key no longer has a hold.
  expect((await client.check()).open_holds).toBe(2);
  await later.pass(2 * hourMs);
  await client.settled();
  expect(await later.objects()).toEqual([`uploads/${answer.body.id}`]);
  expect(await availableUsd(client, customer)).toBe("10.00");
  expect(await availableUsd(client, keeping)).toBe("6.00");
  await later.pass(24 * hourMs);
  expect(await later.objects()).toEqual([]);
  expect(await availableUsd(client, keeping)).toBe("6.00");
});

test("an API killed between storing and responding: the same key and file give that upload, paid once", async () => {
  const { stores } = await ownServers({ s3: true });
  // The upload is active, but its key has no record of it.
  const { stores: apiStores, reached } = await holdCommands(stores, ({ update }) => update === "idempotency");
  const { api, client, leaseEnded } = await startTwoApis(stores, env, { apiStores });
  const customer = await client.account("10.00");
  const connectionLost = lost(upload(api.client, customer, keyed().headers));
  await reached;
  api.kill("SIGKILL");
  expect(await connectionLost).toBe(true);
  await leaseEnded();

  const answers = [
    await outcomeOf(upload(client, customer, keyed().headers)),
    await outcomeOf(upload(client, customer, keyed().headers)),
  ];
  const [first, second] = answers;
  expect(first).toMatchObject({ status: 200, replayed: true, body: { status: "active", cost_usd: costUsd } });
  expect(second).toMatchObject({ status: 200, replayed: true, requestId: first?.requestId });
  expect(second?.body.id).toBe(first?.body.id);
  await client.settled();
  expect(await callsOf(client, customer, "storage")).toHaveLength(1);
  expect(await availableUsd(client, customer)).toBe("6.00");
});

test("S3 killed before and in the middle of uploads: 503, no charge, no trace; after a restart uploads succeed", async () => {
  const { s3, stores } = await ownServers({ s3: true });
  const { client } = await startProcesses(stores, env);
  const later = await maintenance(stores);
  const customer = await client.account("10.00");

  const socket = await sendHalf(client, customer, ["connection: close", "idempotency-key: once"]);
  const answer = text(socket);
  await held(client);
  await s3.kill();
  socket.write(video.subarray(bytes / 2));
  const response = await answer;
  expect(response).toMatch(/^HTTP\/1.1 503 /);
  expect(response).toMatch(/retry-after: \d+\r\n/i);
  expect(response).toContain('"code":"no_capacity"');
  expect(isRefusal(await outcomeOf(upload(client, customer)))).toBe(true);
  await client.settled();
  expect(await availableUsd(client, customer)).toBe("10.00");

  await s3.start();
  await later.pass(2 * hourMs);
  expect(await later.objects()).toEqual([]);
  const again = await outcomeOf(upload(client, customer, keyed().headers));
  expect(again).toMatchObject({ status: 200, replayed: false, body: { status: "active" } });
  await client.settled();
  expect(await availableUsd(client, customer)).toBe("6.00");
  for (const entry of await callsOf(client, customer, "storage"))
    expect(["0.00", `-${costUsd}`]).toContain(entry.amount_usd);
  await later.pass(25 * hourMs);
  expect(await later.objects()).toEqual([]);
});

test("MongoDB stopped in the middle of an upload and started again: stored and paid, or neither", async () => {
  const { s3: _, mongo, stores } = await ownServers({ s3: true, mongo: true });
  const { client } = await startProcesses(stores, env);
  const customer = await client.account("10.00");
  const socket = await sendHalf(client, customer, ["connection: close"]);
  const answer = text(socket);
  await held(client);
  await mongo.stop();
  socket.write(video.subarray(bytes / 2));
  const refused = await outcomeOf(upload(client, customer));
  expect(isRefusal(refused)).toBe(true);
  await mongo.start();
  const [, status] = /^HTTP\/1.1 (\d+) /.exec(await answer) ?? [];
  expect(["200", "503"]).toContain(status);
  const stored = status === "200";
  const later = await maintenance(stores);
  await later.pass(2 * hourMs);
  await client.settled();
  expect(await availableUsd(client, customer)).toBe(stored ? "6.00" : "10.00");
  expect(await later.objects()).toHaveLength(stored ? 1 : 0);
});
