import { Link } from "@tanstack/react-router";
import type { Call, CallWithAttempts } from "../../api/requests.ts";
import { Badge } from "../../components/badge.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { count, duration } from "../../lib/format.ts";

const tones: Readonly<Record<string, "good" | "bad" | "warn">> = { succeeded: "good", failed: "bad" };

export const CallStatus = ({
  call: { status, error },
}: {
  readonly call: Pick<CallWithAttempts, "status" | "error">;
}) => <Badge tone={tones[status] ?? "warn"}>{error ?? status}</Badge>;

const columns: readonly Column<Call>[] = [
  {
    header: "When",
    cell: ({ id, created_at }) => (
      <Link to="/requests/$id" params={{ id }} className="font-medium text-accent hover:underline">
        <Time at={created_at} />
      </Link>
    ),
  },
  {
    header: "Model",
    cell: ({ model, endpoint, tags }) => (
      <>
        <span className="wrap-anywhere">{model ?? endpoint ?? "unknown"}</span>
        {tags.length > 0 && <span className="block text-xs wrap-anywhere text-muted">{tags.join(", ")}</span>}
      </>
    ),
    wide: true,
  },
  {
    header: "Status",
    cell: (call) => (
      <span className="flex flex-wrap gap-1">
        <CallStatus call={call} />
        {call.byok && <Badge tone="accent">own key</Badge>}
        {call.refunded && <Badge tone="warn">refunded</Badge>}
      </span>
    ),
  },
  {
    header: "Tokens",
    numeric: true,
    cell: ({ input_tokens, output_tokens }) => (
      <span className="sm:whitespace-nowrap">
        {input_tokens + output_tokens > 0 ? `${count(input_tokens)} → ${count(output_tokens)}` : "–"}
      </span>
    ),
  },
  {
    header: "Time",
    numeric: true,
    cell: ({ total_ms }) => <span className="whitespace-nowrap">{total_ms === null ? "–" : duration(total_ms)}</span>,
  },
  { header: "Cost", usd: ({ cost_usd }) => cost_usd },
];

export const RequestTable = ({ calls, caption }: { readonly calls: readonly Call[]; readonly caption: string }) => (
  <Table caption={caption} columns={columns} rows={calls} rowKey={({ id }) => id} />
);
