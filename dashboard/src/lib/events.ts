import type { LinkProps } from "@tanstack/react-router";
import type { components } from "../api/schema.d.ts";
import { count } from "./format.ts";
import { statusLabel } from "./statuses.ts";
import { usdText } from "./usd.ts";

type ServiceEvent = components["schemas"]["Event"];
type Endpoint = components["schemas"]["WebhookEndpoint"];

/** An event in words, with the page that says more. */
interface Told {
  readonly title: string;
  readonly detail?: string | undefined;
  readonly link: Pick<LinkProps, "to" | "params" | "search">;
}
export interface Item extends Told {
  readonly id: string;
  /** Unix seconds. */
  readonly at: number;
}

type Data = Readonly<Record<string, unknown>>;

const text = (value: unknown): string => (typeof value === "string" || typeof value === "number" ? String(value) : "");
const usd = (value: unknown): string => usdText(text(value));
const of = (value: unknown): Data => (typeof value === "object" && value !== null ? (value as Data) : {});

const periods: Readonly<Record<string, string>> = { day: " a day", week: " a week", month: " a month", total: "" };

/** Only a batch of `/v1/batches` has these counts. */
function lines({ request_counts: counts }: Data): string | undefined {
  const { total, completed } = of(counts);
  return typeof total === "number" && typeof completed === "number" && total > 0
    ? `${count(completed)} of ${count(total)} lines succeeded`
    : undefined;
}

const keyName = ({ name, prefix }: Data) => `Key ${text(name) || text(prefix)}`;
const lastFailure = ({ last_failure: failure }: Data) => text(of(failure)["message"]) || undefined;

const batch = (what: string) => (data: Data) => ({
  title: `Batch ${what}`,
  detail: lines(data) ?? text(data["id"]),
  link: { to: "/batches/$id", params: { id: text(data["id"]) } } as const,
});
const upstream = (what: string) => (data: Data) => ({
  title: `${text(data["id"])} ${what}`,
  detail: lastFailure(data),
  link: { to: "/operator/catalog", search: { part: "upstreams" } } as const,
});

const told: Readonly<Record<string, (data: Data) => Told>> = {
  "balance.low": (data) => ({
    title: `Balance low: ${usd(data["available_usd"])} is available`,
    detail: `The alert is set to ${usd(data["alert_below_usd"])}.`,
    link: { to: "/" },
  }),
  "budget.threshold": (data) => {
    const { limit_usd: limit, spent_usd: spent, period } = of(data["budget"]);
    return {
      title: `${keyName(data)} has used ${text(data["threshold_percent"])} % of its budget`,
      detail: `${usd(spent)} of ${usd(limit)}${periods[text(period)] ?? ""}`,
      link: { to: "/keys" },
    };
  },
  "topup.completed": (data) => ({
    title: `${usd(data["received_usd"])} was added to the balance`,
    link: { to: "/top-up" },
  }),
  "key.expiring": (data) => ({
    title: `${keyName(data)} expires in ${data["days"] === 1 ? "a day" : `${text(data["days"])} days`}`,
    link: { to: "/keys" },
  }),
  "provider_key.invalid": (data) => ({
    title: `${text(data["provider"])} refuses your key ${text(data["name"]) || text(data["label"])}`,
    detail: text(data["status_message"]) || undefined,
    link: { to: "/provider-keys" },
  }),
  "batch.completed": batch("completed"),
  "batch.failed": batch("failed: its file was refused"),
  "batch.expired": batch("expired before all of its lines had run"),
  "batch.cancelled": batch("cancelled"),
  "batch.paused": (data) => ({
    ...batch("paused")(data),
    detail: statusLabel(text(data["x_paused"])),
  }),
  "message_batch.ended": batch("of messages ended"),
  "upstream.down": upstream("does not respond: no attempt has succeeded for five minutes"),
  "upstream.key_refused": upstream("refuses its key"),
  "upstream.recovered": (data) => ({ ...upstream("responds again")(data), detail: undefined }),
};

export const itemOf = ({ id, created_at: at, type, data }: ServiceEvent): Item => ({
  id,
  at,
  ...(told[type]?.(data) ?? { title: type, detail: data.id, link: { to: "/" } }),
});

/** Tells the owner of a webhook endpoint that it fails or was disabled. */
export function noticesOf({ id, url, name, notice, disabled_at, failing_since }: Endpoint): Item[] {
  const at = notice === "disabled" ? disabled_at : failing_since;
  if (notice === null || at === null) return [];
  const what = notice === "disabled" ? "was disabled" : "has been failing for a day";
  return [
    {
      id: `${id} ${notice} ${at}`,
      at,
      title: `Webhook endpoint ${what}`,
      detail: name ?? url,
      link: { to: "/webhooks" },
    },
  ];
}

export const newestFirst = (items: readonly Item[]): Item[] => items.toSorted((one, other) => other.at - one.at);
