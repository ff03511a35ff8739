import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ErrorNote } from "./error-note.tsx";
import { Skeleton } from "./skeleton.tsx";

interface Props<T> {
  readonly query: UseQueryResult<T>;
  readonly skeleton?: ReactNode;
  readonly children: (data: T) => ReactNode;
}

/** What a query brought, or that it loads, or why it failed. */
export function QueryView<T>({ query, skeleton = <Skeleton />, children }: Props<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <ErrorNote error={query.error} onRetry={query.refetch} />;
  return skeleton;
}
