import { expect, onTestFinished } from "vitest";
import {
  type CallHold,
  type Capture,
  createMoney,
  type Hold,
  type Leased,
  type Money,
  moneySchema,
  type ReturnRequests,
} from "../../shared/money/index.ts";
import { atMost, type Clock, systemClock } from "../../shared/platform/clock.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo, type Mongo } from "../../shared/platform/mongo/connection.ts";
import { migrated } from "./schema.ts";
import { testStores } from "./servers.ts";

/** `later` moves the modules' clock; delays between retries are real, and short. */
export interface MovableClock extends Clock {
  later(ms: number): void;
}

export function createMovableClock(): MovableClock {
  let aheadMs = 0;
  return {
    ...systemClock,
    now: () => Date.now() + aheadMs,
    later: (ms) => {
      aheadMs += ms;
    },
  };
}

export const minuteMs = 60_000;

/** The connection and the groups of one process. They end with the test. */
export async function startMoney(
  uri: string,
  clock: Clock = systemClock,
  more: Pick<Parameters<typeof createMoney>[0], "observer" | "recoveryMs" | "lostRefundsNanoUsd"> = {},
): Promise<{ money: Money; mongo: Mongo }> {
  const log = createLogger("test", "silent");
  const mongo = await connectMongo(uri, clock, log);
  onTestFinished(() => mongo.close());
  const money = createMoney({ mongo, ...more, clock, log });
  await migrated(mongo, [moneySchema]);
  return { money, mongo };
}

/** A separate database, one process on it, and an account with a balance. */
export async function startBank({
  balanceNanoUsd = 1_000n,
  ...more
}: { balanceNanoUsd?: bigint } & Pick<Parameters<typeof createMoney>[0], "observer" | "lostRefundsNanoUsd"> = {}) {
  const { MONGODB_URI: uri } = await testStores();
  const clock = createMovableClock();
  const { money, mongo } = await startMoney(uri, clock, more);
  const account = await openAccount(money, balanceNanoUsd);
  /** Another process on the same database. */
  const another = async () => (await startMoney(uri, clock, more)).money;
  return { uri, clock, money, mongo, account, another };
}

/** The leases of an API instance that is always registered, alone or alongside the others of `returnRequests`. */
/** There is no other instance. */
export const alone: ReturnRequests = { ask() {}, recall: async () => new Set(), onAsked() {} };

export const leasesOf = (money: Money, instance = "api_test", returnRequests: ReturnRequests = alone) =>
  money.createLeases({ registration: { instance, since: () => 0, renew: async () => {} }, returnRequests });

export async function openAccount(money: Money, balanceNanoUsd: bigint): Promise<string> {
  const { id } = await money.createAccount({ name: "acme" });
  if (balanceNanoUsd > 0n) await money.credit(id, { amountNanoUsd: balanceNanoUsd, idempotencyKey: "opening" });
  return id;
}

export const holdOf = (account: string, nanoUsd: bigint, more: Partial<Hold> = {}): Hold => ({
  account,
  requestId: newRequestId(),
  maxNanoUsd: nanoUsd,
  minNanoUsd: nanoUsd,
  expiresAt: Date.now() + 10 * minuteMs,
  ...more,
});

/** A hold that must fit. */
export async function held(money: Money, hold: Hold): Promise<Hold> {
  expect(await money.hold(hold)).toEqual({ ok: true, heldNanoUsd: hold.maxNanoUsd });
  return hold;
}

export const captureOf = (hold: Hold, costNanoUsd: bigint, more: Partial<Capture> = {}): Capture => ({
  account: hold.account,
  requestId: hold.requestId,
  key: "key_test",
  endpoint: "/v1/chat/completions",
  model: "openai/gpt",
  heldNanoUsd: hold.maxNanoUsd,
  costNanoUsd,
  status: "succeeded",
  upstream: "openai",
  attempts: [{ upstream: "openai", startedMs: 1, durationMs: 40, outcome: "succeeded" }],
  usage: { input: 10, output: 5 },
  estimated: false,
  totalMs: 1_200,
  ...more,
});

export const settlementOf = (hold: Hold, costNanoUsd: bigint) => ({
  account: hold.account,
  requestId: hold.requestId,
  heldNanoUsd: hold.maxNanoUsd,
  costNanoUsd,
});

export async function balance(money: Money, account: string) {
  const found = await money.account(account);
  if (!found) throw new Error(`no account ${account}`);
  const { availableNanoUsd, heldNanoUsd, openHolds } = found;
  return { availableNanoUsd, heldNanoUsd, openHolds };
}

export const free = (availableNanoUsd: bigint) => ({ availableNanoUsd, heldNanoUsd: 0n, openHolds: 0 });

export const inTurn = <T>(all: readonly T[], at: number): T => all[at % all.length] as T;

export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));

/** A text call's request for a lease. */
export const leaseRequestOf = (account: string, maxNanoUsd: bigint, more: Partial<CallHold> = {}): CallHold => ({
  ...holdOf(account, maxNanoUsd),
  key: "key_test",
  endpoint: "/v1/chat/completions",
  model: "openai/gpt",
  insufficientText: (availableNanoUsd) => `available: ${availableNanoUsd}`,
  ...more,
});

/** The capture of a call whose hold is part of a lease. */
export const leasedCapture = (request: CallHold, { lease, heldNanoUsd }: Leased, costNanoUsd: bigint) =>
  captureOf({ ...request, maxNanoUsd: heldNanoUsd }, costNanoUsd, { lease });

/** A bus on which instances receive each other's return requests. */
export function createRecallBus(clock: Clock = systemClock) {
  const listeners = new Map<string, Parameters<ReturnRequests["onAsked"]>[0]>();
  return (instance: string): ReturnRequests => ({
    ask(account) {
      for (const [other, giveBack] of listeners) if (other !== instance) void giveBack({ account, from: instance });
    },
    async recall(account, instances, ms) {
      const returned = new Set<string>();
      const recalls = instances.map(async (other) => {
        await listeners.get(other)?.({ account, from: instance });
        if (listeners.has(other)) returned.add(other);
        else await new Promise(() => {});
      });
      await atMost(clock, ms, Promise.all(recalls));
      return returned;
    },
    onAsked: (giveBack) => listeners.set(instance, giveBack),
  });
}

/** The commands of this kind that MongoDB ran for the work, with the number of keys and documents that each examined. */
export async function profiled({ db }: Mongo, commands: object, work: () => Promise<unknown>) {
  await db.command({ profile: 2 });
  await work();
  await db.command({ profile: 0 });
  const profile = db.collection("system.profile");
  const found = await profile.find(commands).sort({ ts: 1 }).toArray();
  await profile.drop();
  return found;
}
