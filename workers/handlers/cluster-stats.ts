import type { Batches } from "#batches";
import type { ClusterStats } from "#cluster-stats";
import type { Files } from "#files";
import type { Money } from "#money";
import type { Payments } from "#payments";
import type { Clock } from "#platform/clock";

interface Deps {
  readonly money: Pick<Money, "check" | "openHolds">;
  readonly files: Pick<Files, "counts">;
  readonly payments: Pick<Payments, "countBuybacks">;
  readonly batches: Pick<Batches, "findOpen">;
  readonly clusterStats: ClusterStats;
  readonly clock: Clock;
}

/** One page has 1,000 accounts; a run ends long before the next one starts. */
const pagesInARun = 20;

export async function countStored(deps: Deps): Promise<void> {
  const { money, files, payments, batches: stored, clusterStats, clock } = deps;
  const [holds, { uploads, dueSince }, buybacks, batches] = await Promise.all([
    money.openHolds(),
    files.counts(),
    payments.countBuybacks(),
    stored.findOpen(),
  ]);
  await clusterStats.write({ counts: { at: clock.now(), ...holds, uploads, dueSince, buybacks, batches } });
}

/**
 * Compares some accounts with the ledger, and continues with the next ones in the following run. A difference is reported
 * immediately.
 */
export async function checkSome({ money, clusterStats, clock }: Deps, maxPages: number): Promise<void> {
  const { check = {} } = await clusterStats.read();
  const { after = "", differenceNanoUsd: before = "0", faults: faultsBefore = 0 } = check.current ?? {};
  const { next, ...checked } = await money.check({ after, maxPages });
  const found = {
    differenceNanoUsd: String(BigInt(before) + checked.differenceNanoUsd),
    faults: faultsBefore + checked.faults,
  };
  const { complete } = check;
  await clusterStats.write({
    check:
      next === undefined
        ? { complete: { ...found, at: clock.now() } }
        : { ...(complete && { complete }), current: { ...found, after: next } },
  });
}

export const checkLedger = (deps: Deps): Promise<void> => checkSome(deps, pagesInARun);
