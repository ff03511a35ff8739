/** The usage that tests expect by the entries of the ledger, and that which the service shows, in the same form. */
import type { LedgerEntry, Money } from "../../shared/money/index.ts";

export const dayOf = (date: Date) => date.toISOString().slice(0, 10);
export const hourOf = (date: Date) => date.toISOString().slice(0, 13);
export const everything = { from: "2000-01-01", to: "2999-12-31", limit: 10_000 };
const others = ["model", "key", "endpoint"] as const;
export const labels = ["tag", "session", "user"] as const;
type Label = (typeof labels)[number];

/** The nearest-rank percentile. */
const percentile = (times: readonly number[], percent: number) =>
  times.toSorted((one, other) => one - other)[Math.ceil((times.length * percent) / 100) - 1];

/** The times that the plain percentiles are of, by row. */
export type Times = Map<string, readonly number[]>;

/** The expected usage by the ledger: plain sums over all its entries since a time, by day or hour. */
export async function plainSums(money: Money, account: string, { timeOf, since, label }: Span, times: Times) {
  const entries = await money.ledger(account, { limit: 10_000 });
  const callOf = ({ id, kind }: LedgerEntry) =>
    entries.find((entry) => entry.id === (kind === "refund" ? id.slice("refund:".length) : id))?.request;
  const none = {
    calls: 0,
    failed: 0,
    cancelled: 0,
    inputTokens: 0,
    cachedTokens: 0,
    costNanoUsd: 0n,
    savedNanoUsd: 0n,
  };
  const rows = new Map<string, typeof none>();
  for (const entry of entries) {
    const call = callOf(entry);
    if (!call || entry.createdAt.getTime() < since) continue;
    const { model = null, key = null, endpoint = null, status, usage, firstTokenMs, totalMs } = call;
    const { tags = [null], sessionId: session = null, user = null } = call;
    for (const labeled of label ? (label === "tag" ? tags : [{ session, user }[label]]) : [undefined]) {
      const name = JSON.stringify([timeOf(entry.createdAt), model, key, endpoint, labeled]);
      const row = rows.get(name) ?? none;
      const isCall = entry.kind !== "refund";
      rows.set(name, {
        calls: row.calls + Number(isCall),
        failed: row.failed + Number(isCall && status === "failed"),
        cancelled: row.cancelled + Number(isCall && status === "cancelled"),
        inputTokens: row.inputTokens + (isCall ? (usage.input ?? 0) + (usage.cached_input ?? 0) : 0),
        cachedTokens: row.cachedTokens + (isCall ? (usage.cached_input ?? 0) : 0),
        costNanoUsd: row.costNanoUsd - entry.amountNanoUsd,
        savedNanoUsd: row.savedNanoUsd + (isCall ? (call.savedNanoUsd ?? 0n) : 0n),
      });
      const time =
        entry.kind === "usage" ? (firstTokenMs ?? (status === "succeeded" ? totalMs : undefined)) : undefined;
      if (time !== undefined) times.set(name, [...(times.get(name) ?? []), time]);
    }
  }
  const percentiles = (exact: readonly number[] = []) => ({
    p50: percentile(exact, 50) ?? null,
    p95: percentile(exact, 95) ?? null,
  });
  return new Map([...rows].map(([name, row]) => [name, { ...row, ...percentiles(times.get(name)) }]));
}

export interface Span {
  readonly unit: "day" | "hour";
  readonly timeOf: (date: Date) => string;
  readonly since: number;
  readonly until?: number;
  /** Groups by it, too. */
  readonly label?: Label;
}

/** A percentile that is within its bucket of the exact one counts as exact. */
function nearestTo(exact: number | undefined, shown: number | null | undefined) {
  const isNear = exact !== undefined && shown != null && Math.abs(shown - exact) <= exact * 0.05 + 0.5;
  return isNear ? exact : shown;
}

export async function shownSums(money: Money, account: string, { unit, since, until, label }: Span, times: Times) {
  const period = { from: dayOf(new Date(since)), ...(until && { to: dayOf(new Date(until)) }) };
  const groupBy = [unit, ...others, ...(label ? [label] : [])];
  const rows = await money.usage(account, { ...everything, ...period, groupBy, latency: true });
  return new Map(
    rows.map(({ calls, failed, cancelled, inputTokens, cachedTokens, costNanoUsd, savedNanoUsd, ...row }) => {
      const name = JSON.stringify([row[unit], row.model, row.key, row.endpoint, label && row[label]]);
      const exact = times.get(name) ?? [];
      const p50 = nearestTo(percentile(exact, 50), row.firstTokenP50Ms);
      const p95 = nearestTo(percentile(exact, 95), row.firstTokenP95Ms);
      return [name, { calls, failed, cancelled, inputTokens, cachedTokens, costNanoUsd, savedNanoUsd, p50, p95 }];
    }),
  );
}

const serviceGroups = ["day", "model", "account"] as const;

/** The expected usage of the service: what the ledger's entries of these accounts charged, and what is known of their costs. */
export async function plainServiceSums(money: Money, accounts: readonly string[]) {
  const rows = new Map<string, { calls: number; costNanoUsd: bigint; upstreamCostNanoUsd: bigint; known: bigint }>();
  for (const account of accounts) {
    const entries = new Map((await money.ledger(account, { limit: 10_000 })).map((entry) => [entry.id, entry]));
    for (const { id, kind, amountNanoUsd, createdAt } of entries.values()) {
      const call = entries.get(id.replace(/^refund:/, ""))?.request;
      if (!call) continue;
      const name = JSON.stringify([dayOf(createdAt), call.model ?? null, account]);
      const row = rows.get(name) ?? { calls: 0, costNanoUsd: 0n, upstreamCostNanoUsd: 0n, known: 0n };
      const isKnown = call.upstreamCostNanoUsd !== undefined;
      const isCall = kind !== "refund";
      rows.set(name, {
        calls: row.calls + Number(isCall),
        costNanoUsd: row.costNanoUsd - amountNanoUsd,
        upstreamCostNanoUsd: row.upstreamCostNanoUsd + (isCall ? (call.upstreamCostNanoUsd ?? 0n) : 0n),
        known: row.known - (isKnown ? amountNanoUsd : 0n),
      });
    }
  }
  return new Map(
    [...rows].map(([name, { known, ...row }]) => [name, { ...row, marginNanoUsd: known - row.upstreamCostNanoUsd }]),
  );
}

export async function shownServiceSums(money: Money, accounts: readonly string[] | undefined) {
  const rows = await money.usageOfService({ ...everything, accounts, groupBy: serviceGroups });
  return new Map(
    rows.map(({ day, model, account, calls, costNanoUsd, upstreamCostNanoUsd, marginNanoUsd }) => [
      JSON.stringify([day, model, account]),
      { calls, costNanoUsd, upstreamCostNanoUsd, marginNanoUsd },
    ]),
  );
}

/** The expected charges of a budget: the calls since then, less the refunds since then. */
export async function plainCharges(money: Money, account: string, key: string, since: number): Promise<bigint> {
  const entries = await money.ledger(account, { limit: 10_000 });
  const ids = new Set(entries.filter(({ request }) => request?.key === key).map(({ id }) => id));
  return entries
    .filter(({ id, createdAt }) => createdAt.getTime() >= since && ids.has(id.replace(/^refund:/, "")))
    .reduce((sum, { amountNanoUsd }) => sum - amountNanoUsd, 0n);
}
