import { describe, expect, test } from "vitest";
import { createMoney, moneySchema } from "../../shared/money/index.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { backfill, createCollections, dropIndexes } from "../../shared/platform/mongo/migration-steps.ts";
import { checkSchema, type Migration, migrate, migrationStates } from "../../shared/platform/mongo/migrations.ts";
import { counted, emptyDatabase, log, schemaOf } from "../support/migrations-setup.ts";
import { captureOf, held, holdOf, openAccount } from "../support/money-setup.ts";
import { allSchemas, migrated } from "../support/schema.ts";

const states = async (...given: Parameters<typeof migrationStates>) =>
  (await migrationStates(...given)).map(({ id, state }) => `${id} ${state}`);

describe("a run", () => {
  test("applies what is pending, in order and once; a second run at the same time waits and does nothing", async () => {
    const { mongo, connect } = await emptyDatabase();
    const order: number[] = [];
    const schema = schemaOf(
      ...[1, 2, 3].map((n) => ({ what: `step ${n}`, run: async () => void order.push(n) }) satisfies Migration),
    );
    const runs = await Promise.all(
      [mongo, await connect(), await connect()].map((each) =>
        migrate({ mongo: each, schemas: [schema], clock: systemClock, log }),
      ),
    );
    expect([order, runs.toSorted((one, other) => one - other)]).toEqual([
      [1, 2, 3],
      [0, 0, 3],
    ]);
    expect(await states(mongo, [schema])).toEqual(["test-1 applied", "test-2 applied", "test-3 applied"]);
  });

  test("whose process died is followed by another once its lock has expired", async () => {
    const { mongo, run } = await emptyDatabase();
    const locks = mongo.db.collection<{ _id: string; owner: string; expiresAt: Date }>("migrations");
    await locks.insertOne({ _id: "lock", owner: "dead", expiresAt: new Date(Date.now() + 700) });
    const migration = counted("a step");
    await run([migration]);
    expect(migration.runs).toBe(1);
    expect(await locks.findOne({ _id: "lock" })).toBeNull();
  });

  test("that is stopped while it waits, or within a step, ends at once and frees its lock", async () => {
    const { mongo, run } = await emptyDatabase();
    const stop = new AbortController();
    const reason = new Error("stopped");
    const hangs: Migration = { what: "hangs", run: () => (stop.abort(reason), new Promise(() => undefined)) };
    await expect(run([hangs], { signal: stop.signal })).rejects.toBe(reason);
    expect(await states(mongo, [schemaOf(hangs)])).toEqual(["test-1 under way"]);
    const after = counted("goes on");
    expect(await run([after])).toBe(1);
    await mongo.db.collection<{ _id: string }>("migrations").insertOne({
      _id: "lock",
      owner: "other",
      expiresAt: new Date(Date.now() + 60_000),
    } as { _id: string });
    const waiting = new AbortController();
    const waits = run([after, counted("more")], { signal: waiting.signal });
    waiting.abort(reason);
    await expect(waits).rejects.toBe(reason);
  });
});

describe("steps", () => {
  const numbers = backfill("n becomes a text", {
    collection: "things",
    filter: { n: { $type: "number" } },
    update: [{ $set: { n: { $toString: "$n" }, changes: { $add: [{ $ifNull: ["$changes", 0] }, 1] } } }],
  });
  const things = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ _id: `t${String(at).padStart(6, "0")}`, n: at }) as never);

  test("a backfill that is killed after any part resumes there, and changes every document once", async () => {
    const { mongo, run } = await emptyDatabase();
    const collection = mongo.db.collection("things");
    await collection.insertMany(things(5_000));
    const killed = new Error("killed");
    // Once before and once after the cursor is stored, at each of the three parts.
    for (let part = 0; part < 3; part++)
      for (const stores of [false, true]) {
        const dies: Migration = {
          ...numbers,
          run: (step) =>
            numbers.run({
              ...step,
              save: async (cursor, changed) => {
                if (stores) await step.save(cursor, changed);
                throw killed;
              },
            }),
        };
        await expect(run([dies])).rejects.toBe(killed);
      }
    // A process of the previous version continues to write the new shape, on both sides of the cursor.
    await collection.insertMany([{ _id: "a", n: "new" } as never, { _id: "z", n: "new" } as never]);
    await run([numbers]);
    expect(await collection.countDocuments({ n: { $type: "number" } })).toBe(0);
    expect(await collection.countDocuments({ changes: 1 })).toBe(5_000);
    const [state] = await migrationStates(mongo, [schemaOf(numbers)]);
    expect(state).toMatchObject({ state: "applied", changed: expect.any(Number) as number });
  });

  test("indexes are created and dropped, however often", async () => {
    const { mongo } = await emptyDatabase();
    const step = { db: mongo.db, cursor: undefined, save: async () => undefined };
    const create = createCollections("c", [{ collection: "things", indexes: [{ key: { a: 1 } }, { key: { b: 1 } }] }]);
    const drop = dropIndexes("d", "things", ["b_1", "never_1"]);
    await drop.run(step);
    await Promise.all([create.run(step), create.run(step)]);
    await drop.run(step);
    await drop.run(step);
    expect((await mongo.db.collection("things").indexes()).map(({ name }) => name)).toEqual(["_id_", "a_1"]);
  });

  test("a unique index that cannot be built names the key that documents share", async () => {
    const { mongo, run } = await emptyDatabase();
    await mongo.db.collection("things").insertMany([{ a: "twice" }, { a: "twice" }]);
    const unique = createCollections("c", [{ collection: "things", indexes: [{ key: { a: 1 }, unique: true }] }]);
    await expect(run([unique])).rejects.toThrow(/unique index of `things` cannot be built[^]*a: "twice"/);
    await mongo.db.collection("things").deleteOne({ a: "twice" });
    expect(await run([unique])).toBe(1);
  });
});

