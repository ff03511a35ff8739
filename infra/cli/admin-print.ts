import type { z } from "zod";
import type { entry as entryObject } from "../../api/routes/admin/entry.ts";

/** An object in the form in which the admin API returns it (docs/api/admin.md). */
export type Item = Readonly<Record<string, unknown>>;

interface List {
  readonly data: readonly Item[];
  readonly has_more: boolean;
  readonly next: string | null;
}

type Counts = Readonly<Record<string, number | null>>;

type Entry = z.input<typeof entryObject>;

/** The fields of an item to show. A heading is derived from the field name, or follows the colon. */
interface View {
  readonly columns: readonly string[];
  readonly derive?: (item: Item) => Item;
}

const account: View = {
  columns: ["id", "name", "tier", "state", "balance_usd", "available_usd", "held_usd", "open_holds", "created_at"],
  derive: ({ frozen }) => ({ state: frozen ? "frozen" : "active" }),
};

const keyTimes = ["created_at", "expires_at", "last_used_at", "revoked_at"];
const key: View = {
  columns: ["id", "name", "prefix", "limits", "scopes", "budget", "models", ...keyTimes],
  derive: ({ limits, budget, models }) => {
    const { limit_usd, period } = (budget ?? {}) as Readonly<Record<string, string>>;
    return {
      limits: counts(limits as Counts) || "default",
      budget: budget && `${limit_usd}/${period}`,
      models: models ?? "all",
    };
  },
};

const entry: View = {
  columns: ["created_at:TIME (UTC)", "kind", "amount_usd", "buyback_usd", "what", "id"],
  derive: (item) => {
    const { request, reason, transaction, buyback } = item as unknown as Entry;
    return {
      buyback_usd: buyback?.amount_usd ?? null,
      what: request ? `${request.model} ${request.status}` : (reason ?? transaction ?? null),
    };
  },
};

const requestColumns = ["id:REQUEST", "created_at:ENDED (UTC)", "account", "key", "endpoint", "model", "upstream"];
const requestTimes = ["queue_ms:IN THE QUEUE", "first_token_ms:FIRST TOKEN", "total_ms:TOTAL"];
const requestCost = ["usage", "shortfall_usd:NOT CHARGED USD", "amount_usd", "upstream_cost_usd", "buyback"];

/** Formats attempts like `alpha failed (500) 12 ms, beta succeeded 340 ms`. */
const attemptsText = ({ attempts }: NonNullable<Entry["request"]>): string =>
  attempts
    .map(({ upstream, model, outcome, status, code, duration_ms }) => {
      const at = [upstream ?? "unknown", ...(model ? [`for ${model}`] : [])].join(" ");
      const why = [status, code].filter((each) => each !== undefined).join(" ");
      return [at, outcome, ...(why ? [`(${why})`] : []), ...(duration_ms === null ? [] : [`${duration_ms} ms`])].join(
        " ",
      );
    })
    .join(", ");

const request: View = {
  columns: [...requestColumns, "attempts", "status", "error_message", ...requestTimes, ...requestCost],
  derive: (item) => {
    const { request: call, buyback } = item as unknown as Entry;
    return {
      buyback: buyback && `${buyback.amount_usd} to ${buyback.token}, ${buyback.batch ?? "no batch yet"}`,
      ...(call && {
        ...call,
        upstream: call.upstream ?? "none",
        attempts: attemptsText(call) || "none",
        status: call.error ? `${call.status} (${call.error})` : call.status,
        usage: `${counts(call.usage) || "none"}${call.estimated ? " (estimated)" : ""}`,
        shortfall_usd: Number(call.shortfall_usd) === 0 ? undefined : call.shortfall_usd,
      }),
    };
  },
};

const requests: View = {
  ...request,
  columns: [...requestColumns.filter((column) => column !== "key"), "status", "amount_usd"],
};

/** Formats progress like `restoring, 3 of 40 parts of acct_...`. */
function restoredText({ restore, parts }: Item): string | undefined {
  const { state, account, parts: done } = (restore ?? {}) as { state?: string; account?: string; parts?: number };
  return state && `${state}, ${done} of ${parts as number} parts${account ? ` of ${account}` : ""}`;
}

