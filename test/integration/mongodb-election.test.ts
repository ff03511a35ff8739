import type { Socket } from "node:net";
import mongoose from "mongoose";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "#platform/clock";
import { connectMongo } from "#platform/mongo/connection";
import { createManualClock } from "../support/manual-clock.ts";
import { ownServers } from "../support/servers.ts";
import { eventually } from "../support/service.ts";

/**
 * Driver 7.8: an operation's error includes the topology version as the operation reads it, with bigint. A streaming
 * monitor begins half a second after it connected, and this version makes it throw outside any promise.
 */
test("an operation finds the primary deposed just after connecting: heartbeats continue, and find the next one", async () => {
  const { stores } = await ownServers({ mongo: true });
  const operator = await new mongoose.mongo.MongoClient(stores.MONGODB_URI).connect();
  onTestFinished(() => operator.close());
  const mongo = await connectMongo(stores.MONGODB_URI, systemClock, pino({ enabled: false }));
  onTestFinished(() => mongo.close());
  await operator.db("admin").command({ replSetStepDown: 1, force: true });
  const insert = () => mongo.db.collection("any").insertOne({});
  // The error includes the version; the insert may wait long enough for the next primary.
  await insert().catch(() => undefined);
  expect(await eventually(() => insert().catch(() => undefined))).toMatchObject({ acknowledged: true });
});

interface Internals {
  readonly topology: {
    readonly s: {
      readonly servers: ReadonlyMap<
        string,
        { readonly monitor: { readonly connection: { readonly socket: Socket } | null } }
      >;
    };
  };
}

/** Driver 7.8: a command that is written to a destroyed socket before its `close` never ends, not even a heartbeat. */
test("a heartbeat that never ends is started again, and finds the server", async () => {
  const { stores } = await ownServers({ mongo: true });
  const clock = createManualClock();
  const mongo = await connectMongo(stores.MONGODB_URI, clock, pino({ enabled: false }));
  onTestFinished(() => mongo.close());
  const client = mongo.connection.getClient();
  const [server] = (client as unknown as Internals).topology.s.servers.values();
  const heartbeat = () => new Promise((resolve) => client.once("serverHeartbeatSucceeded", resolve));
  await heartbeat();
  const ended: unknown[] = [];
  const begun = new Promise<void>((resolve) => {
    client.once("serverHeartbeatStarted", () => {
      server?.monitor.connection?.socket.destroy();
      client.on("serverHeartbeatSucceeded", (event) => ended.push(event));
      client.on("serverHeartbeatFailed", (event) => ended.push(event));
      resolve();
    });
  });
  await begun;
  for (let second = 0; second < 9; second++) clock.advance(1_000);
  expect(ended).toEqual([]);
  const again = heartbeat();
  clock.advance(1_000);
  await again;
  await mongo.ping();
});
