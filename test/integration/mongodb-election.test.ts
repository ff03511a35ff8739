import mongoose from "mongoose";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "#platform/clock";
import { connectMongo } from "#platform/mongo/connection";
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
