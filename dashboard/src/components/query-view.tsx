import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiError } from "../api/client.ts";
import { ErrorNote } from "./error-note.tsx";
import { Notice } from "./notice.tsx";
import { Skeleton } from "./skeleton.tsx";

interface Props<T> {
  readonly query: UseQueryResult<T>;
  readonly skeleton?: ReactNode;
  readonly children: (data: T) => ReactNode;
}

/** Shows a query's result, its loading state or its error. */
export function QueryView<T>({ query, skeleton = <Skeleton />, children }: Props<T>) {
  if (query.data !== undefined)
    return (
      <>
        {/* A lost connection is shown once, above all screens. */}
        {query.isRefetchError && !(query.error instanceof ApiError && query.error.status === 0) && (
          <Notice>Not up to date: {query.error.message}</Notice>
        )}
        {children(query.data)}
      </>
    );
  if (query.error) return <ErrorNote error={query.error} onRetry={query.refetch} />;
  return skeleton;
}
