import type { UsageRow } from "../../api/usage.ts";
import { Button } from "../../components/button.tsx";
import { Table } from "../../components/table.tsx";
import { csvOf } from "../../lib/csv.ts";
import { download } from "../../lib/download.ts";
import { toNano } from "../../lib/usd.ts";
import { before, changeOf, quantities } from "./columns.tsx";

interface Props {
  readonly title: string;
  /** Header of the first column. */
  readonly group: string;
  readonly nameOf: (row: UsageRow) => string;
  readonly rows: readonly UsageRow[];
  readonly total: UsageRow;
  /** In the order of the service rather than by cost. */
  readonly isByTime: boolean;
  readonly note: string;
  readonly fileName: string;
}

const byCost = (one: UsageRow, other: UsageRow) => Number(toNano(other.cost_usd) - toNano(one.cost_usd));

/** One row for each group, each number with that of the period before. */
export function GroupTable({ title, group, nameOf, rows, total, isByTime, note, fileName }: Props) {
  const sorted = isByTime ? rows.toReversed() : rows.toSorted(byCost);
  const named = [...sorted.map((row) => [nameOf(row), row] as const), ["Total", total] as const];
  const save = () => {
    const header = [group, ...quantities.flatMap(({ name }) => [name, `previous_${name}`])];
    const lines = named.map(([name, row]) => [
      name,
      ...quantities.flatMap(({ exact }) => [exact(row), exact(before(row))]),
    ]);
    download(fileName, new Blob([csvOf([header, ...lines])], { type: "text/csv" }));
  };
  return (
    <section className="flex flex-col gap-4">
      <div className="flex flex-wrap items-end justify-between gap-3">
        <div className="min-w-0">
          <h2 className="text-base font-semibold">{title}</h2>
          <p className="text-xs text-muted">{note}</p>
        </div>
        <Button onClick={save}>Download CSV</Button>
      </div>
      <Table
        caption={title}
        rows={named}
        rowKey={([name]) => name}
        columns={[
          {
            header: group,
            cell: ([name]) => <span className="block font-medium wrap-anywhere sm:min-w-36">{name}</span>,
            wide: true,
          },
          ...quantities.map((quantity) => ({
            header: quantity.label,
            numeric: true,
            cell: ([, row]: (typeof named)[number]) => (
              <>
                <span className="block">{quantity.shown(row)}</span>
                <span className="block text-xs whitespace-nowrap text-muted">{quantity.text(before(row))}</span>
                <span className="block text-xs text-muted">{changeOf(quantity, row)}</span>
              </>
            ),
          })),
        ]}
      />
    </section>
  );
}
