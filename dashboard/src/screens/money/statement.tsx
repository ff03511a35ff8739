import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type Statement as Shown, type StatementLine, statementQuery } from "../../api/statement.ts";
import { Figure } from "../../components/card.tsx";
import { DayRange } from "../../components/day-range.tsx";
import { type CsvColumns, DownloadCsv } from "../../components/download-csv.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ManagersOnly } from "../../components/managers-only.tsx";
import { Money } from "../../components/money.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { SlotTime } from "../../components/stacked-table.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { count, dayLabel, daysBefore } from "../../lib/format.ts";
import { secondsOf, useToday } from "../../lib/time.ts";
import { sumUsd } from "../../lib/usd.ts";

const route = getRouteApi("/statement");
const shownDays = 30;

export const Statement = () => (
  <Page title="Statement" intro="How the balance changed from day to day. Days are UTC.">
    <ManagersOnly otherwise="This key cannot see the statement">
      <Period />
    </ManagersOnly>
  </Page>
);

const validDay = (day: string | undefined) => (secondsOf(day) === undefined ? undefined : day);

function Period() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const today = useToday();
  const to = validDay(search.to) ?? today;
  const from = validDay(search.from) ?? daysBefore(to, shownDays - 1);
  return (
    <>
      <div className="grid grid-cols-2 items-end gap-3 sm:max-w-md">
        <DayRange
          from={from}
          to={to}
          onChange={(name, day) => void navigate({ search: { from, to, [name]: day || undefined } })}
        />
      </div>
      <QueryView query={useQuery(statementQuery(from, to))}>{(statement) => <Lines statement={statement} />}</QueryView>
    </>
  );
}

const names: Readonly<Record<StatementLine["kind"], string>> = {
  credit: "Credit",
  adjustment: "Taken back",
  payout: "Paid back",
  refunds: "Refunds",
  charges: "Charges",
};

const of = (calls: number | null) => (calls === 1 ? "1 call or upload" : `${count(calls ?? 0)} calls and uploads`);

function What({ line: { kind, day, calls, reason, transaction } }: { readonly line: StatementLine }) {
  const isSum = kind === "charges" || kind === "refunds";
  return (
    <>
      {names[kind]}
      {isSum && " of "}
      {kind === "refunds" && of(calls)}
      {kind === "charges" && (
        <Link to="/requests" search={{ from: day, to: day }} className="text-accent hover:underline">
          {of(calls)}
        </Link>
      )}
      {(reason ?? transaction) !== null && (
        <span className="block text-xs wrap-anywhere text-muted">{reason ?? `Transaction ${transaction}`}</span>
      )}
    </>
  );
}

const columns: readonly Column<StatementLine>[] = [
  { header: "Day", cell: ({ day }) => <SlotTime time={day} /> },
  { header: "What", cell: (line) => <What line={line} />, wide: true },
  { header: "Amount", usd: ({ amount_usd }) => amount_usd },
  { header: "Balance", usd: ({ balance_usd }) => balance_usd },
];

/** The columns of the file. */
const csv: CsvColumns<StatementLine> = {
  day: ({ day }) => day,
  kind: ({ kind }) => kind,
  amount_usd: ({ amount_usd }) => ({ usd: amount_usd }),
  balance_usd: ({ balance_usd }) => ({ usd: balance_usd }),
  calls: ({ calls }) => calls,
  id: ({ id }) => id,
  reason: ({ reason }) => reason,
  transaction: ({ transaction }) => transaction,
};

function Lines({ statement: { from, to, opening_usd, closing_usd, lines } }: { readonly statement: Shown }) {
  const sumOf = (...kinds: readonly StatementLine["kind"][]) =>
    sumUsd(lines.filter(({ kind }) => kinds.includes(kind)).map(({ amount_usd }) => amount_usd));
  return (
    <>
      <div className="grid grid-cols-2 gap-4 lg:grid-cols-4">
        <Figure label="Balance before" note={dayLabel(from)}>
          <Money usd={opening_usd} />
        </Figure>
        <Figure label="Credits" note="Less what was taken or paid back">
          <Money usd={sumOf("credit", "adjustment", "payout")} />
        </Figure>
        <Figure
          label="Charges less refunds"
          note={
            <>
              Refunds: <Money usd={sumOf("refunds")} />
            </>
          }
        >
          <Money usd={sumOf("charges", "refunds")} />
        </Figure>
        <Figure label="Balance after" note={dayLabel(to)}>
          <Money usd={closing_usd} />
        </Figure>
      </div>
      {lines.length > 0 ? (
        <div className="flex flex-col gap-3">
          <DownloadCsv name={`statement-${from}-${to}.csv`} columns={csv} rows={lines} />
          <Table
            caption="Changes of the balance"
            columns={columns}
            rows={lines}
            rowKey={({ day, kind, id }) => id ?? `${day} ${kind}`}
          />
        </div>
      ) : (
        <EmptyState title="The balance did not change in these days">
          <p>Choose other days above.</p>
        </EmptyState>
      )}
    </>
  );
}
