import type { Account, Accrual, Batch, Check, Entry, Key, List, Owed, OwedTotal } from "./admin-objects.ts";

type Row = readonly (readonly [heading: string, cell: string])[];

const time = (unixSeconds: number | null) =>
  unixSeconds === null ? "-" : new Date(unixSeconds * 1000).toISOString().replace("T", " ").slice(0, 19);
const ms = (duration: number | null) => (duration === null ? "-" : `${duration} ms`);
const pairs = (counts: Readonly<Record<string, number | null>>) =>
  Object.entries(counts)
    .filter(([, count]) => count !== null)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");

const accountRow = (account: Account): Row => [
  ["ID", account.id],
  ["NAME", account.name],
  ["TIER", account.tier],
  ["STATE", account.frozen ? "frozen" : "active"],
  ["AVAILABLE USD", account.available_usd],
  ["HELD USD", account.held_usd],
  ["OPEN HOLDS", String(account.open_holds)],
  ["CREATED (UTC)", time(account.created_at)],
];

const keyRow = (key: Key): Row => [
  ["ID", key.id],
  ["NAME", key.name ?? "-"],
  ["PREFIX", key.prefix],
  ["LIMITS", pairs(key.limits) || "default"],
  ["CREATED (UTC)", time(key.created_at)],
  ["LAST USED", time(key.last_used_at)],
  ["REVOKED", time(key.revoked_at)],
];

const entryRow = (entry: Entry): Row => [
  ["TIME (UTC)", time(entry.created_at)],
  ["KIND", entry.kind],
  ["AMOUNT USD", entry.amount_usd],
  [
    "WHAT",
    entry.request ? `${entry.request.model} ${entry.request.status}` : (entry.reason ?? entry.transaction ?? "-"),
  ],
  ["ID", entry.id],
];

/** The way of one call, from who asked to what it cost. */
const requestRow = ({ id, account, amount_usd, created_at, request, buyback }: Entry): Row => {
  const rest: Row = request
    ? [
        ["KEY", request.key],
        ["ENDPOINT", request.endpoint],
        ["MODEL", request.model],
        ["UPSTREAM", request.upstream ?? "none"],
        ["ATTEMPTS", String(request.attempts)],
        ["STATUS", request.error ? `${request.status} (${request.error})` : request.status],
        ["IN THE QUEUE", ms(request.queue_ms)],
        ["FIRST TOKEN", ms(request.first_token_ms)],
        ["TOTAL", ms(request.total_ms)],
        ["USAGE", `${pairs(request.usage) || "none"}${request.estimated ? " (estimated)" : ""}`],
        ...(Number(request.shortfall_usd) === 0 ? [] : [["NOT CHARGED USD", request.shortfall_usd] as const]),
      ]
    : [];
  return [
    ["REQUEST", id],
    ["DECIDED (UTC)", time(created_at)],
    ["ACCOUNT", account],
    ...rest,
    ["AMOUNT USD", amount_usd],
    ...(buyback
      ? [["BUYBACK", `${buyback.amount_usd} to ${buyback.token}, ${buyback.batch ?? "no batch yet"}`] as const]
      : []),
  ];
};

const owedRow = (owed: Owed): Row => [
  ["PAYMENT", owed.id],
  ["OWED USD", owed.owed_usd],
  ["PAID USD", owed.paid_usd],
  ["PAID (UTC)", time(owed.paid_at)],
  ["GOOD UNTIL", time(owed.good_until)],
  ["PAYER", owed.payer ?? "-"],
];

const accrualRow = (accrual: Accrual): Row => [
  ["TOKEN", accrual.token],
  ["AMOUNT USD", accrual.amount_usd],
  ["ENTRIES", String(accrual.entries)],
];

const batchRow = (batch: Batch): Row => [
  ["ID", batch.id],
  ["TOKEN", batch.token],
  ["STATE", batch.state],
  ["AMOUNT USD", batch.amount_usd],
  ["ENTRIES", String(batch.entries)],
  ["SPENT USD", batch.spent_usd ?? "-"],
  ["RECEIVED", batch.received ?? "-"],
  ["BY", batch.executor ?? "-"],
  ["DONE (UTC)", time(batch.done_at)],
  ["TRANSACTION", batch.transaction ?? "-"],
];

/** One line for each row, columns as wide as their widest cell. */
function table(rows: readonly Row[]): string {
  const headings = rows[0]?.map(([heading]) => heading);
  if (!headings) return "None.\n";
  const lines = [headings, ...rows.map((row) => row.map(([, cell]) => cell))];
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, at) => cell.padEnd(widths[at] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

/** One line for each field. */
function card(row: Row): string {
  const width = Math.max(...row.map(([heading]) => heading.length));
  return row.map(([heading, cell]) => `${heading.padEnd(width)}  ${cell}\n`).join("");
}

const list =
  <T>(row: (item: T) => Row) =>
  ({ data, has_more, next }: List<T>) =>
    `${table(data.map(row))}${has_more ? `\nThere are more: --after ${next}\n` : ""}`;

/** How a person sees each answer. */
export const show = {
  account: (account: Account) => card([...accountRow(account), ["BUYBACK TOKEN", account.buyback_token ?? "-"]]),
  accounts: list(accountRow),
  key: (key: Key) => card(keyRow(key)),
  newKey: (key: Key) => `${card(keyRow(key))}\n${key.key}\n\nThis is the only time that the key is shown.\n`,
  keys: list(keyRow),
  entry: ({ transaction, ...entry }: Entry) =>
    card([
      ...entryRow(entry),
      ["ACCOUNT", entry.account],
      ...(transaction === undefined ? [] : [["TRANSACTION", transaction] as const]),
    ]),
  entries: list(entryRow),
  request: (entry: Entry) => card(requestRow(entry)),
  owed: list(owedRow),
  owedTotal: ({ owed_usd, payments }: OwedTotal) =>
    card([
      ["OWED USD", owed_usd],
      ["PAYMENTS", String(payments)],
    ]),
  accruals: list(accrualRow),
  batches: list(batchRow),
  check: (check: Check) => card(Object.entries(check).map(([name, value]) => [name, String(value ?? "-")] as const)),
};
