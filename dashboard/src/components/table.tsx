import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";

export interface Column<Row> {
  /** Empty over buttons. */
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers are aligned at their end. */
  readonly numeric?: boolean;
}

interface Props<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  /** Cells of a last row with sums, one a column. */
  readonly footer?: readonly ReactNode[];
}

/** On a narrow screen each row is a card with its headers inside: see `.cards` in theme.css. */
export function Table<Row>({ caption, columns, rows, rowKey, footer }: Props<Row>) {
  return (
    <div className="overflow-x-auto rounded-xl sm:border sm:border-line sm:bg-surface">
      <table className="cards w-full border-collapse text-sm">
        <caption className="sr-only">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ header, numeric }) => (
              <th key={header} scope="col" className={numeric ? "num" : "text-start"}>
                {header || <span className="sr-only">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map(({ header, cell, numeric }) => (
                <td key={header} data-header={header} className={classNames(numeric && "num")}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        {footer && (
          <tfoot>
            <tr>
              {columns.map(({ header, numeric }, index) => (
                <td key={header} data-header={header} className={classNames("font-semibold", numeric && "num")}>
                  {footer[index]}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </div>
  );
}
