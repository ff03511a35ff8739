import { expect, test } from "vitest";
import { systemClock } from "#platform/clock";
import { openCollection } from "#platform/mongo/collection";
import { connectMongo } from "#platform/mongo/connection";
import { log } from "../support/migrations-setup.ts";
import { brokenWire } from "../support/money-proxy.ts";
import { testStores } from "../support/servers.ts";

const isHeartbeat = (command: object) => "hello" in command || "ismaster" in command;

/** A database whose requests, but for heartbeats, are lost in silence from `hold` on. */
async function heldDatabase() {
  const { MONGODB_URI } = await testStores();
  let isHeld = false;
  const never = new Promise<never>(() => undefined);
  const wire = await brokenWire(MONGODB_URI, (command) => (isHeld && !isHeartbeat(command) ? never : "pass"));
  const mongo = await connectMongo(wire, systemClock, log);
  return { mongo, hold: () => void (isHeld = true) };
}

const tickMs = 100;
const outcomeOf = async ([name, work]: readonly [string, () => PromiseLike<unknown>]) => {
  // Ticks leave out the time in which this process could not run, because then the limits themselves are late.
  let ticks = 0;
  const ticking = setInterval(() => void ticks++, tickMs);
  const outcome = await Promise.resolve(work()).then(
    () => "done",
    (error: Error) => error.constructor.name,
  );
  clearInterval(ticking);
  const ms = ticks * tickMs;
  return [name, ms > 6_000 ? `${outcome} after ${ms} ms` : outcome] as const;
};

test("every kind of operation on a MongoDB that answers heartbeats only is given up in time", async () => {
  const { mongo, hold } = await heldDatabase();
  interface Thing {
    readonly _id: string;
    readonly n: number;
  }
  const definition = { _id: String, n: Number };
  const { model, collection } = openCollection<Thing>(mongo, "things", definition);
  await collection.insertMany(Array.from({ length: 300 }, (_, n) => ({ _id: String(n), n })));
  /** Some of its documents are read, and the server has more. */
  const begun = async () => {
    const cursor = collection.find({}, { batchSize: 10 });
    await cursor.next();
    return cursor;
  };
  const [read, iterated, closed] = [await begun(), await begun(), await begun()];
  const sessions = [mongo.connection.getClient().startSession(), await mongo.connection.startSession()] as const;
  const [committing, aborting] = sessions;
  for (const [at, session] of sessions.entries()) {
    session.startTransaction();
    await collection.updateOne({ _id: String(at) }, { $inc: { n: 1 } }, { session });
  }
  hold();

  const operations: Record<string, () => PromiseLike<unknown>> = {
    "a model finds one": () => model.findOne({ n: 1 }).lean(),
    "a model finds some": () => model.find({ n: { $gt: 1 } }).lean(),
    "a model iterates": () => model.find().cursor().next(),
    "a model looks": () => model.exists({ n: 1 }),
    "a model aggregates": () => model.aggregate([{ $match: { n: 1 } }]),
    "a model counts": () => model.countDocuments({ n: 1 }),
    "a model creates": () => model.create([{ _id: "new", n: 1 }]),
    "a model saves": () => new model({ _id: "saved", n: 1 }).save(),
    "a model updates": () => model.updateOne({ n: 1 }, { $set: { n: 2 } }),
    "a model finds and updates": () => model.findOneAndUpdate({ n: 1 }, { $set: { n: 2 } }).lean(),
    "a model deletes": () => model.deleteMany({ n: 1 }),
    "a model writes in bulk": () => model.bulkWrite([{ deleteOne: { filter: { _id: "1" } } }]),
    "a read": () => collection.findOne({ n: 1 }),
    "a write": () => collection.updateOne({ n: 1 }, { $set: { n: 2 } }),
    "a bulk write": () => collection.bulkWrite([{ deleteOne: { filter: { _id: "1" } } }]),
    "an ordered bulk": () => collection.initializeOrderedBulkOp().insert({ _id: "bulk", n: 1 }).execute(),
    "an index": () => collection.createIndex({ n: 1 }),
    "a list of indexes": () => collection.indexes(),
    "the next batch": () => read.toArray(),
    "the end of an iteration": async () => {
      for await (const { n } of iterated) if (n > 3) break;
      throw new TypeError("the iteration was ended early");
    },
    "the close of a cursor": () => closed.close(),
    "a command": () => mongo.db.command({ count: "things" }),
    "a list of collections": () => mongo.db.listCollections().toArray(),
    "a collection of the database": () => mongo.db.collection("things").insertOne({ n: 1 }),
    "a collection of the connection": () => mongo.connection.collection("things").insertOne({ n: 1 }),
    "a ping": () => mongo.ping(),
    "a commit": () => committing.commitTransaction(),
    "an abort": () => aborting.abortTransaction(),
  };
  const outcomes = Object.fromEntries(await Promise.all(Object.entries(operations).map(outcomeOf)));
  const expected = Object.fromEntries(Object.keys(operations).map((name) => [name, "UnansweredError"]));
  // A caller who leaves a cursor or a transaction learns nothing of how it ended.
  expect(outcomes).toEqual({ ...expected, "the end of an iteration": "TypeError", "an abort": "done" });
  expect(await outcomeOf(["the end of the connection", () => mongo.close()])).toContain("UnansweredError");
});
