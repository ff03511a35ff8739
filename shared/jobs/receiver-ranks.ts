const windowMs = 10_000;

/**
 * Ranks the receivers of an account, from 0, in the order in which they were enqueued lately. The higher its rank, the lower
 * the priority of a receiver, so that an account whose callbacks name thousands of addresses delays only itself.
 */
export function createReceiverRanks() {
  let since = Date.now();
  const byAccount = new Map<string, Map<string, number>>();
  return (account: string, receiver: string): number => {
    const now = Date.now();
    if (now - since > windowMs) {
      byAccount.clear();
      since = now;
    }
    const ranks = byAccount.get(account) ?? new Map<string, number>();
    byAccount.set(account, ranks);
    const rank = ranks.get(receiver) ?? ranks.size;
    ranks.set(receiver, rank);
    return rank;
  };
}
