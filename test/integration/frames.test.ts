import { expect, test } from "vitest";
import { type Frame, fromField, toField } from "../../shared/jobs/frames.ts";
import {
  ask,
  availableUsd,
  balanceAfter,
  callsOf,
  heldWire,
  isWhole,
  loseAnswers,
  onlyCall,
  path,
  read,
  redisOf,
  startProvider,
} from "../support/chaos-setup.ts";
import { keysOf } from "../support/jobs-setup.ts";
import { testStores } from "../support/servers.ts";
import { ready, startAnotherApi, startService } from "../support/service.ts";

/** Starts a stream that has sent four events, with access to the reply stream of its API instance. */
async function halfWay() {
  const stores = await testStores({ oneServer: true });
  const { provider, env } = await startProvider();
  const redis = redisOf(stores);
  await startService(stores, { env });
  const others = await keysOf(redis, "reply:*");
  const wire = await heldWire(stores.REDIS_URL);
  const client = await startAnotherApi({ ...stores, REDIS_URL: wire.address }, { env });
  await ready(client);
  const customer = await client.account("1.00");
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeEvent: { 4: gate.promise } });
  const response = await customer.post(path, ask({ stream: true }));
  const requestId = response.headers.get("x-request-id") as string;
  const stream = read(response);
  await stream.sees(4);
  const key = (await keysOf(redis, "reply:*")).find((each) => !others.includes(each)) as string;
  const write = (seq: number, kind: "chunk" | "final" | "error", data: string) =>
    redis.xadd(key, "*", ...toField({ requestId, seq, kind, data }));
  return { client, customer, provider, wire, gate, redis, key, requestId, stream, write };
}

const forged = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "twice" } }] })}\n\n`;

test("frames that come twice are written once", async () => {
  const { client, customer, gate, stream, write } = await halfWay();
  await write(0, "chunk", forged);
  await write(0, "final", forged);
  gate.resolve();
  expect(await stream.ended).toBe("closed");
  expect(isWhole(stream)).toBe(true);
  expect(await onlyCall(client, customer)).toMatchObject({ amount_usd: "-0.000025" });
});

test("a gap in the numbers of frames ends the call with an error, aborts the provider and costs nothing", async () => {
  const { client, customer, provider, stream, write } = await halfWay();
  await write(1_000, "chunk", forged);
  expect(await stream.ended).toBe("closed");
  expect(stream.events).toHaveLength(5);
  expect(stream.events.at(-1)?.error).toMatchObject({ type: "server_error", code: "no_capacity" });
  expect(stream.done()).toBe(false);
  const request = await provider.request(0);
  await request.closed;
  expect(request.aborted).toBe(true);
  expect(await onlyCall(client, customer)).toMatchObject({ amount_usd: "0.00", request: { status: "failed" } });
  expect(await availableUsd(client, customer)).toBe("1.00");
});

test("a gap after the call was captured: the error is answered and the cost refunded", async () => {
  const { client, customer, wire, gate, redis, key, stream } = await halfWay();
  wire.hold();
  gate.resolve();
  await client.settled();
  expect(await availableUsd(client, customer)).toBe(balanceAfter(1));
  // Find the last frame, which arrived in full.
  const [[id, fields]] = (await redis.xrevrange(key, "+", "-", "COUNT", 1)) as [[string, string[]]];
  const [name, value] = fields.slice(-2) as [string, string];
  const frame = fromField(name, value) as Frame;
  await redis
    .multi()
    .xdel(key, id)
    .xadd(key, "*", ...toField({ ...frame, seq: frame.seq + 1 }))
    .exec();
  wire.reconnect();
  expect(await stream.ended).toBe("closed");
  expect(stream.events.at(-1)?.error).toMatchObject({ code: "no_capacity" });
  expect(stream.done()).toBe(false);
  expect(await onlyCall(client, customer)).toMatchObject({ amount_usd: "-0.000025" });
  expect(await callsOf(client, customer, "refund")).toHaveLength(1);
  expect(await availableUsd(client, customer)).toBe("1.00");
});

test("a notice of a lost answer that comes twice: one error, one refund, and the API lives", async () => {
  const { client, customer, wire, gate, redis, key, requestId, stream } = await halfWay();
  wire.hold();
  gate.resolve();
  await client.settled();
  await loseAnswers(redis, [requestId, requestId], key);
  wire.reconnect();
  expect(await stream.ended).toBe("closed");
  expect(stream.events).toHaveLength(5);
  expect(stream.events.at(-1)?.error).toMatchObject({ code: "no_capacity" });
  expect(await callsOf(client, customer, "refund")).toHaveLength(1);
  expect(await availableUsd(client, customer)).toBe("1.00");
});
