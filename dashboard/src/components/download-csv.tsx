import { type Amount, csvOf } from "../lib/csv.ts";
import { download } from "../lib/download.ts";
import { Button } from "./button.tsx";

export type CsvColumns<Row> = Readonly<Record<string, (row: Row) => string | number | null | Amount>>;

interface Props<Row> {
  readonly name: string;
  readonly columns: CsvColumns<Row>;
  readonly rows: readonly Row[];
}

/** Saves the rows that are shown. */
export function DownloadCsv<Row>({ name, columns, rows }: Props<Row>) {
  const save = () => {
    const lines = rows.map((row) => Object.values(columns).map((value) => value(row)));
    download(name, new Blob([csvOf([Object.keys(columns), ...lines])], { type: "text/csv" }));
  };
  return (
    <Button className="self-end" onClick={save}>
      Download CSV
    </Button>
  );
}
