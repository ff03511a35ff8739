import type { ReactNode } from "react";
import { longestRest } from "../lib/usd.ts";
import { classNames } from "./class-names.ts";
import { Money } from "./money.tsx";

interface Headed {
  /** Empty above buttons. */
  readonly header: string;
}

interface CellColumn<Row> extends Headed {
  readonly cell: (row: Row) => ReactNode;
  /** Aligns numbers at their end. */
  readonly numeric?: boolean;
  /** Spans the whole width of a card. */
  readonly wide?: boolean;
}

/** A column of amounts, aligned at the decimal point. */
interface UsdColumn<Row> extends Headed {
  readonly usd: (row: Row) => string;
}

export type Column<Row> = CellColumn<Row> | UsdColumn<Row>;

interface Props<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  /** The link in a row's first cell covers the row: see `rowLink`. */
  readonly linked?: boolean;
  /** Cells of a last row with sums, one per column: an amount where the column has amounts. */
  readonly footer?: readonly (string | null)[];
}

/** The class of a link that covers its row, in a table of linked rows. */
export const rowLink = "font-medium text-accent hover:underline after:absolute after:inset-0 after:content-['']";

/** Headers can also be names of models and keys. */
const longHeader = 24;
const longNumericHeader = 12;

/** Renders a column; `total` is its footer cell. */
function drawn<Row>(column: Column<Row>, rows: readonly Row[], total: string | null | undefined) {
  if ("cell" in column) return { numeric: false, wide: false, total, ...column };
  const { header, usd } = column;
  const restDigits = longestRest([...rows.map(usd), total ?? "0"]);
  const money = (amount: string) => <Money usd={amount} restDigits={restDigits} />;
  return { header, numeric: true, wide: false, cell: (row: Row) => money(usd(row)), total: total && money(total) };
}

/** On a narrow screen each row is a card with its headers inside: see `.cards` in theme.css. */
export function Table<Row>({ caption, columns, rows, rowKey, linked = false, footer }: Props<Row>) {
  const all = columns.map((column, index) => drawn(column, rows, footer?.[index]));
  return (
    // Positioned, because text for screen readers would otherwise lie outside and widen the page.
    <div className="relative overflow-x-auto rounded-xl sm:border sm:border-line sm:bg-surface">
      <table className="cards w-full border-collapse text-sm">
        <caption className="sr-only">{caption}</caption>
        <thead>
          <tr>
            {all.map(({ header, numeric }) => (
              <th
                key={header}
                scope="col"
                className={classNames(
                  numeric ? "num" : "text-start",
                  // Numbers are short, so the header decides how wide the column is.
                  numeric && header.length > longNumericHeader && "whitespace-normal",
                  header.length > longHeader && "min-w-40 wrap-anywhere whitespace-normal",
                )}
              >
                {header || <span className="sr-only">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)} className={linked ? "relative" : undefined}>
              {all.map(({ header, cell, numeric, wide }) => (
                <td
                  key={header}
                  data-header={header}
                  data-wide={wide || undefined}
                  className={classNames(numeric && "num")}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        {footer && (
          <tfoot>
            <tr>
              {all.map(({ header, total, numeric }) => (
                <td key={header} data-header={header} className={classNames("font-semibold", numeric && "num")}>
                  {total}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </div>
  );
}
