import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Button } from "../components/button.tsx";
import { ErrorNote } from "../components/error-note.tsx";
import { QueryView } from "../components/query-view.tsx";
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
}

/** A list of any length: a page, and a button for the next one. */
export function PagedTable<Row>({ caption, queryKey, read, columns, rowKey, empty }: Props<Row>) {
  const pages = useInfiniteQuery({
    queryKey: ["admin", ...queryKey],
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  return (
    <QueryView query={pages}>
      {(data) => {
        const rows = data.pages.flatMap((page) => page.data);
        if (rows.length === 0 && !pages.hasNextPage) return empty;
        return (
          <div className="flex flex-col items-start gap-4">
            {rows.length === 0 ? (
              <p className="text-muted">Nothing fits among the newest. Older ones are not looked through yet.</p>
            ) : (
              <div className="w-full">
                <Table caption={caption} columns={columns} rows={rows} rowKey={rowKey} />
              </div>
            )}
            {pages.isFetchNextPageError && <ErrorNote error={pages.error} />}
            {pages.hasNextPage && (
              <Button busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
                {rows.length === 0 ? "Look further" : "Show more"}
              </Button>
            )}
          </div>
        );
      }}
    </QueryView>
  );
}
