import { expect, test } from "vitest";
import { planBatches } from "../chaos/run/batch-load.ts";
import { type BatchLog, type batchOracles, examineBatches, type PlannedLine } from "../chaos/run/batch-oracles.ts";

const [account, id, bill] = ["acct_1", "batch_1", 25_000n];

const line = (customId: string, behavior: PlannedLine["behavior"] = "ok"): PlannedLine => ({
  customId,
  behavior,
  model: "chaos/chat",
  at: "twice",
  billNanoUsd: behavior === "refused" ? 0n : bill,
});
const answered = (n: number) => ({
  customId: `c${n}`,
  isError: false,
  requestId: `req_${n}`,
  status: 200,
  costNanoUsd: bill,
});
const refused = { ...answered(3), isError: true, status: 400, costNanoUsd: 0n };
const entry = (entryId: string, amountNanoUsd: bigint, kind = "usage") => ({
  id: entryId,
  account,
  kind,
  amountNanoUsd,
  shortfallNanoUsd: 0n,
});

const batch = {
  id,
  account,
  status: "completed",
  lines: [line("c1"), line("c2", "failed"), line("c3", "refused")],
  counts: { total: 3, completed: 2, failed: 1 },
  costNanoUsd: 2n * bill,
  results: [answered(1), answered(2), refused],
};
/** A run with retried and refused lines, and correct handling of all of them. */
const clean: BatchLog = {
  batches: [batch],
  runs: [],
  // The first try of the second line failed.
  entries: [
    entry("credit:start", 1_000_000_000n, "credit"),
    entry("req_1", -bill),
    entry("req_0", 0n),
    entry("req_2", -bill),
    entry("req_3", 0n),
  ],
  balances: [{ account, availableNanoUsd: 1_000_000_000n - 2n * bill, heldNanoUsd: 0n }],
  openHolds: 0,
  undecided: 0,
  openJobs: 0,
  checkOk: true,
  checkDifferenceNanoUsd: 0n,
  // Its process was killed before it recorded the part.
  strayObjects: ["batch/batch_1/outputs-abc"],
  lineDocuments: 0,
  crashes: [],
  peakBytes: new Map([["api-1", 300_000_000]]),
};
const [balance] = clean.balances as [BatchLog["balances"][number]];
const changed = (more: Partial<typeof batch>): BatchLog => ({ ...clean, batches: [{ ...batch, ...more }] });
const [first, second, third] = [answered(1), answered(2), refused];
const withEntry = (added: BatchLog["entries"][number]): BatchLog => ({
  ...clean,
  entries: [...clean.entries, added],
  balances: [{ ...balance, availableNanoUsd: balance.availableNanoUsd + added.amountNanoUsd }],
});

const defects: Readonly<Record<keyof typeof batchOracles, BatchLog>> = {
  "batches that did not complete": changed({ status: "in_progress" }),
  "lines without a result": changed({
    results: [first, second],
    counts: { total: 3, completed: 2, failed: 0 },
  }),
  "results without a line": changed({
    results: [...batch.results, { ...third, customId: "c3 " }],
    counts: { total: 3, completed: 2, failed: 2 },
  }),
  "lines with several results": changed({
    results: [...batch.results, third],
    counts: { total: 3, completed: 2, failed: 2 },
  }),
  "counts that differ": changed({ counts: { total: 3, completed: 3, failed: 0 } }),
  "lines that failed or passed wrongly": changed({
    results: [first, second, { ...third, status: 503 }],
  }),
  "results charged wrongly": {
    ...changed({ costNanoUsd: 2n * bill + 1n, results: [{ ...first, costNanoUsd: bill + 1n }, second, third] }),
    entries: clean.entries.map((each) => (each.id === "req_1" ? entry("req_1", -bill - 1n) : each)),
    balances: [{ ...balance, availableNanoUsd: balance.availableNanoUsd - 1n }],
  },
  "results that differ from the ledger": {
    ...clean,
    entries: clean.entries.map((each) => (each.id === "req_1" ? entry("req_1", -bill - 1n) : each)),
    balances: [{ ...balance, availableNanoUsd: balance.availableNanoUsd - 1n }],
  },
  "charges without a result": withEntry(entry("req_4", -bill)),
  "costs of batches that differ": changed({ costNanoUsd: 2n * bill + 1n }),
  "charged or refunded otherwise": withEntry(entry("refund:req_1", bill, "refund")),
  "open holds": { ...clean, openHolds: 1 },
  undecided: { ...clean, undecided: 1 },
  "lost jobs": { ...clean, openJobs: 1 },
  "documents of lines": { ...clean, lineDocuments: 1 },
  "balances that differ": { ...clean, balances: [{ ...balance, heldNanoUsd: 1n }] },
  "the service's own check": { ...clean, checkDifferenceNanoUsd: 1n },
  "processes above 700 MB": { ...clean, peakBytes: new Map([["worker-1", 800_000_000]]) },
  "processes that ended by themselves": { ...clean, crashes: ["api-1: exit 1"] },
  "objects that no record names": { ...clean, strayObjects: ["batch/batch_2/outputs-abc"] },
};

const brokenIn = (log: BatchLog) =>
  Object.entries(examineBatches(log)).flatMap(([name, found]) => (found.length > 0 ? [name] : []));

test("a run of batches without a defect breaks no invariant", () => {
  expect(brokenIn(clean)).toEqual([]);
});

test.for(Object.entries(defects))("only this oracle detects its defect: %s", ([name, log]) => {
  expect(brokenIn(log)).toEqual([name]);
});

test("the same seed plans the same batches, of all lines and with names that differ", () => {
  const planned = planBatches(7, 10_001);
  const lines = planned.flatMap((each) => each.lines);
  expect(planBatches(7, 10_001)).toEqual(planned);
  expect([lines.length, new Set(lines.map(({ customId }) => customId)).size]).toEqual([10_001, 10_001]);
  const kinds = new Set(planned.map(({ owner, endpoint }) => `${owner} ${endpoint}`));
  expect(kinds.size).toBe(6);
});
