import { expect, test } from "vitest";
import { emptyDatabase } from "../support/migrations-setup.ts";
import { brokenWire } from "../support/money-proxy.ts";
import { startProgram } from "../support/program.ts";
import { testStores } from "../support/servers.ts";
import { environment, eventually } from "../support/service.ts";

const migrate = (uri: string, ...args: string[]) =>
  startProgram(["infra/cli/migrate.ts", ...args], { MONGODB_URI: uri });

test("API and workers do not start on a database without migrations: they name the command and exit with 1", async () => {
  const env = environment(await testStores({ database: "new" }));
  const ends = await Promise.all([
    startProgram(["api/main.ts"], env).ended,
    startProgram(["workers/main.ts"], env).ended,
  ]);
  for (const { code, err } of ends) {
    expect(err).toMatch(/^The database's schema is too old: money-1, .* are not applied\. Run `npm run migrate` /);
    expect([code, err.split("\n").length]).toEqual([1, 2]);
  }
});

const count = 20_000;
const idOf = (at: number) => `req_${String(at).padStart(6, "0")}`;
/** An entry of the previous version, with the number of attempts in place of their list. */
const oldEntry = (at: number) => ({ _id: idOf(at), account: "acct_1", request: { attempts: 1, status: "succeeded" } });

test("a run that is killed within a backfill is finished by the next one, from where it was", async () => {
  const { uri, mongo } = await emptyDatabase();
  const applied = await migrate(uri).ended;
  expect([applied.code, applied.err]).toEqual([0, ""]);
  expect((await migrate(uri, "status").ended).code).toBe(0);

  // Treat the backfill as new.
  const migrations = mongo.db.collection<{ _id: string; cursor?: string }>("migrations");
  const ledger = mongo.db.collection<{ _id: string; request: { attempts: unknown } }>("ledger");
  await migrations.deleteOne({ _id: "money-2" });
  for (let from = 0; from < count; from += 5_000)
    await ledger.insertMany(Array.from({ length: 5_000 }, (_, at) => oldEntry(from + at)));
  const old = { "request.attempts": { $type: "number" } };

  // The third page of 2,000 never gets through.
  let pages = 0;
  const wire = await brokenWire(uri, ({ update }) =>
    update === "ledger" && ++pages === 3 ? new Promise(() => {}) : "pass",
  );
  const { child, ended } = migrate(wire);
  const stored = () => migrations.findOne({ _id: "money-2" });
  const cursor = idOf(3_999);
  await eventually(async () => (await stored())?.cursor === cursor);
  child.kill("SIGKILL");
  expect((await ended).code).toBeNull();
  expect(await ledger.countDocuments(old)).toBe(count - 4_000);
  expect(await ledger.countDocuments({ ...old, _id: { $lte: cursor } })).toBe(0);
  const shown = await migrate(uri, "status").ended;
  expect([shown.code, /money-2 +under way/.test(shown.out)]).toEqual([2, true]);

  // Entries behind the cursor are not read again.
  const behind = idOf(0);
  await ledger.updateOne({ _id: behind }, { $set: { "request.attempts": 7 } });
  // The lock of the killed run would be valid for half a minute.
  await migrations.deleteOne({ _id: "lock" });
  const next = await migrate(uri).ended;
  expect([next.code, next.out.includes(`"from":"${cursor}"`)]).toEqual([0, true]);
  expect(await ledger.find(old).toArray()).toMatchObject([{ _id: behind }]);
  expect(await ledger.countDocuments({ "request.attempts": [{}] })).toBe(count - 1);
  expect(await migrations.countDocuments({ _id: "lock" })).toBe(0);
});
