import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { holdCommands, keyed, maintenance, outcomeOf, postAt } from "../support/chaos-generation-setup.ts";
import { availableUsd, callsOf, lost } from "../support/chaos-setup.ts";
import {
  bytes,
  costUsd,
  held,
  listed,
  path,
  sendHalf,
  upload,
  uploadEnv,
  video,
} from "../support/chaos-uploads-setup.ts";
import type { Command } from "../support/money-proxy.ts";
import { ownServers } from "../support/servers.ts";
import { spawnApi } from "../support/service.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** Holds matching commands from this number on. */
function from(number: number, isMeant: (command: Command) => boolean) {
  let count = 0;
  return (command: Command) => isMeant(command) && ++count >= number;
}

test("APIs killed with uploads that are stored, but not charged, active or settled: paid and there, or neither", async () => {
  const { stores } = await ownServers({ s3: true });
  const { client } = await spawnApi(stores, uploadEnv);
  const later = await maintenance(stores);
  const killAt = async (isHeld: (command: Command) => boolean, stands: number) => {
    const { stores: apiStores, reached } = await holdCommands(stores, isHeld);
    const api = await spawnApi(apiStores, uploadEnv);
    const customer = await client.account("10.00");
    const connectionLost = lost(upload(api.client, customer));
    await reached;
    api.kill("SIGKILL");
    expect(await connectionLost).toBe(true);
    return { customer, stands };
  };
  const uploads = await Promise.all([
    killAt(({ insert }) => insert === "ledger", 0),
    killAt(({ findAndModify }) => findAndModify === "uploads", 0),
    // The second write to the account ends the hold.
    killAt(
      from(2, ({ update }) => update === "accounts"),
      1,
    ),
  ]);
  expect(await later.objects()).toHaveLength(3);
  // Do not wait for the 20 minutes that an upload may take.
  await later.pass(3 * minuteMs);
  await client.settled();
  expect(await later.objects()).toHaveLength(1);
  for (const { customer, stands } of uploads) {
    expect(await listed(client, customer)).toHaveLength(stands);
    expect(await availableUsd(client, customer)).toBe(stands ? "6.00" : "10.00");
  }
});

test("an API killed while parts are completed: completed again elsewhere it is active, paid once", async () => {
  const { stores } = await ownServers({ s3: true });
  const { stores: apiStores, reached } = await holdCommands(stores, ({ findAndModify }) => findAndModify === "uploads");
  const [api, { client }] = await Promise.all([spawnApi(apiStores, uploadEnv), spawnApi(stores, uploadEnv)]);
  const later = await maintenance(stores);
  const customer = await client.account("10.00");
  const headers = { "content-type": "application/json" };
  const started = await postAt(client, customer)(path, { bytes, mime: "video/mp4" }, { headers });
  const { id, part_urls } = (await started.json()) as { id: string; part_urls: { url: string }[] };
  const [part] = part_urls as [{ url: string }];
  expect((await fetch(part.url, { method: "PUT", body: video })).status).toBe(200);
  const complete = `${path}/${id}/complete`;
  const connectionLost = lost(postAt(api.client, customer)(complete, {}, { headers }));
  await reached;
  api.kill("SIGKILL");
  expect(await connectionLost).toBe(true);
  for (let again = 0; again < 2; again++)
    expect(await outcomeOf(postAt(client, customer)(complete, {}, { headers }))).toMatchObject({
      status: 200,
      body: { id, status: "active", bytes, cost_usd: costUsd },
    });
  await client.settled();
  expect(await callsOf(client, customer, "storage")).toHaveLength(1);
  expect(await availableUsd(client, customer)).toBe("6.00");
  expect(await later.objects()).toEqual([`uploads/${id}`]);
});

test("SIGTERM to an API past its grace time in the middle of an upload: it ends, and nothing of it stays", async () => {
  const { stores } = await ownServers({ s3: true });
  const [api, { client }] = await Promise.all([
    spawnApi(stores, { ...uploadEnv, DRAIN_GRACE: "0.2" }),
    spawnApi(stores, uploadEnv),
  ]);
  const later = await maintenance(stores);
  const customer = await client.account("10.00");
  const ended = text(await sendHalf(api.client, customer, ["idempotency-key: once"])).catch(() => "");
  await held(client);
  api.kill("SIGTERM");
  expect(await api.exited).toBe(0);
  expect(await ended).not.toMatch(/^HTTP\/1.1 200/);
  const again = await outcomeOf(upload(client, customer, keyed().headers));
  expect(again).toMatchObject({ status: 200, replayed: false, body: { status: "active" } });
  await later.pass(2 * hourMs);
  await client.settled();
  expect(await later.objects()).toHaveLength(1);
  expect(await availableUsd(client, customer)).toBe("6.00");
});
