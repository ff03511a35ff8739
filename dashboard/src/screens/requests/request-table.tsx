import { Link } from "@tanstack/react-router";
import { useKeyNames } from "../../api/keys.ts";
import type { Call, CallWithAttempts } from "../../api/requests.ts";
import { Badge } from "../../components/badge.tsx";
import { type Column, rowLink, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { calledName } from "../../lib/calls.ts";
import { count, duration } from "../../lib/format.ts";
import { statusLabel } from "../../lib/statuses.ts";

const tones: Readonly<Record<string, "good" | "bad" | "warn">> = { succeeded: "good", failed: "bad" };

export const CallStatus = ({
  call: { status, error },
}: {
  readonly call: Pick<CallWithAttempts, "status" | "error">;
}) => <Badge tone={tones[status] ?? "warn"}>{error ?? statusLabel(status)}</Badge>;

/** Its first and last characters tell it apart; the row leads to all of it. */
const shortId = (id: string) => `${id.slice(0, 10)}…${id.slice(-4)}`;

const columnsOf = (keyName: (id: string) => string): readonly Column<Call>[] => [
  {
    header: "Request",
    cell: ({ id, created_at }) => (
      <>
        <Link to="/requests/$id" params={{ id }} className={rowLink}>
          <Time at={created_at} />
        </Link>
        <code title={id} className="block text-xs whitespace-nowrap text-muted">
          {shortId(id)}
        </code>
      </>
    ),
  },
  {
    header: "Model",
    cell: ({ model, endpoint, tags }) => (
      <>
        <span className="wrap-anywhere">{calledName({ model, endpoint })}</span>
        <span className="block text-xs wrap-anywhere text-muted">{endpoint}</span>
        {tags.length > 0 && <span className="block text-xs wrap-anywhere text-muted">{tags.join(", ")}</span>}
      </>
    ),
    wide: true,
  },
  { header: "Key", cell: ({ key }) => <span className="wrap-anywhere">{key === null ? "–" : keyName(key)}</span> },
  {
    header: "Status",
    cell: (call) => (
      <span className="flex flex-wrap gap-1">
        <CallStatus call={call} />
        {call.byok && <Badge tone="accent">Own key</Badge>}
        {call.refunded && <Badge tone="warn">Refunded</Badge>}
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

interface Props {
  readonly calls: readonly Call[];
  readonly caption: string;
}

export function RequestTable({ calls, caption }: Props) {
  const keyName = useKeyNames(true);
  return <Table caption={caption} columns={columnsOf(keyName)} rows={calls} rowKey={({ id }) => id} linked />;
}
