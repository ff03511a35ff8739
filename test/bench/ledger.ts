/**
 * Measures a sweep and a check on a large ledger: `node test/bench/ledger.ts [entries] [accounts]`. It starts and fills
 * its own MongoDB, and prints a line for each measurement.
 */
import { systemClock } from "#platform/clock";
import { newRequestId } from "#platform/ids";
import type { Mongo } from "#platform/mongo/connection";
import { costOfStored, insertAll, storedCall, storedCredit } from "./ledger-entries.ts";
import { accountId, onMongo, openMoney, print } from "./money-bench.ts";
import { cpuMs, type Measured } from "./processes.ts";

const [entries = 1_000_000, accounts = 100_000] = process.argv.slice(2).map(Number);
/** Accounts with running calls that are not overdue. */
const active = accounts / 10;
const overdue = 5;
const rounds = 5;
const minuteMs = 60_000;

const shown = ({ ms, cpuMs: cpu }: Timed<unknown>) => `${shownMs(ms)} (${shownMs(cpu)} of processor time)`;
const shownMs = (ms: number) => (ms < 1_000 ? `${ms.toFixed(1)} ms` : `${(ms / 1_000).toFixed(2)} s`);

interface Timed<T> {
  readonly ms: number;
  /** Processor time of this process and MongoDB, more reliable than elapsed time on a busy machine. */
  readonly cpuMs: number;
  readonly result: T;
}

async function fill({ connection }: Mongo): Promise<void> {
  const each = Math.floor(entries / accounts) - 1;
  const openingNanoUsd = costOfStored(each) + 1_000_000n;
  const createdAt = new Date();
  const expiresAt = new Date(Date.now() + 15 * minuteMs);

  const account = (at: number) => {
    const holds =
      at % (accounts / active) === 0 ? { [newRequestId()]: { amount: 100n, heldAt: createdAt, expiresAt } } : {};
    const openHolds = Object.keys(holds).length;
    const heldNanoUsd = BigInt(openHolds) * 100n;
    return {
      _id: accountId(at),
      name: `account ${at}`,
      tier: "standard",
      frozen: false,
      available: 1_000_000n - heldNanoUsd,
      held: heldNanoUsd,
      holds,
      openHolds,
      ...(openHolds > 0 && { holdsExpireAt: expiresAt }),
      createdAt,
    };
  };
  const movement = (at: number) => ({ account: accountId(at), createdAt });
  const stored = connection.collection<{ _id: string }>("ledger");
  await insertAll(connection.collection<{ _id: string }>("accounts"), accounts, account);
  await insertAll(stored, accounts, (at) => storedCredit(movement(at), openingNanoUsd));
  // Interleave the accounts, as real calls do.
  await insertAll(stored, each * accounts, (at) => storedCall(movement(at % accounts)));
}

async function measure(uri: string, mongod: Measured): Promise<void> {
  const spentMs = () => cpuMs(mongod) + cpuMs({ name: "bench", pid: process.pid });
  async function time<T>(work: () => Promise<T>): Promise<Timed<T>> {
    const [startedAt, spentBefore] = [performance.now(), spentMs()];
    const result = await work();
    return { ms: performance.now() - startedAt, cpuMs: spentMs() - spentBefore, result };
  }
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };
  const { mongo, money } = await openMoney(uri, clock);
  const filled = await time(() => fill(mongo));
  print(`${entries} entries of ${accounts} accounts, ${active} with an open hold: inserted in ${shown(filled)}`);

  // A sweeper settles nothing in the first minute of its connection.
  aheadMs = 2 * minuteMs;
  const sweep = () => money.sweep(async () => false);
  const late = async (at: number) => {
    const amounts = { maxNanoUsd: 100n, minNanoUsd: 100n, expiresAt: Date.now() };
    await money.hold({ account: accountId(at), requestId: newRequestId(), ...amounts });
  };
  for (let round = 0; round < rounds; round++) {
    await Promise.all(Array.from({ length: overdue }, (_, at) => late(7 * at + 1)));
    const swept = await time(sweep);
    const idle = await time(sweep);
    print(`sweep, ${swept.result.captured} holds overdue: ${shown(swept)}; none overdue: ${shown(idle)}`);
  }
  await mongo.connection.collection("accounts").updateMany({}, { $unset: { holdsExpireAt: "" } });
  print(`sweep, the first after an upgrade: ${shown(await time(sweep))}`);

  async function check(what: string, options?: { full: true }): Promise<void> {
    const checked = await time(() => money.check(options));
    const { ok, openHolds } = checked.result;
    print(`check, ${what}: ${shown(checked)}, ok: ${ok}, open holds: ${openHolds}`);
  }
  await check("without checkpoints");
  const counted = await time(async () => {
    let sum = 0;
    for (let some = -1; some !== 0; sum += some) some = await money.checkpoint();
    return sum;
  });
  print(`checkpoints of ${counted.result} entries: ${shown(counted)}`);
  for (let round = 0; round < rounds; round++) await check("from checkpoints");
  await check("full", { full: true });
  await mongo.close();
}

await onMongo(measure);