const archive: View = {
  columns: ["id:MONTH", "parts", "entries", "amount_usd", "bytes", "archived_at", "restored"],
  derive: (item) => ({ restored: restoredText(item) }),
};

const event: View = {
  columns: ["created_at:TIME (UTC)", "type", "upstream", "last_failure"],
  derive: ({ data }) => {
    const { id, last_failure } = data as { id: string; last_failure: { message: string } | null };
    return { upstream: id, last_failure: last_failure?.message };
  },
};

const lostResponse = { columns: ["id:REQUEST", "account", "amount_usd", "state", "created_at:LOST (UTC)"] };
const owed = ["id:PAYMENT", "owed_usd", "paid_usd", "paid_at", "good_until", "payer"];
const purchase = ["spent_usd", "received", "executor:BY", "done_at", "transaction"];

const counts = (all: Counts) =>
  Object.entries(all)
    .filter(([, count]) => count !== null)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");

/** Formats a cell: times in UTC, the items of a list, and the counts of an object with their names. */
function format(field: string, value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  if (/_(at|until|since)$/.test(field))
    return new Date(Number(value) * 1000).toISOString().replace("T", " ").slice(0, 19);
  if (Array.isArray(value)) return value.join(" ") || "-";
  if (typeof value === "object") return counts(value as Counts) || "-";
  const text = `${value as string | number | boolean}`;
  return field.endsWith("_ms") ? `${text} ms` : text;
}

const columnsOf = ({ columns }: View) =>
  columns.map((column) => {
    const [field = "", heading = field.replace(/_at$/, " (utc)").replaceAll("_", " ").toUpperCase()] =
      column.split(":");
    return { field, heading };
  });

/** Pads the cells so that each column is as wide as its widest cell. */
export function aligned(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, n) => Math.max(...rows.map((row) => row[n]?.length ?? 0))) ?? [];
  const lines = rows.map((row) => row.map((cell, n) => cell.padEnd(widths[n] ?? 0)).join("  "));
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

const table = (view: View) => (answer: Item) => {
  const { data, has_more, next } = answer as unknown as List;
  // A page of calls can be empty even if more pages follow.
  if (data.length === 0) return has_more ? `None so far. There may be more: --after ${next}\n` : "None.\n";
  const columns = columnsOf(view);
  const rows = data.map((item) => {
    const all: Item = { ...item, ...view.derive?.(item) };
    return columns.map(({ field }) => format(field, all[field]));
  });
  const more = has_more ? `\nThere are more: --after ${next}\n` : "";
  return aligned([columns.map(({ heading }) => heading), ...rows]) + more;
};

/** Shows one line for each field that the item has. */
const card = (view: View) => (item: Item) => {
  const all: Item = { ...item, ...view.derive?.(item) };
  const shown = columnsOf(view).filter(({ field }) => all[field] !== undefined);
  return aligned(shown.map(({ heading, field }) => [heading, format(field, all[field])]));
};

const record: View = {
  columns: ["created_at:TIME (UTC)", "who", "action", "result", "targets", "changes", "id"],
  derive: ({ status, code, changes }) => ({
    result: status === null ? "unknown" : [status, code].filter(Boolean).join(" "),
    changes: changes === null ? null : JSON.stringify(changes),
  }),
};

const worker: View = {
  columns: ["id", "version", "started_at", "pools", "open", "catalog"],
  derive: ({ pools, upstreams, catalog, same_catalog }) => ({
    pools: Object.entries(pools as Readonly<Record<string, { running: number; free: number }>>)
      .map(([pool, { running, free }]) => `${pool} ${running}/${running + free}`)
      .join(", "),
    open: Object.entries(upstreams as Readonly<Record<string, string>>)
      .flatMap(([id, state]) => (state === "open" ? [id] : state === "key refused" ? [`${id} (key refused)`] : []))
      .join(", "),
    catalog: same_catalog ? catalog : `${catalog as string} (not the API's)`,
  }),
};

