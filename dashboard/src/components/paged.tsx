import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { ErrorNote } from "./error-note.tsx";
import { QueryView } from "./query-view.tsx";

interface Props<Row> {
  readonly query: UseInfiniteQueryResult<InfiniteData<{ readonly data: readonly Row[] }>>;
  readonly skeleton?: ReactNode;
  /** Shown in place of an empty list. */
  readonly empty: ReactNode;
  readonly children: (rows: readonly Row[]) => ReactNode;
}

/** A list of any length: the pages loaded so far, and a button for the next one. */
export function Paged<Row>({ query, skeleton, empty, children }: Props<Row>) {
  return (
    <QueryView query={query} skeleton={skeleton}>
      {({ pages }) => {
        const rows = pages.flatMap(({ data }) => data);
        if (rows.length === 0 && !query.hasNextPage) return empty;
        return (
          <div className="flex flex-col gap-4">
            {rows.length > 0 ? (
              children(rows)
            ) : (
              <p className="text-muted">Nothing fits among the newest. Older ones are not looked through yet.</p>
            )}
            {query.isFetchNextPageError && <ErrorNote error={query.error} />}
            {query.hasNextPage && (
              <Button className="self-start" busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                {rows.length > 0 ? "Show more" : "Look further"}
              </Button>
            )}
          </div>
        );
      }}
    </QueryView>
  );
}
