/** Webhook attempts at one host, over all receivers. */
const maxPerHost = 20;

interface Wanted {
  readonly account: string;
  readonly host: string;
  /** The last attempt at the receiver failed. */
  readonly isFailing: boolean;
}

interface Waiting extends Wanted {
  readonly start: () => void;
}

/**
 * Decides whose attempt is next in this process. At most `total` run at once, and half of that for receivers whose last
 * attempt failed, so that dead receivers leave room. Accounts with fewer running attempts go first.
 */
export function createPermits({ total }: { total: number }) {
  const maxFailing = Math.max(1, Math.floor(total / 2));
  const waiting: Waiting[] = [];
  const ofAccount = new Map<string, number>();
  const ofHost = new Map<string, number>();
  let running = 0;
  let failing = 0;

  const add = (counts: Map<string, number>, key: string, by: number) => {
    const count = (counts.get(key) ?? 0) + by;
    if (count === 0) counts.delete(key);
    else counts.set(key, count);
  };
  const fits = ({ host, isFailing }: Wanted) =>
    (ofHost.get(host) ?? 0) < maxPerHost && (!isFailing || failing < maxFailing);
  /** Lower goes first. */
  const rank = ({ account, isFailing }: Wanted) => (ofAccount.get(account) ?? 0) + (isFailing ? total : 0);

  function next(): Waiting | undefined {
    let best: Waiting | undefined;
    for (const each of waiting) if (fits(each) && (!best || rank(each) < rank(best))) best = each;
    return best;
  }

  function count({ account, host, isFailing }: Wanted, by: 1 | -1): void {
    running += by;
    if (isFailing) failing += by;
    add(ofAccount, account, by);
    add(ofHost, host, by);
  }

  function startWaiting(): void {
    while (running < total) {
      const found = next();
      if (!found) return;
      waiting.splice(waiting.indexOf(found), 1);
      count(found, 1);
      found.start();
    }
  }

  return {
    /** Resolves with the function that gives the permit back. Rejects with the signal's reason. */
    acquire: (wanted: Wanted, signal: AbortSignal): Promise<() => void> =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason as Error);
        const onAbort = () => {
          waiting.splice(waiting.indexOf(entry), 1);
          reject(signal.reason as Error);
        };
        const entry: Waiting = {
          ...wanted,
          start: () => {
            signal.removeEventListener("abort", onAbort);
            resolve(() => {
              count(wanted, -1);
              startWaiting();
            });
          },
        };
        signal.addEventListener("abort", onAbort, { once: true });
        waiting.push(entry);
        startWaiting();
      }),
    running: () => running,
    waiting: () => waiting.length,
  };
}