const upstream: View = {
  columns: [
    "id",
    "provider",
    "state",
    "workers",
    "models",
    "attempts:ATTEMPTS (1 H)",
    "failed",
    "first_token_p95_ms:FIRST TOKEN P95",
    "total_p95_ms:TOTAL P95",
    "addresses",
    "last_failure",
  ],
  derive: ({ models, workers, traffic, addresses, last_failure: failure }) => ({
    ...(traffic as { readonly last_hour: Item } | null)?.last_hour,
    workers: Object.entries(workers as Readonly<Record<string, number>>)
      .flatMap(([state, count]) => (count > 0 ? [`${count} ${state.replace("_", " ")}`] : []))
      .join(", "),
    models: (models as readonly string[]).length,
    addresses: (addresses as readonly string[]).join(", "),
    last_failure: (failure as { readonly message: string } | null)?.message ?? null,
  }),
};

const providerKey: View = {
  columns: ["id", "provider", "label", "name", "mode", "state", "checked_at", "last_used_at", "created_at"],
  derive: ({ disabled, status }) => ({ state: disabled ? "disabled" : status }),
};

const openBatch: View = {
  columns: ["id", "account", "endpoint", "model", "state", "lines", "ended", "cost_usd", "created_at", "progress_at"],
  derive: ({ status, paused, counts: ended }) => ({
    state: paused === null ? status : `${status as string}, paused: ${paused as string}`,
    ended: Object.values(ended as Readonly<Record<string, number>>).reduce((sum, each) => sum + each, 0),
  }),
};

/** Formats each response as text for people. */
export const show = {
  account: card({ ...account, columns: [...account.columns, "buyback_token"] }),
  accounts: table(account),
  key: card(key),
  newKey: (item: Item) =>
    `${card(key)(item)}\n${item["key"] as string}\n\nThis is the only time that the key is shown.\n`,
  keys: table(key),
  signInLink: card({ columns: ["account", "url", "expires_at"] }),
  entry: card({ ...entry, columns: [...entry.columns, "account", "transaction"] }),
  entries: table(entry),
  request: card(request),
  requests: table(requests),
  usage: (answer: Item) => {
    const [first = {}] = (answer as unknown as List).data;
    const groups = ["day", "model", "account"].filter((group) => group in first);
    const sums = ["calls", "failed", "cost_usd", "upstream_cost_usd", "unpriced_usd", "margin_usd"];
    return table({ columns: [...groups, ...sums] })(answer);
  },
  archive: card(archive),
  lostResponse: card(lostResponse),
  lostResponses: table(lostResponse),
  progress: (item: Item) => `${restoredText(item)}\n`,
  archives: table(archive),
  owed: table({ columns: owed }),
  owedTotal: card({ columns: ["owed_usd", "payments"] }),
  accruals: table({ columns: ["token", "amount_usd", "entries"] }),
  batches: table({ columns: ["id", "token", "state", "amount_usd", "entries", ...purchase] }),
  records: table(record),
  workers: table(worker),
  upstreams: table(upstream),
  jobQueues: table({
    columns: [
      "pool",
      "account",
      "waiting",
      "oldest_waiting_at:OLDEST WAITING SINCE (UTC)",
      "running",
      "oldest_running_at:OLDEST RUNNING SINCE (UTC)",
    ],
  }),
  openBatch: card(openBatch),
  openBatches: table(openBatch),
  providerKeys: table(providerKey),
  secrets: card({ columns: ["key", "remaining:UNDER OTHER KEYS"] }),
  events: table(event),
  failingWebhooks: table({
    columns: ["id", "account", "origin", "failing_since", "failures", "last_success_at", "disabled_reason:DISABLED"],
  }),
  holds: table({
    columns: ["id", "object:KIND", "account", "amount_usd", "held_at", "expires_at"],
  }),
  check: (item: Item) => card({ columns: Object.keys(item).map((name) => `${name}:${name}`) })(item),
};
