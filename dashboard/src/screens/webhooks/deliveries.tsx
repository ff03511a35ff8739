import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import {
  type Delivery,
  deliveriesQuery,
  deliveryStatuses,
  type Endpoint,
  eventTypes,
  type Filters as Values,
} from "../../api/webhooks.ts";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Paged } from "../../components/paged.tsx";
import { Section } from "../../components/section.tsx";
import { Select } from "../../components/select.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { statusLabel, statusOptions } from "../../lib/statuses.ts";

const route = getRouteApi("/webhooks");

const tones: Readonly<Record<Delivery["status"], Tone>> = {
  pending: "plain",
  delivering: "accent",
  delivered: "good",
  retrying: "warn",
  failed: "bad",
  skipped: "plain",
};

export const DeliveryStatus = ({ status }: { readonly status: Delivery["status"] }) => (
  <Badge tone={tones[status]}>{statusLabel(status)}</Badge>
);

const columns: readonly Column<Delivery>[] = [
  {
    header: "When",
    cell: ({ id, created_at }) => (
      <Link to="/webhooks/$id" params={{ id }} className="font-medium text-accent hover:underline">
        <Time at={created_at} />
      </Link>
    ),
  },
  {
    header: "Event",
    cell: ({ type, object_id }) => (
      <span className="flex min-w-0 flex-col">
        <span>{type}</span>
        <code className="text-xs text-muted max-sm:wrap-anywhere">{object_id}</code>
      </span>
    ),
  },
  { header: "To", cell: ({ url }) => <span className="wrap-anywhere">{url}</span>, wide: true },
  { header: "Status", cell: ({ status }) => <DeliveryStatus status={status} /> },
  { header: "Attempts", numeric: true, cell: ({ attempts }) => attempts.length },
  { header: "Next attempt", numeric: true, cell: ({ next_attempt_at: at }) => <Time at={at} absent="–" /> },
];

/** The filters are in the address. */
export function Deliveries({ endpoints }: { readonly endpoints: readonly Endpoint[] }) {
  const values = route.useSearch();
  const navigate = route.useNavigate();
  const isFiltered = Object.values(values).some(Boolean);
  const set = (name: keyof Values) => (value: string) =>
    void navigate({ search: { ...values, [name]: value || undefined } });
  return (
    <Section title="Deliveries of the last 30 days">
      <search className="grid grid-cols-2 items-end gap-3 lg:grid-cols-[16rem_14rem_10rem_auto]">
        <Select
          label="Endpoint"
          value={values.endpoint ?? ""}
          options={[
            { value: "", label: "All" },
            ...endpoints.map(({ id, name, url }) => ({ value: id, label: name ?? new URL(url).host })),
          ]}
          onChange={set("endpoint")}
        />
        <Select
          label="Event"
          value={values.type ?? ""}
          options={[{ value: "", label: "All" }, ...eventTypes.map((value) => ({ value, label: value }))]}
          onChange={set("type")}
        />
        <Select
          label="Status"
          value={values.status ?? ""}
          options={statusOptions(deliveryStatuses)}
          onChange={set("status")}
        />
        <Button
          look="quiet"
          className="justify-self-start"
          disabled={!isFiltered}
          onClick={() => void navigate({ search: {} })}
        >
          Clear
        </Button>
      </search>
      <Paged
        query={useInfiniteQuery(deliveriesQuery(values))}
        empty={
          <EmptyState title={isFiltered ? "No delivery matches" : "No deliveries yet"}>
            <p>
              {isFiltered ? "Take a filter off." : "An event that an endpoint subscribes to is listed here at once."}
            </p>
          </EmptyState>
        }
      >
        {(rows) => <Table caption="Deliveries, newest first" columns={columns} rows={rows} rowKey={({ id }) => id} />}
      </Paged>
    </Section>
  );
}
