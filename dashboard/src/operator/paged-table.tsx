import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Paged } from "../components/paged.tsx";
import { type Column, Table } from "../components/table.tsx";

export interface Page<Row> {
  readonly data: readonly Row[];
  readonly has_more: boolean;
  readonly next: string | null;
}

interface Props<Row> {
  readonly caption: string;
  readonly queryKey: readonly unknown[];
  readonly read: (after: string | undefined, signal: AbortSignal) => Promise<Page<Row>>;
  readonly columns: readonly Column<Row>[];
  readonly rowKey: (row: Row) => string;
  readonly empty: ReactNode;
  /** Shown above the table, such as a button that saves it. */
  readonly controls?: (rows: readonly Row[]) => ReactNode;
  /** Reads the list again in this time, as long as one page of it is loaded. */
  readonly refreshMs?: number;
}

/** A table of one list of the admin interface. */
export function PagedTable<Row>({ caption, queryKey, read, columns, rowKey, empty, controls, refreshMs }: Props<Row>) {
  const query = useInfiniteQuery({
    queryKey: ["admin", ...queryKey],
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: ({ state }) =>
      (refreshMs !== undefined && (state.data?.pages.length ?? 0) <= 1 && refreshMs) || false,
  });
  return (
    <Paged query={query} empty={empty}>
      {(rows) => (
        <>
          {controls?.(rows)}
          <Table caption={caption} columns={columns} rows={rows} rowKey={rowKey} />
        </>
      )}
    </Paged>
  );
}
