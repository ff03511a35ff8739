/**
 * The cost of accounts' views of their calls on a large ledger: `npm run bench:usage -- [entries]`. It starts its own
 * MongoDB, fills it with two days of calls, and prints a line for each measurement.
 */
import { dayMs, systemClock } from "#platform/clock";
import type { Mongo } from "#platform/mongo/connection";
import type { CallQuery } from "../../shared/money/find-calls.ts";
import { insertAll, storedCall } from "./ledger-entries.ts";
import { accountId, onMongo, openMoney, print } from "./money-bench.ts";
import { cpuMs } from "./processes.ts";

const [entries = 1_000_000, accounts = 2_000] = process.argv.slice(2).map(Number);

let spentMs = () => 0;
/** Measures the elapsed time, and the processor time of MongoDB, which is more reliable on a busy machine. */
async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const [startedAt, spentBefore] = [performance.now(), spentMs()];
  const result = await work();
  const spent = spentMs() - spentBefore;
  print(`${what}: ${(performance.now() - startedAt).toFixed(1)} ms (${spent} ms of processor time of MongoDB)`);
  return result;
}

/** One account has half of all calls. */
const large = accountId(0);
const endpoints = ["/v1/chat/completions", "/v1/messages"];

const nowMs = Date.parse("2026-11-23T23:59:59Z");
const clock = { ...systemClock, now: () => nowMs };

/** Calls of today and yesterday: two keys per account, five models, two failures in a hundred. */
function callAt(at: number, total: number) {
  const createdAt = new Date(nowMs - Math.floor(((total - at) / total) * (2 * dayMs - 2_000)));
  const owner = at % 2 === 0 ? 0 : 1 + (Math.floor(at / 2) % (accounts - 1));
  const call = storedCall({ account: accountId(owner), createdAt });
  const isFailed = at % 100 === 1 || at % 100 === 50;
  const request = {
    ...call.request,
    key: `key_${owner}_${at % 14 === 0 ? 1 : 2}`,
    endpoint: endpoints[at % 22 === 0 ? 1 : 0],
    model: at === 1_000 ? "vendor/rare" : `vendor/model-${Math.floor(at / 4_000) % 5}`,
    firstTokenMs: 50 + ((at * 7_919) % 5_000),
    status: at === 2_000 ? "cancelled" : isFailed ? "failed" : "succeeded",
    ...(isFailed && { error: "upstream_unavailable" }),
  };
  return { ...call, request };
}

const searchIndexes = ["createdAt_-1__id_-1", "createdAt_1_account_1"];
const isNew = (name: string) => name.includes("request.") || searchIndexes.includes(name);

/** Inserts batches as a busy ledger does, with and without the indexes of these views. */
async function measureInserts({ db }: Mongo): Promise<void> {
  const [batch, batches, rounds] = [100, 100, 3];
  const indexes = await db.collection("ledger").indexes();
  for (const [name, wanted] of [
    ["without the indexes of these views", indexes.filter((index) => !isNew(index.name ?? ""))],
    ["with them", indexes],
  ] as const) {
    for (let round = 0; round < rounds; round++) {
      const target = `inserts_${wanted.length}_${round}`;
      const specs = wanted
        .filter(({ name }) => name !== "_id_")
        .map(({ key, partialFilterExpression }) => ({
          key,
          ...(partialFilterExpression && { partialFilterExpression }),
        }));
      await db.collection(target).createIndexes(specs as never);
      await timed(`${batch * batches} inserts ${name}`, async () => {
        for (let at = 0; at < batches; at++) {
          const documents = Array.from({ length: batch }, (_, each) => callAt(at * batch + each + 1, batch * batches));
          await db.command({ insert: target, documents, ordered: false, writeConcern: { w: "majority", j: true } });
        }
      });
      await db.collection(target).drop();
    }
  }
}

