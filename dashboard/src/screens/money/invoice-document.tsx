import type { ReactNode } from "react";
import type { Invoice, InvoiceLine } from "../../api/invoices.ts";
import { Card } from "../../components/card.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { SlotTime } from "../../components/stacked-table.tsx";
import { SwitchButtons } from "../../components/switch-buttons.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { useChoice } from "../../components/use-choice.ts";
import { count, dayOf, fullDay } from "../../lib/format.ts";
import { sumUsd } from "../../lib/usd.ts";

const ways = [
  { value: "model", label: "By model" },
  { value: "day", label: "By day and model" },
] as const;

/** An invoice with number, parties and period, to read or to print. */
export function Document({ invoice }: { readonly invoice: Invoice }) {
  const { status, number, issued_at, issuer, customer, period, lines, total_usd } = invoice;
  const [by, setBy] = useChoice("by", ways, "model");
  const day = columns[0];
  const shown = by === "day" ? columns : columns.filter((column) => column !== day);
  return (
    <article className="flex flex-col gap-6">
      <Card>
        <h2 className="mb-4 text-lg font-semibold">
          {number !== null
            ? `Invoice ${number}`
            : status === "open"
              ? "Invoice, not final yet"
              : "Invoice without a number"}
        </h2>
        <dl className="grid gap-x-8 gap-y-4 sm:grid-cols-2">
          <Party name="From">{issuer ?? "The operator of this service has not named itself on invoices."}</Party>
          <Party name="To">
            {[customer.name, customer.address, customer.tax_id && `Tax number ${customer.tax_id}`]
              .filter(Boolean)
              .join("\n")}
          </Party>
          <Party name="Period">
            {fullDay(period.from)} to {fullDay(period.to)} (UTC)
          </Party>
          <Party name="Issued">
            {issued_at !== null
              ? fullDay(dayOf(new Date(issued_at * 1_000)))
              : status === "open"
                ? "When the month is over and its sums are final; it gets its number then."
                : lines.length === 0
                  ? "Not issued: nothing was charged."
                  : "Not yet: it gets its number once the operator has named itself."}
          </Party>
        </dl>
      </Card>
      {lines.length > 0 ? (
        <>
          <div className="print:hidden">
            <SwitchButtons label="Lines" value={by} options={ways} onChange={setBy} />
          </div>
          <Table
            caption="Charges of the month"
            columns={shown}
            rows={by === "day" ? lines : byModel(lines)}
            rowKey={({ day, model }) => `${day} ${model}`}
            footer={shown.map((column, at) => (at === 0 ? "Total" : column === columns.at(-1) ? total_usd : null))}
          />
          <p className="text-xs text-muted">
            Paid from the prepaid balance. Refunds are taken off on the day on which they were made.
          </p>
        </>
      ) : (
        <EmptyState title="No charges in this month">
          <p>Choose another month above.</p>
        </EmptyState>
      )}
    </article>
  );
}

const Party = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <div className="flex min-w-0 flex-col gap-0.5">
    <dt className="text-xs text-muted">{name}</dt>
    <dd className="wrap-anywhere whitespace-pre-line">{children}</dd>
  </div>
);

/** Sums the days of each model. */
function byModel(lines: readonly InvoiceLine[]): readonly InvoiceLine[] {
  const sum = (
    of: readonly InvoiceLine[],
    name: "calls" | "input_tokens" | "output_tokens" | "cached_tokens" | "units",
  ) => of.reduce((all, line) => all + line[name], 0);
  return [...Map.groupBy(lines, ({ model }) => model)].map(([model, of]) => ({
    day: "",
    model,
    calls: sum(of, "calls"),
    input_tokens: sum(of, "input_tokens"),
    output_tokens: sum(of, "output_tokens"),
    cached_tokens: sum(of, "cached_tokens"),
    units: sum(of, "units"),
    cost_usd: sumUsd(of.map(({ cost_usd }) => cost_usd)),
  }));
}

const columns: readonly Column<InvoiceLine>[] = [
  { header: "Day", cell: ({ day }) => <SlotTime time={day} /> },
  {
    header: "Model",
    cell: ({ model }) => <span className="wrap-anywhere">{model ?? "Uploads"}</span>,
    wide: true,
  },
  { header: "Calls", numeric: true, cell: ({ calls }) => count(calls) },
  { header: "Input tokens", numeric: true, cell: ({ input_tokens }) => count(input_tokens) },
  { header: "Output tokens", numeric: true, cell: ({ output_tokens }) => count(output_tokens) },
  { header: "Images, seconds, characters", numeric: true, cell: ({ units }) => count(units) },
  { header: "Cost", usd: ({ cost_usd }) => cost_usd },
];
