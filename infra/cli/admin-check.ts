import type { AdminClient } from "./admin-client.ts";
import type { Item } from "./admin-print.ts";

/** Thousands of accounts per request, so that each request completes within seconds. */
const pages = 5;

interface Part {
  readonly ok: boolean;
  readonly accounts: number;
  readonly difference_usd: string;
  readonly open_holds: number;
  readonly overdue_holds: number;
  readonly oldest_open_hold_seconds: number;
  readonly undecided: number;
  readonly of_accounts: number;
  readonly next: string | null;
}

/** Checks the ledger part by part. Reports progress after every part except the last. */
export async function checkLedger(send: AdminClient, full: boolean, report: (text: string) => void): Promise<Item> {
  // Imported lazily, because no other command needs it.
  const { formatUsd, parseUsd } = await import("#money");
  const read = async (after?: string) =>
    (await send("GET", "/ledger/check", { ...(full && { full }), pages, after })) as unknown as Part;
  let sum = await read();
  let differenceNanoUsd = parseUsd(sum.difference_usd) ?? 0n;
  for (let { next } = sum; next !== null; ) {
    report(`${sum.accounts} of about ${sum.of_accounts} accounts\n`);
    const part: Part = await read(next);
    differenceNanoUsd += parseUsd(part.difference_usd) ?? 0n;
    sum = {
      ...part,
      ok: sum.ok && part.ok,
      accounts: sum.accounts + part.accounts,
      open_holds: sum.open_holds + part.open_holds,
      overdue_holds: sum.overdue_holds + part.overdue_holds,
      oldest_open_hold_seconds: Math.max(sum.oldest_open_hold_seconds, part.oldest_open_hold_seconds),
      undecided: sum.undecided + part.undecided,
    };
    next = part.next;
  }
  const { of_accounts: _all, next: _next, ...checked } = sum;
  return { ...checked, difference_usd: formatUsd(differenceNanoUsd) };
}
