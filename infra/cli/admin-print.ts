/** An object as the admin API answers it: docs/api/admin.md. */
export type Item = Readonly<Record<string, unknown>>;

interface List {
  readonly data: readonly Item[];
  readonly has_more: boolean;
  readonly next: string | null;
}

type Value = string | number | boolean | null | undefined;
type Counts = Readonly<Record<string, number | null>>;

/** The parts of a ledger entry that are not shown as they are. */
interface Entry {
  readonly reason?: string;
  readonly transaction?: string;
  readonly buyback?: { readonly token: string; readonly amount_usd: string; readonly batch: string | null };
  readonly request?: {
    readonly model: string;
    readonly upstream: string | null;
    readonly status: string;
    readonly error?: string;
    readonly usage: Counts;
    readonly estimated: boolean;
    readonly shortfall_usd: string;
  };
}

interface View {
  /** Heading to field. */
  readonly columns: Readonly<Record<string, string>>;
  /** Fields that replace or extend the item's own. */
  readonly derive?: (item: Item) => Item;
}

const account: View = {
  columns: {
    ID: "id",
    NAME: "name",
    TIER: "tier",
    STATE: "state",
    "AVAILABLE USD": "available_usd",
    "HELD USD": "held_usd",
    "OPEN HOLDS": "open_holds",
    "CREATED (UTC)": "created_at",
  },
  derive: ({ frozen }) => ({ state: frozen ? "frozen" : "active" }),
};

const key: View = {
  columns: {
    ID: "id",
    NAME: "name",
    PREFIX: "prefix",
    LIMITS: "limits",
    "CREATED (UTC)": "created_at",
    "LAST USED": "last_used_at",
    REVOKED: "revoked_at",
  },
  derive: ({ limits }) => ({ limits: counts(limits as Counts) || "default" }),
};

const entry: View = {
  columns: { "TIME (UTC)": "created_at", KIND: "kind", "AMOUNT USD": "amount_usd", WHAT: "what", ID: "id" },
  derive: (item) => {
    const { request, reason, transaction }: Entry = item;
    return { what: request ? `${request.model} ${request.status}` : (reason ?? transaction ?? null) };
  },
};

const request: View = {
  columns: {
    REQUEST: "id",
    "DECIDED (UTC)": "created_at",
    ACCOUNT: "account",
    KEY: "key",
    ENDPOINT: "endpoint",
    MODEL: "model",
    UPSTREAM: "upstream",
    ATTEMPTS: "attempts",
    STATUS: "status",
    "IN THE QUEUE": "queue_ms",
    "FIRST TOKEN": "first_token_ms",
    TOTAL: "total_ms",
    USAGE: "usage",
    "NOT CHARGED USD": "shortfall_usd",
    "AMOUNT USD": "amount_usd",
    BUYBACK: "buyback",
  },
  derive: (item) => {
    const { request: call, buyback }: Entry = item;
    return {
      buyback: buyback && `${buyback.amount_usd} to ${buyback.token}, ${buyback.batch ?? "no batch yet"}`,
      ...(call && {
        ...call,
        upstream: call.upstream ?? "none",
        status: call.error ? `${call.status} (${call.error})` : call.status,
        usage: `${counts(call.usage) || "none"}${call.estimated ? " (estimated)" : ""}`,
        shortfall_usd: Number(call.shortfall_usd) === 0 ? undefined : call.shortfall_usd,
      }),
    };
  },
};

const owed: View = {
  columns: {
    PAYMENT: "id",
    "OWED USD": "owed_usd",
    "PAID USD": "paid_usd",
    "PAID (UTC)": "paid_at",
    "GOOD UNTIL": "good_until",
    PAYER: "payer",
  },
};

const accrual: View = { columns: { TOKEN: "token", "AMOUNT USD": "amount_usd", ENTRIES: "entries" } };

const batch: View = {
  columns: {
    ID: "id",
    TOKEN: "token",
    STATE: "state",
    "AMOUNT USD": "amount_usd",
    ENTRIES: "entries",
    "SPENT USD": "spent_usd",
    RECEIVED: "received",
    BY: "executor",
    "DONE (UTC)": "done_at",
    TRANSACTION: "transaction",
  },
};

const counts = (all: Counts) =>
  Object.entries(all)
    .filter(([, count]) => count !== null)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");

function format(field: string, value: Value): string {
  if (value === null || value === undefined) return "-";
  if (field.endsWith("_at") || field.endsWith("_until"))
    return new Date(Number(value) * 1000).toISOString().replace("T", " ").slice(0, 19);
  return field.endsWith("_ms") ? `${value} ms` : String(value);
}

/** One line for each item; columns are as wide as their widest cell. */
const table =
  ({ columns, derive }: View) =>
  (answer: Item): string => {
    const { data, has_more, next } = answer as unknown as List;
    if (data.length === 0) return "None.\n";
    const rows = data.map((item) => {
      const all = { ...item, ...derive?.(item) };
      return Object.values(columns).map((field) => format(field, all[field] as Value));
    });
    const lines = [Object.keys(columns), ...rows];
    const widths = Object.keys(columns).map((_, n) => Math.max(...lines.map((line) => line[n]?.length ?? 0)));
    const text = lines.map((line) =>
      line
        .map((cell, n) => cell.padEnd(widths[n] ?? 0))
        .join("  ")
        .trimEnd(),
    );
    return `${text.join("\n")}\n${has_more ? `\nThere are more: --after ${next}\n` : ""}`;
  };

/** One line for each field that the item has. */
const card =
  ({ columns, derive }: View) =>
  (item: Item): string => {
    const all: Item = { ...item, ...derive?.(item) };
    const shown = Object.entries(columns).filter(([, field]) => all[field] !== undefined);
    const width = Math.max(...shown.map(([heading]) => heading.length));
    return shown
      .map(([heading, field]) => `${heading.padEnd(width)}  ${format(field, all[field] as Value)}\n`)
      .join("");
  };

const withColumns = ({ columns, derive }: View, more: View["columns"]): View => ({
  columns: { ...columns, ...more },
  ...(derive && { derive }),
});

/** Each answer as text for people. */
export const show = {
  account: card(withColumns(account, { "BUYBACK TOKEN": "buyback_token" })),
  accounts: table(account),
  key: card(key),
  newKey: (item: Item) =>
    `${card(key)(item)}\n${item["key"] as string}\n\nThis is the only time that the key is shown.\n`,
  keys: table(key),
  entry: card(withColumns(entry, { ACCOUNT: "account", TRANSACTION: "transaction" })),
  entries: table(entry),
  request: card(request),
  owed: table(owed),
  owedTotal: card({ columns: { "OWED USD": "owed_usd", PAYMENTS: "payments" } }),
  accruals: table(accrual),
  batches: table(batch),
  check: (item: Item) => card({ columns: Object.fromEntries(Object.keys(item).map((name) => [name, name])) })(item),
};
