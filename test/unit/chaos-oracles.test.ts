import { expect, test } from "vitest";
import { differenceFromBills, examine, type oracles } from "../chaos/run/oracles.ts";
import { createPlan } from "../chaos/run/plan.ts";
import type { CallRecord, ProviderRun, RunLog } from "../chaos/run/run-log.ts";
import { slopeOf } from "../chaos/run/slopes.ts";

const bill = 25_000n;
const account = "acct_1";

const call = (n: number, more: Partial<CallRecord> = {}): CallRecord => ({
  marker: `c${n}`,
  kind: "chat json",
  account,
  instance: "api-1",
  behavior: "ok",
  startedMs: n * 1_000,
  endedMs: n * 1_000 + 500,
  outcome: "answered",
  requestId: `req_${n}`,
  status: 200,
  begun: true,
  replayed: false,
  ...more,
});
const run = (n: number, more: Partial<ProviderRun> = {}): ProviderRun => ({
  marker: `c${n}`,
  upstream: "openai-a",
  atMs: n * 1_000 + 100,
  behavior: "ok",
  billNanoUsd: bill,
  mayBillNanoUsd: bill,
  ...more,
});
const entry = (id: string, amountNanoUsd: bigint, kind = "usage", shortfallNanoUsd = 0n) => ({
  id,
  account,
  kind,
  amountNanoUsd,
  shortfallNanoUsd,
});
const refused = { outcome: "refused", status: 503, code: "no_capacity", begun: false } as const;
const disconnected = { outcome: "none", failure: "ECONNRESET" } as const;

/** A run with many faults, and correct handling of all of them. */
const clean: RunLog = {
  calls: [
    call(1),
    // Its first upstream failed.
    call(2),
    call(3, refused),
    // Its API was killed. The provider's work for it is charged.
    { ...call(4, { ...disconnected, instance: "api-2" }), requestId: undefined as never },
    call(5, { kind: "chat stream", outcome: "disconnected", begun: false }),
    call(6, { idempotencyKey: "key-6" }),
    call(7, { marker: "c6", idempotencyKey: "key-6", replayed: true }),
    call(8, { behavior: "hugeUsage" }),
    call(9, { kind: "upload" }),
    // Its worker died during the capture.
    call(10, refused),
    // Its API died before recording the delivery, so it is free.
    call(11, { instance: "api-2", endedMs: 4_050, startedMs: 3_900 }),
    call(12, { instance: "api-2", startedMs: 1_000, endedMs: 1_500 }),
  ],
  runs: [
    run(1),
    run(2, { behavior: "reset", billNanoUsd: 0n }),
    run(2, { upstream: "openai-b" }),
    run(4),
    run(6),
    run(8, { billNanoUsd: 1_000n * bill, mayBillNanoUsd: 1_000n * bill }),
    run(10),
    run(11),
    run(12),
  ],
  // It broke off because its caller disconnected.
  counts: [run(5)],
  faults: [{ kind: "api killed", instance: "api-2", startedMs: 4_100, endedMs: 6_000 }],
  entries: [
    entry("credit:start", 1_000_000_000n, "credit"),
    entry("req_1", -bill),
    entry("req_2", -bill),
    entry("req_3", 0n),
    entry("req_4", -bill),
    entry("req_5", 0n),
    entry("req_6", -bill),
    entry("req_8", -4n * bill, "usage", 996n * bill),
    entry("req_9", -62_500_000n, "storage"),
    entry("req_10", -bill),
    entry("refund:req_10", bill, "refund"),
    { ...entry("req_11", -bill), deliveredBy: "one" },
    entry("refund:req_11", bill, "refund"),
    { ...entry("req_12", -bill), deliveredBy: "one" },
  ],
  balances: [{ account, availableNanoUsd: 1_000_000_000n - 9n * bill - 62_500_000n, heldNanoUsd: 0n }],
  openHolds: 0,
  undecided: 0,
  openJobs: 0,
  checkOk: true,
  checkDifferenceNanoUsd: 0n,
  strayObjects: [],
  crashes: [],
  peakBytes: new Map([["api-1", 300_000_000]]),
};

const changed = (n: number, more: Partial<CallRecord>): RunLog => ({
  ...clean,
  calls: clean.calls.map((each) => (each.marker === `c${n}` ? { ...each, ...more } : each)),
});
const [balance] = clean.balances as [RunLog["balances"][number]];
const withEntry = (id: string, amountNanoUsd: bigint): RunLog => ({
  ...clean,
  entries: clean.entries.map((each) => (each.id === id ? { ...each, amountNanoUsd } : each)),
  balances: [{ ...balance, availableNanoUsd: balance.availableNanoUsd + amountNanoUsd - amountOf(id) }],
});
const amountOf = (id: string) => clean.entries.find((each) => each.id === id)?.amountNanoUsd ?? 0n;

