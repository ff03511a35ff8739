import { isOver, type Key, nameOf } from "../../api/keys.ts";
import { useAccountSession } from "../../api/session.ts";
import { Badge } from "../../components/badge.tsx";
import { BudgetBar } from "../../components/budget.tsx";
import { Button } from "../../components/button.tsx";
import { KeyStatus } from "../../components/key-status.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { useNow } from "../../lib/time.ts";

interface Props {
  readonly keys: readonly Key[];
  readonly onEdit: (key: Key) => void;
  readonly onRevoke: (key: Key) => void;
}

export function KeyTable({ keys, onEdit, onRevoke }: Props) {
  const now = useNow();
  const own = useAccountSession().key.id;
  const columns: readonly Column<Key>[] = [
    {
      header: "Key",
      cell: (key) => (
        <div className="flex min-w-0 flex-col">
          <span className="font-medium wrap-anywhere">{key.name ?? "Unnamed"}</span>
          <code className="text-xs text-muted">{key.prefix}</code>
        </div>
      ),
    },
    {
      header: "Status",
      cell: (key) => (
        <span className="flex flex-wrap gap-1">
          <KeyStatus of={key} />
          {key.id === own && <Badge tone="accent">This session</Badge>}
        </span>
      ),
    },
    {
      header: "Scopes",
      cell: (key) => (
        <span className="flex flex-wrap gap-1">
          {key.scopes.map((scope) => (
            <Badge key={scope} tone={scope === "manage" ? "accent" : "plain"}>
              {scope}
            </Badge>
          ))}
          {key.models && <Badge>{key.models.length === 1 ? key.models[0] : `${key.models.length} models`}</Badge>}
        </span>
      ),
    },
    { header: "Budget", cell: (key) => <BudgetBar budget={key.budget} name={nameOf(key)} />, wide: true },
    { header: "Last used", cell: (key) => <Time at={key.last_used_at} /> },
    {
      header: "Expires",
      cell: (key) => <Time at={key.expires_at} />,
    },
    {
      header: "",
      cell: (key) =>
        isOver(key, now) ? null : (
          <span className="flex gap-2 sm:justify-end">
            <Button small onClick={() => onEdit(key)} aria-label={`Edit ${nameOf(key)}`}>
              Edit
            </Button>
            <Button small look="danger" onClick={() => onRevoke(key)} aria-label={`Revoke ${nameOf(key)}`}>
              Revoke
            </Button>
          </span>
        ),
    },
  ];
  // List usable keys first.
  const rows = keys.toSorted((one, other) => Number(isOver(one, now)) - Number(isOver(other, now)));
  return <Table caption="Keys of the account" columns={columns} rows={rows} rowKey={({ id }) => id} />;
}