describe("a process", () => {
  test("refuses a schema that is too old, also one that is under way, and names the command", async () => {
    const { mongo, run } = await emptyDatabase();
    const [first, second] = [counted("first"), counted("second")];
    const check = () => checkSchema(mongo, [schemaOf(first, second)]);
    await expect(check()).rejects.toThrow(/too old: test-1, test-2 are not applied. Run `npm run migrate`/);
    await expect(run([first, { what: "second", run: () => Promise.reject(new Error("no")) }])).rejects.toThrow("no");
    await expect(check()).rejects.toThrow("too old: test-2 is not applied");
    await run([first, second]);
    await check();
  });

  test("of an older version starts on a newer schema, unless that needs more than it has", async () => {
    const { mongo, run } = await emptyDatabase();
    const [first, second] = [counted("first"), counted("second")];
    await run([first, second, counted("third", { oldest: 2 })]);
    await checkSchema(mongo, [schemaOf(first, second)]);
    await expect(checkSchema(mongo, [schemaOf(first)])).rejects.toThrow(
      /too new: test-3 \(third\) needs schema 2 of test, and this version has 1/,
    );
    expect(await states(mongo, [schemaOf(first)])).toEqual(["test-1 applied", "test-2 unknown", "test-3 unknown"]);
    expect(await run([first])).toBe(0);
  });

  test("that an incompatible migration would break is protected: it is not applied in one step, but offline", async () => {
    const { mongo, run } = await emptyDatabase();
    await mongo.db.createCollection("things");
    const [first, second, third] = [counted("first"), counted("second"), counted("third", { oldest: 2 })];
    await run([first]);
    await expect(run([first, second, third])).rejects.toThrow(/test-3 breaks processes before schema 2[^]*--offline/);
    expect([second.runs, third.runs]).toEqual([1, 0]);
    // No process of the intermediate version is running by now.
    expect(await run([first, second, third])).toBe(1);
  });
});

describe("the service's migrations", () => {
  test("run alongside a process of the previous version, and turn attempts that were a number into a list", async () => {
    const { mongo } = await emptyDatabase();
    const money = createMoney({ mongo, clock: systemClock, log });
    await migrated(mongo, [{ ...moneySchema, migrations: moneySchema.migrations.slice(0, 1) }]);
    const account = await openAccount(money, 1_000_000n);
    const settled = async (status: "succeeded" | "failed", attempts?: number) => {
      const hold = await held(money, holdOf(account, 300n));
      await money.charge(captureOf(hold, 0n, { status }));
      if (attempts !== undefined)
        await mongo.db
          .collection<{ _id: string }>("ledger")
          .updateOne({ _id: hold.requestId }, { $set: { "request.attempts": attempts } });
      return hold.requestId;
    };
    const [none, one, two, list] = [
      await settled("failed", 0),
      await settled("succeeded", 1),
      await settled("failed", 2),
      await settled("succeeded"),
    ];
    const beside = Promise.all(Array.from({ length: 20 }, () => settled("succeeded")));
    await migrated(mongo);
    await beside;
    const attemptsOf = async (id: string) => (await money.entry(account, id))?.request?.attempts;
    expect(await attemptsOf(none)).toEqual([]);
    expect(await attemptsOf(one)).toEqual([{ upstream: "openai", outcome: "succeeded" }]);
    expect(await attemptsOf(two)).toEqual([{ outcome: "failed" }, { upstream: "openai", outcome: "failed" }]);
    expect(await attemptsOf(list)).toEqual([
      { upstream: "openai", startedMs: 1, durationMs: 40, outcome: "succeeded" },
    ]);
    expect(await money.check({ full: true })).toMatchObject({ ok: true });
  });

  test("are numbered by module, and no name is used twice", () => {
    const modules = allSchemas.map(({ module }) => module);
    expect(new Set(modules).size).toBe(modules.length);
    for (const { migrations } of allSchemas)
      for (const [at, { oldest = 0 }] of migrations.entries()) expect(oldest).toBeLessThanOrEqual(at);
  });
});
