import type { Gathered, GatheredCheck, GatheredCounts } from "#gathered";
import type { Clock } from "#platform/clock";
import type { Metrics } from "#platform/metrics";

/** Counts that are older say nothing of now: no maintenance worker runs. */
const maxAgeMs = 120_000;

/** The metrics of what is stored: every API instance shows what a maintenance worker has counted. */
export function observeGathered(deps: { metrics: Metrics; gathered: Gathered; clock: Clock }): void {
  const { metrics, gathered, clock } = deps;
  const ageSeconds = (since: number) => Math.max(0, clock.now() - since) / 1_000;
  const ageOf = (since: number | undefined) => (since === undefined ? 0 : ageSeconds(since));

  async function counts(): Promise<GatheredCounts | undefined> {
    const { counts: found } = await gathered.read();
    return found && clock.now() - found.at <= maxAgeMs ? found : undefined;
  }

  type Gauge = Parameters<Metrics["gauge"]>[0];
  type Plain = Extract<Gauge, `inference_${"hold" | "lease" | "undecided" | "ledger" | "file" | "gathered"}${string}`>;
  const plain = (name: Plain, read: () => Promise<number | undefined>) =>
    metrics.gauge(name, async () => {
      const value = await read();
      return value === undefined ? undefined : [[{}, value]];
    });
  const counted = (name: Plain, of: (found: GatheredCounts) => number) =>
    plain(name, async () => {
      const found = await counts();
      return found && of(found);
    });

  counted("inference_holds_open", ({ holds }) => holds.open);
  counted("inference_hold_oldest_seconds", ({ holds }) => ageOf(holds.oldestAt));
  counted("inference_leases_open", ({ leases }) => leases.open);
  counted("inference_lease_oldest_seconds", ({ leases }) => ageOf(leases.oldestAt));
  counted("inference_undecided_calls", ({ undecided }) => undecided);
  counted("inference_file_expiry_lag_seconds", ({ dueSince }) => ageOf(dueSince));
  plain("inference_gathered_age_seconds", async () => {
    const { counts: found } = await gathered.read();
    return found && ageSeconds(found.at);
  });
  const byState = (states: Readonly<Record<string, number>> | undefined) =>
    states && Object.entries(states).map(([state, count]) => [{ state }, count] as const);
  metrics.gauge("inference_uploads", async () => byState((await counts())?.uploads));
  metrics.gauge("inference_buyback_batches", async () => byState((await counts())?.buybacks));

  /** The larger of what the last complete check found and what the one under way has found so far. */
  const found = (of: (check: NonNullable<GatheredCheck["complete" | "current"]>) => number) => async () => {
    const { check } = await gathered.read();
    const values = [check?.complete, check?.current].flatMap((each) => (each ? [of(each)] : []));
    return values.length > 0 ? Math.max(...values) : undefined;
  };
  plain(
    "inference_ledger_difference_usd",
    found(({ differenceNanoUsd }) => Number(differenceNanoUsd) / 1e9),
  );
  plain(
    "inference_ledger_faults",
    found(({ faults }) => faults),
  );
  plain("inference_ledger_check_age_seconds", async () => {
    const { check } = await gathered.read();
    return check?.complete && ageSeconds(check.complete.at);
  });
}