test("a run without a defect breaks no invariant, and credits less bills are the balance", () => {
  expect(Object.entries(examine(clean)).filter(([, found]) => found.length > 0)).toEqual([]);
  // Only the caller that its API lost counts by its charge.
  expect(differenceFromBills(clean)).toEqual({ nanoUsd: 0n, billed: 6, byCharge: 1 });
});

const defects: Readonly<Record<keyof typeof oracles, RunLog>> = {
  unanswered: changed(3, { ...disconnected }),
  hung: changed(5, { outcome: "hung" }),
  "double runs": { ...clean, runs: [...clean.runs, run(1)] },
  "prompts counted without need": { ...clean, counts: [...clean.counts, run(1)] },
  "charged twice": {
    ...changed(6, { replayed: false }),
    runs: [...clean.runs, run(6)],
    entries: [...clean.entries, entry("req_7", -bill)],
    balances: [{ ...balance, availableNanoUsd: balance.availableNanoUsd - bill }],
  },
  "free answers": withEntry("req_1", 0n),
  "answers charged wrongly": withEntry("req_2", -bill - 1n),
  "errors charged": withEntry("req_3", -1n),
  "disconnected callers charged too much": withEntry("req_5", -1n),
  "charges without a call": {
    ...clean,
    entries: [...clean.entries, entry("req_13", -1n)],
    balances: [{ ...balance, availableNanoUsd: balance.availableNanoUsd - 1n }],
  },
  "JSON charged that died with its API": {
    ...clean,
    entries: clean.entries.map((each) => (each.id === "req_4" ? { ...each, deliveredBy: "one" } : each)),
  },
  "negative balances": {
    ...clean,
    balances: [...clean.balances, { account: "acct_2", availableNanoUsd: -1n, heldNanoUsd: 1n }],
  },
  "open holds": { ...clean, openHolds: 1 },
  undecided: { ...clean, undecided: 1 },
  "lost jobs": { ...clean, openJobs: 1 },
  "balances that differ": { ...clean, balances: [{ ...balance, availableNanoUsd: balance.availableNanoUsd + 1n }] },
  "the service's own check": { ...clean, checkDifferenceNanoUsd: 1n },
  "processes above 700 MB": { ...clean, peakBytes: new Map([["worker-2", 700_000_001]]) },
  "processes that ended by themselves": { ...clean, crashes: ["worker-6: exit code 1"] },
  "objects without a record": { ...clean, strayObjects: ["uploads/upl_1"] },
};

test.for(Object.entries(defects))("the oracle sees its planted defect, and no other sees it: %s", ([name, log]) => {
  const seen = Object.entries(examine(log)).filter(([, found]) => found.length > 0);
  expect(seen.map(([oracle, found]) => [oracle, found.length])).toEqual([[name, 1]]);
});

test("an answer that was charged less or more than its bill shows in the difference", () => {
  expect(differenceFromBills(withEntry("req_1", 0n)).nanoUsd).toBe(-bill);
  expect(differenceFromBills(withEntry("req_1", -bill - 5n)).nanoUsd).toBe(5n);
});

test("the same seed gives the same plan of calls and faults, another seed another one", () => {
  const options = { seed: 7, minutes: 3, rate: 20 };
  const plan = createPlan(options);
  expect(createPlan(options)).toEqual(plan);
  expect(createPlan({ ...options, seed: 8 })).not.toEqual(plan);
  expect(plan.calls.length).toBeGreaterThan(3_600);
  expect(new Set(plan.faults.map(({ kind }) => kind)).size).toBeGreaterThan(15);
});

test("a soak detects growth, and reports neither noise nor allowed growth", () => {
  const series = (valueAt: (n: number) => number, mayGrowBy = 5) =>
    slopeOf({
      name: "keys",
      mayGrowBy,
      samples: Array.from({ length: 40 }, (_, n) => ({ atMs: n * 30_000, value: valueAt(n) })),
    });
  const grows = series((n) => 100 + n);
  expect(grows).toMatchObject({ isFlat: false, start: 110, end: 139 });
  expect(grows?.perHour).toBeCloseTo(120);
  expect(grows?.grownBy).toBeCloseTo(29);
  expect(series((n) => 100 + n, 30)?.isFlat).toBe(true);
  expect(series((n) => 100 + (n % 2) * 40 + n * 0.2)?.isFlat).toBe(true);
  // Only the warm-up grew.
  expect(series((n) => Math.min(n, 10) * 10)?.isFlat).toBe(true);
  expect(slopeOf({ name: "new process", mayGrowBy: 0, samples: [{ atMs: 0, value: 1 }] })).toBeUndefined();
});