/** Inserts a year of daily rows for an account with two keys, five models and two endpoints. */
async function insertYear({ db }: Mongo): Promise<void> {
  const sums = {
    entries: 9,
    calls: 9,
    failed: 1,
    input: 1_000,
    output: 500,
    cached: 0,
    units: 0,
    cost: 90n,
    version: 1,
    latency: Object.fromEntries(Array.from({ length: 30 }, (_, at) => [40 + 2 * at, 1 + at])),
  };
  for (let back = 0; back < 365; back++) {
    const day = new Date(nowMs - back * dayMs).toISOString().slice(0, 10);
    const rows = Array.from({ length: 20 }, (_, at) => {
      const group = { account: "acct_year", key: `key_${at % 2}`, model: `vendor/model-${at % 5}` };
      return { ...group, day, endpoint: endpoints[at < 10 ? 0 : 1] };
    });
    await db.collection<{ _id: object }>("usageDays").insertMany(rows.map((row) => ({ _id: row, ...row, ...sums })));
  }
  const last = new Date(nowMs - 2 * dayMs).toISOString().slice(0, 10);
  await db.collection<{ _id: string; closed: boolean }>("usageDayStates").insertOne({ _id: last, closed: true });
}

async function measure(uri: string): Promise<void> {
  const { mongo, money } = await openMoney(uri, clock);
  await measureInserts(mongo);
  const ledger = mongo.connection.collection<{ _id: string }>("ledger");
  await timed(`${entries} entries of ${accounts} accounts inserted`, () =>
    insertAll(ledger, entries - 1, (at) => callAt(at + 1, entries)),
  );
  // The job counts majority-committed entries; a write with majority concern commits all earlier ones.
  await ledger.insertOne(callAt(entries, entries) as never);
  await timed("job, both days", () => money.sumUsage());
  await timed("job, nothing changed", () => money.sumUsage());
  await ledger.insertOne(callAt(entries - 1, entries) as never);
  await timed("job, a call more", () => money.sumUsage());
  print(`rows: ${await mongo.connection.collection("usageHours").countDocuments()}`);

  const span = { from: "2026-01-01", to: "2026-11-23", limit: 10_000 };
  for (const groupBy of [["day"], ["day", "model", "key", "endpoint"]] as const)
    await timed(`usage of the large account by ${groupBy.join(", ")}`, () => money.usage(large, { ...span, groupBy }));
  await insertYear(mongo);
  const year = { from: "2025-11-24", to: "2026-11-23", limit: 10_000 };
  for (const groupBy of [["day"], ["day", "model"], ["day", "model", "key", "endpoint"]] as const)
    await timed(`usage of a year of 20 rows a day by ${groupBy.join(", ")}`, () =>
      money.usage("acct_year", { ...year, groupBy }),
    );
  for (const groupBy of [[], ["day"], ["day", "model"]] as const)
    await timed(`the same with times by ${groupBy.join(", ") || "nothing"}`, () =>
      money.usage("acct_year", { ...year, groupBy, latency: true }),
    );
  await timed("usage of a key: day, month, ever", () => money.usageOfKey(large, "key_0_2"));

  const views: Record<string, Omit<CallQuery, "limit">> = {
    "an account": { account: large },
    "a key": { account: large, key: "key_0_2" },
    "a model": { account: large, model: "vendor/model-3" },
    "a rare model": { account: large, model: "vendor/rare" },
    "no such model": { account: large, model: "vendor/none" },
    "failed calls": { account: large, status: "failed" },
    "a rare status": { account: large, status: "cancelled" },
    "a key and a rare model": { account: large, key: "key_0_2", model: "vendor/rare" },
    "a model, succeeded": { account: large, model: "vendor/model-3", status: "succeeded" },
    "all accounts": {},
    "all accounts, failed": { status: "failed" },
    "all accounts, by code": { code: "upstream_unavailable" },
    "all accounts, no such code": { code: "none" },
    "all accounts, a rare model": { model: "vendor/rare" },
    "all accounts, no such upstream": { upstream: "none" },
  };
  const pages = 1_000;
  for (const [name, query] of Object.entries(views)) {
    const first = await timed(`requests of ${name}: page 1`, () => money.findCalls({ ...query, limit: 50 }));
    let next = first.next;
    for (let page = 2; page < pages && next !== undefined; page++)
      next = (await money.findCalls({ ...query, limit: 50, after: next })).next;
    if (next === undefined) continue;
    const after = next;
    await timed(`requests of ${name}: page ${pages}`, () => money.findCalls({ ...query, limit: 50, after }));
  }
  await mongo.close();
}

await onMongo(async (uri, mongod) => {
  spentMs = () => cpuMs(mongod);
  await measure(uri);
});
