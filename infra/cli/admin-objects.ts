/** What the admin interface answers, as far as the command line shows it. */
export interface Account {
  readonly id: string;
  readonly name: string;
  readonly tier: string;
  readonly frozen: boolean;
  readonly buyback_token: string | null;
  readonly available_usd: string;
  readonly held_usd: string;
  readonly open_holds: number;
  readonly created_at: number;
}

export interface Key {
  readonly id: string;
  readonly account: string;
  readonly name: string | null;
  readonly prefix: string;
  readonly limits: Readonly<Record<string, number | null>>;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
  /** Only in the answer that made it. */
  readonly key?: string;
}

export interface Entry {
  readonly id: string;
  readonly account: string;
  readonly kind: string;
  readonly amount_usd: string;
  readonly created_at: number;
  readonly idempotency_key?: string;
  readonly reason?: string;
  readonly transaction?: string;
  readonly buyback?: { readonly token: string; readonly amount_usd: string; readonly batch: string | null };
  readonly request?: RequestOfEntry;
}

interface RequestOfEntry {
  readonly key: string;
  readonly endpoint: string;
  readonly model: string;
  readonly upstream: string | null;
  readonly attempts: number;
  readonly status: string;
  readonly error?: string;
  readonly usage: Readonly<Record<string, number>>;
  readonly estimated: boolean;
  readonly queue_ms: number | null;
  readonly first_token_ms: number | null;
  readonly total_ms: number;
  readonly shortfall_usd: string;
}

/** A payment of which something is left. */
export interface Owed {
  readonly id: string;
  readonly account: string;
  readonly payer: string | null;
  readonly transaction: string | null;
  readonly paid_usd: string;
  readonly owed_usd: string;
  readonly paid_at: number;
  readonly good_until: number;
}

export interface OwedTotal {
  readonly owed_usd: string;
  readonly payments: number;
}

export interface Accrual {
  readonly token: string;
  readonly amount_usd: string;
  readonly entries: number;
}

export interface Batch {
  readonly id: string;
  readonly token: string;
  readonly state: string;
  readonly amount_usd: string;
  readonly entries: number;
  readonly created_at: number;
  readonly executor: string | null;
  readonly transaction: string | null;
  readonly spent_usd: string | null;
  readonly received: string | null;
  readonly done_at: number | null;
}

export type Check = Readonly<Record<string, string | number | boolean | null>>;

export interface List<T> {
  readonly data: readonly T[];
  readonly has_more: boolean;
  readonly next: string | null;
}
