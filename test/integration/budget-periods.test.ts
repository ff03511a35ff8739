import { CreateBucketCommand } from "@aws-sdk/client-s3";
import { expect, test } from "vitest";
import { periodAt } from "../../shared/key-records/index.ts";
import { createArchiveObjects } from "../../shared/money/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { randomBase62 } from "../../shared/platform/ids.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { retentionDays, sizes } from "../support/archive-setup.ts";
import { begin, exceeded, startBudget, usd } from "../support/budget-setup.ts";
import { loseData } from "../support/jobs-setup.ts";
import { times } from "../support/money-setup.ts";
import { testStores } from "../support/servers.ts";

const limitUsd = 20n;
const noon = (day: string) => Date.parse(`${day}T12:00:00Z`);
/** Costs whose sums all differ. */
const costAt = (at: number) => 2n ** BigInt(at) * 100_000n;

/** A budget that two keys share, and the sum of the test's own charges and refunds. */
async function startPeriods(period: "day" | "week" | "month" | "total") {
  const stores = { ...(await testStores()), S3_BUCKET: `budget-${randomBase62(16).toLowerCase()}` };
  const all = await startBudget(limitUsd, period, stores);
  const { a, b, caller, clock, advance, spent } = all;
  const made = await a.keys.authenticate((await a.keys.issue(caller.account, {}, caller)).secret);
  const charged: { at: number; nanoUsd: bigint }[] = [];
  const moveTo = (time: number) => advance(time - clock.now());
  const expected = () => {
    const { from } = periodAt(period, clock.now());
    return charged.filter(({ at }) => at >= from).reduce((sum, { nanoUsd }) => sum + nanoUsd, 0n);
  };
  return {
    ...all,
    moveTo,
    charge: async (nanoUsd: bigint) => {
      const call = await begin(a, charged.length % 2 ? made : caller, nanoUsd);
      await call.end(nanoUsd);
      charged.push({ at: clock.now(), nanoUsd });
      return call.requestId;
    },
    refund: async (requestId: string) => {
      const { amountNanoUsd } = await a.money.refund(caller.account, requestId);
      charged.push({ at: clock.now(), nanoUsd: -amountNanoUsd });
    },
    /**
     * The spent amount after Redis lost its data, and the number of concurrent calls that get a dollar of the
     * remainder.
     */
    recounted: async () => {
      await loseData(a.redis);
      const results = await Promise.allSettled(times(24, (at) => begin(at % 2 ? a : b, caller, usd)));
      const calls = results.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
      const refusals = results.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
      await Promise.all(calls.map((call) => call.end(0n)));
      const before = await spent();
      await loseData(a.redis);
      return { calls: calls.length, refusals, spent: [before, await spent()] };
    },
    /** The expected value by the test's own sums. */
    due: () => {
      const calls = Number((limitUsd * usd - expected()) / usd);
      return {
        calls,
        refusals: times(24 - calls, () => expect.objectContaining(exceeded)),
        spent: [expected(), expected()],
      };
    },
  };
}

const timeline = [
  // A week from a Monday on that ends in another month.
  "2026-01-25",
  "2026-01-26",
  "2026-01-31",
  "2026-02-01",
  "2026-02-02",
  "2026-02-05",
  // A month that begins on the last day of a week, and one that begins in its middle.
  "2026-02-28",
  "2026-03-01",
  "2026-03-04",
  "2026-03-30",
  "2026-03-31",
  "2026-04-01",
  "2026-04-03",
  // A month later, without calls in between.
  "2026-06-01",
];

test.each(["day", "week", "month", "total"] as const)(
  "a budget of a %s is exact and not exceeded after Redis lost its data, whatever part of its period stands",
  async (period) => {
    const { a, moveTo, charge, refund, recounted, due } = await startPeriods(period);
    let last = "";
    for (const [at, day] of timeline.entries()) {
      moveTo(noon(day));
      // A refund from the day before, inside the period or outside it.
      if (at % 3 === 1) await refund(last);
      last = await charge(costAt(at));
      await charge(7n);
      expect([day, await recounted()]).toEqual([day, due()]);
      await a.money.sumUsage();
      expect([day, await recounted()]).toEqual([day, due()]);
    }
    // The closed days end one day, two days and a week before.
    for (const days of [2, 3, 9]) {
      moveTo(noon("2026-06-01") + days * dayMs);
      await a.money.sumUsage();
      expect([days, await recounted()]).toEqual([days, due()]);
    }
  },
);

test("a total has what is in the archive, after Redis lost its data", async () => {
  const { a, stores, moveTo, charge, refund, recounted, due } = await startPeriods("total");
  const config = loadConfig({ ...stores });
  await connectS3(config).send(new CreateBucketCommand({ Bucket: stores.S3_BUCKET }));
  const archive = a.money.createArchive({ objects: createArchiveObjects(config), retentionDays, sizes });
  moveTo(noon("2026-01-30"));
  await charge(3n * usd);
  const refunded = await charge(2n * usd);
  moveTo(noon("2026-02-01"));
  await charge(usd);
  await refund(refunded);
  moveTo(noon("2026-02-20"));
  await a.money.sumUsage();
  await a.money.checkpoint();
  const ofJanuary = { kind: "usage", createdAt: { $lt: new Date("2026-02-01T00:00:00Z") } };
  for (const [day, entries] of [
    ["2026-03-05", 2],
    ["2026-03-15", 0],
    ["2026-05-15", 0],
  ] as const) {
    moveTo(noon(day));
    await a.money.sumUsage();
    await archive.run();
    expect([day, await a.mongo.connection.collection("ledger").countDocuments(ofJanuary)]).toEqual([day, entries]);
    expect([day, await recounted()]).toEqual([day, due()]);
    await charge(usd / 10n);
    expect([day, await recounted()]).toEqual([day, due()]);
  }
});
