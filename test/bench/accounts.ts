import { type Bench, serviceGateway } from "./bench.ts";
import { costOfStored, insertAll, storedCall, storedCredit } from "./ledger-entries.ts";
import type { Gateway, Round } from "./measure.ts";
import { kindOf } from "./scenarios.ts";
import type { Service } from "./service.ts";
import { median, whole } from "./table.ts";
import type { Target } from "./workload.ts";

export const spreadAccounts = 1_000;
/** Concurrent admin requests while accounts are opened. */
const openedAtOnce = 20;
const dayMs = 86_400_000;
/** The entries of the shorter history. */
const shortHistory = 10_000;
const reads = 5;

/** Durations of an operator's requests, in ms. */
export interface ReadTimes {
  readonly title: string;
  readonly firstPageMs: number;
  readonly checkMs: number;
  readonly fullCheckMs: number;
}

export interface AccountResults {
  /** A new account against one with a short and one with a long history. */
  readonly history: readonly Round[];
  /** One account against a thousand. */
  readonly spread: readonly Round[];
  readonly reads: readonly ReadTimes[];
}

export const noAccounts: AccountResults = { history: [], spread: [], reads: [] };

async function openMany(service: Service): Promise<readonly [Target, ...Target[]]> {
  const targets: Target[] = [];
  while (targets.length < spreadAccounts) {
    const opened = await Promise.all(Array.from({ length: openedAtOnce }, () => service.openAccount()));
    targets.push(...opened.map(({ target }) => target));
  }
  return targets as [Target, ...Target[]];
}

/** A month of an account's past calls, with a credit that paid for them, all counted by its checkpoint and in final days. */
async function insertHistory({ stores }: Service, account: string, calls: number): Promise<void> {
  const [startAt, endAt] = [Date.now() - 31 * dayMs, Date.now() - 2 * dayMs];
  const movement = (index: number) => ({
    account,
    createdAt: new Date(startAt + (index / calls) * (endAt - startAt)),
  });
  // The days are final, so the job that sums usage does not read the history during the rounds.
  const days = stores.mongo.collection<{ _id: string }>("usageDayStates");
  const final = { version: 1, closed: true, closedAt: new Date() };
  await days.updateOne({ _id: new Date(endAt).toISOString().slice(0, 10) }, { $set: final }, { upsert: true });
  const ledger = stores.mongo.collection<{ _id: string }>("ledger");
  // The entries sum to zero, so neither the balance nor the checkpoint changes.
  await insertAll(ledger, 1, () => ({ ...storedCredit(movement(0), costOfStored(calls)), checkpointed: true }));
  await insertAll(ledger, calls, (index) => ({ ...storedCall(movement(index)), checkpointed: true }));
}

async function timeReads({ admin }: Service, account: string): Promise<Omit<ReadTimes, "title">> {
  const time = async (path: string, input: object = {}) => {
    const samples: number[] = [];
    for (let read = 0; read < reads; read++) {
      const startedAt = performance.now();
      await admin("GET", path, input);
      samples.push(performance.now() - startedAt);
    }
    return median(samples);
  };
  return {
    firstPageMs: await time(`/accounts/${account}/ledger`),
    checkMs: await time("/ledger/check"),
    fullCheckMs: await time("/ledger/check", { full: true }),
  };
}

/** One account against a thousand, and a new account against two with histories, under the same load. */
export async function measureAccounts(bench: Bench, longHistory: number): Promise<AccountResults> {
  const { scenarios, service, quick, run, say } = bench;
  if (!service) return noAccounts;
  const gateway = (name: string, targets: readonly [Target, ...Target[]]): Gateway => ({
    ...serviceGateway(service, targets),
    name,
  });
  const compare = async (title: string, gateways: readonly Gateway[]) => {
    const rounds: Round[] = [];
    for (const stream of [false, true]) {
      const scenario = { ...scenarios.closed(stream, 50), title: `${kindOf(stream)}, ${title}` };
      rounds.push(...(await run({ ...scenario, rounds: quick ? 1 : 4 }, gateways)));
    }
    return rounds;
  };

  const many = gateway("1,000 accounts", await openMany(service));
  // A key's first call reads it from MongoDB.
  await run(scenarios.warmUp(false, 5), [many]);
  const spread = await compare("one or many accounts", [gateway("one account", [service.target]), many]);

  const fresh = await service.openAccount();
  const ages = [gateway("new account", [fresh.target])];
  const readTimes: ReadTimes[] = [{ title: "new account", ...(await timeReads(service, fresh.id)) }];
  for (const entries of [shortHistory, longHistory]) {
    const { id, target } = await service.openAccount();
    const title = `${whole(entries)} entries`;
    say(`Inserting ${title} into the ledger`);
    await insertHistory(service, id, entries);
    ages.push(gateway(title, [target]));
    readTimes.push({ title, ...(await timeReads(service, id)) });
  }
  const history = await compare("new or old account", ages);
  return { history, spread, reads: readTimes };
}
