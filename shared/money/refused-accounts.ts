/** Takes about half a megabyte. */
const maxAccounts = 10_000;

/**
 * Accounts whose last group of calls did not fit. Their next group is read before it is written, so that a caller who
 * continues without a balance costs one read per call and no write. No hold is refused from memory, so that a credit
 * takes effect immediately.
 */
export function createRefusedAccounts() {
  const accounts = new Set<string>();
  return {
    has: (account: string): boolean => accounts.has(account),
    remember(account: string, isRefused: boolean): void {
      accounts.delete(account);
      if (!isRefused) return;
      accounts.add(account);
      const [oldest] = accounts;
      if (oldest !== undefined && accounts.size > maxAccounts) accounts.delete(oldest);
    },
  };
}
