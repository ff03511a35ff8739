import type { Uses } from "#platform/uses";

export interface Quota {
  readonly responses: number;
  readonly bytes: number;
}

interface Used {
  readonly countedAt: number;
  readonly total: Promise<{ responses: number; bytes: number }>;
}

const countedForMs = 60_000;
const maxAccounts = 10_000;

/**
 * Bounds what an account stores. Each process counts once a minute and adds what it stores itself. The bound may
 * therefore be exceeded by what other processes store within that minute, but no call waits for a counter that all
 * calls of an account change.
 */
export function createQuota(deps: Uses<"clock"> & { quota: Quota; count: (account: string) => Promise<Quota> }) {
  const { quota, clock, count } = deps;
  const accounts = new Map<string, Used>();

  function usedBy(account: string): Used {
    const known = accounts.get(account);
    if (known && clock.now() - known.countedAt < countedForMs) return known;
    if (accounts.size >= maxAccounts) accounts.clear();
    const total = count(account).then((counted) => ({ ...counted }));
    const used = { countedAt: clock.now(), total };
    accounts.set(account, used);
    total.catch(() => accounts.delete(account));
    return used;
  }

  /** Counts one response of this size, if it fits. */
  return async (account: string, bytes: number): Promise<boolean> => {
    const total = await usedBy(account).total;
    if (total.responses >= quota.responses || total.bytes + bytes > quota.bytes) return false;
    total.responses++;
    total.bytes += bytes;
    return true;
  };
}
