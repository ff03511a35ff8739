/**
 * The cost of sums with ten times as many entries in the day, or payments: `npm run bench:sums -- [factor]`. It starts
 * its own MongoDB, fills two databases whose last hours are the same, and prints medians of alternating rounds. Use
 * factor 10 for a nightly run.
 */
import { dayMs, systemClock } from "#platform/clock";
import { insertAll, storedCall } from "./ledger-entries.ts";
import { onMongo, openMoney, print } from "./money-bench.ts";
import { median } from "./table.ts";

const [factor = 1] = process.argv.slice(2).map(Number);
const rounds = 15;
const hourMs = 3_600_000;
const account = "acct_bench";
const key = "key_bench";
const lastHours = 4_000;
const callsOfRound = 100;
/** Payments with an unused remainder, and spent ones that have expired. */
const [owing, expired] = [1_000, 200];
/** The middle of the last hour of a day. */
const nowMs = Date.parse("2026-11-23T23:30:00Z");
const midnight = Date.parse("2026-11-23T00:00:00Z");

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/**
 * Inserts a day with this many entries and payments. The last one and a half hours always have the same number of
 * entries.
 */
async function fill(uri: string, entries: number, payments: number) {
  let now = nowMs;
  const clock = { ...systemClock, now: () => now };
  // A new instance has empty caches, as after a restart.
  const { mongo, create: restarted } = await openMoney(uri, clock);
  const ledger = mongo.connection.collection<{ _id: string }>("ledger");
  const accounts = mongo.connection.collection<{ _id: string }>("accounts");
  const insertBetween = (count: number, from: number, until: number) =>
    insertAll(ledger, count, (at) => {
      const createdAt = new Date(from + Math.floor(((until - from) / count) * at));
      const call = storedCall({ account, createdAt });
      return { ...call, request: { ...call.request, model: `vendor/model-${at % 5}` } };
    });
  const last = nowMs - 1.5 * hourMs;
  await insertBetween(entries - lastHours, midnight, last);
  await insertBetween(lastHours, last, nowMs);
  const empty = { tier: "standard", frozen: false, held: 0n, openHolds: 0, holds: {} };
  await insertAll(accounts, payments, (at) => {
    const createdAt = new Date(at < expired ? nowMs - 2 * dayMs : nowMs - 60_000);
    const id = `x402:${String(at).padStart(9, "0")}`;
    return { ...empty, _id: id, name: id, available: at >= expired && at < expired + owing ? 5_000n : 0n, createdAt };
  });
  await restarted().sumUsage();
  const isBefore = new Date(nowMs + dayMs);
  return {
    "a key's budget, counted first": () => restarted().chargesOfKeys(account, [key], new Date(midnight)),
    "sum-usage, 100 calls more": async () => {
      await restarted().sumUsage();
    },
    "x402: the sum of what is unused": () => restarted().sumUnused(isBefore),
    "x402: the spent ones that expired": () => restarted().spentAccounts(new Date(nowMs - dayMs), { limit: 200 }),
    more: async () => {
      await insertBetween(callsOfRound, now, now + 1_000);
      now += 60_000;
    },
    close: () => mongo.close(),
  };
}

async function compare(uri: string): Promise<void> {
  const at = (name: string) => uri.replace(/\/([^/?]*)(\?|$)/, `/${name}$2`);
  const entries = [50_000 * factor, 500_000 * factor] as const;
  const payments = [20_000 * factor, 200_000 * factor] as const;
  const few = await fill(at("few"), entries[0], payments[0]);
  const many = await fill(at("many"), entries[1], payments[1]);
  const names = Object.keys(few).filter((name) => name !== "more" && name !== "close") as (keyof typeof few)[];
  const times = new Map(names.map((name) => [name, [[], []] as [number[], number[]]]));
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    await Promise.all([few.more(), many.more()]);
    for (const name of names.toReversed())
      for (const which of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
        const ms = await timed((which === 0 ? few : many)[name]);
        if (round > 0) times.get(name)?.[which].push(ms);
      }
  }
  for (const [name, [a, b]] of times) {
    const sizes = name.startsWith("x402") ? payments : entries;
    const [before, after] = [median(a), median(b)];
    print(
      `${name}: ${before.toFixed(1)} ms at ${sizes[0]}, ${after.toFixed(1)} ms at ${sizes[1]}, ratio ${(after / before).toFixed(2)}`,
    );
  }
  await Promise.all([few.close(), many.close()]);
}

await onMongo(compare);
