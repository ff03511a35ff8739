import { Link } from "@tanstack/react-router";
import type { Topup } from "../../api/topups.ts";
import { Badge } from "../../components/badge.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { statusLabel } from "../../lib/statuses.ts";

const tones = { completed: "good", pending: "accent", expired: "plain" } as const;

export const TopupStatus = ({ status }: { readonly status: Topup["status"] }) => (
  <Badge tone={tones[status]}>{statusLabel(status)}</Badge>
);

const columns: readonly Column<Topup>[] = [
  {
    header: "Top-up",
    cell: ({ id }) => (
      <Link to="/top-up" search={{ id }} className="font-mono text-xs text-accent hover:underline">
        {id}
      </Link>
    ),
  },
  { header: "Status", cell: ({ status }) => <TopupStatus status={status} /> },
  { header: "Created", cell: ({ created_at }) => <Time at={created_at} /> },
  { header: "Amount", usd: ({ amount_usd }) => amount_usd },
  { header: "Received", usd: ({ received_usd }) => received_usd },
];

export const TopupTable = ({ topups }: { readonly topups: readonly Topup[] }) => (
  <Table caption="Top-ups" columns={columns} rows={topups} rowKey={({ id }) => id} />
);
