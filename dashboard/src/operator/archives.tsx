import { useMutation, useQuery } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { queryClient } from "../api/query-client.ts";
import { Button } from "../components/button.tsx";
import { ErrorNote } from "../components/error-note.tsx";
import { ProgressBar } from "../components/progress-bar.tsx";
import { QueryView } from "../components/query-view.tsx";
import { Section } from "../components/section.tsx";
import { Table } from "../components/table.tsx";
import { bytes, count } from "../lib/format.ts";
import { type Archive, admin } from "./api.ts";
import { Nothing } from "./overview-parts.tsx";

const queryKey = ["admin", "archives"];
const limit = 200;
const pollMs = 1_000;

const isUnderWay = ({ restore }: Archive) => restore !== null && restore.state !== "restored";

/** Months of the ledger in object storage. A worker restores some of them for an investigation. */
export function Archives() {
  const archives = useQuery({
    queryKey,
    queryFn: ({ signal }) => unwrap(admin.GET("/archives", { params: { query: { limit } }, signal })),
    refetchInterval: ({ state: { data } }) => (data?.data.some(isUnderWay) ? pollMs : false),
  });
  const change = useMutation({
    mutationFn: ({ id, restore }: { id: string; restore: boolean }) => {
      const params = { path: { id } };
      return unwrap(
        restore
          ? admin.POST("/archives/{id}/restore", { params, body: {} })
          : admin.DELETE("/archives/{id}/restore", { params }),
      );
    },
    onSuccess: () => queryClient.invalidateQueries({ queryKey }),
  });
  return (
    <Section title="Archives">
      {change.error && <ErrorNote error={change.error} />}
      <QueryView query={archives}>
        {({ data }) =>
          data.length === 0 ? (
            <Nothing title="No month is archived">
              With <code className="font-mono text-xs">LEDGER_RETENTION_DAYS</code>, months that ended longer ago are
              moved to object storage.
            </Nothing>
          ) : (
            <Table
              caption="Archives"
              rows={data}
              rowKey={({ id }) => id}
              columns={[
                { header: "Month", cell: ({ id }) => <span className="font-medium tabular-nums">{id}</span> },
                { header: "Entries", cell: ({ entries }) => count(entries), numeric: true },
                { header: "Size", cell: (archive) => bytes(archive.bytes), numeric: true },
                { header: "Amount", usd: ({ amount_usd: usd }) => usd },
                {
                  header: "Restored",
                  cell: (archive) => (
                    <RestoreState
                      archive={archive}
                      busy={change.isPending}
                      onChange={(restore) => change.mutate({ id: archive.id, restore })}
                    />
                  ),
                },
              ]}
            />
          )
        }
      </QueryView>
    </Section>
  );
}

interface RestoreProps {
  readonly archive: Archive;
  readonly busy: boolean;
  readonly onChange: (restore: boolean) => void;
}

function RestoreState({ archive: { id, parts, restore }, busy, onChange }: RestoreProps) {
  if (restore === null)
    return (
      <Button small busy={busy} onClick={() => onChange(true)} aria-label={`Restore ${id}`}>
        Restore
      </Button>
    );
  if (restore.state === "restored")
    return (
      <Button
        small
        look="danger"
        busy={busy}
        onClick={() => onChange(false)}
        aria-label={`Remove what was restored of ${id}`}
      >
        Remove
      </Button>
    );
  return (
    <span className="flex min-w-40 flex-col gap-1">
      <ProgressBar label={`${restore.state} ${id}`} value={parts === 0 ? undefined : restore.parts / parts} />
      <span className="text-xs text-muted">
        {restore.state}: {count(restore.parts)} of {count(parts)} parts
      </span>
    </span>
  );
}
