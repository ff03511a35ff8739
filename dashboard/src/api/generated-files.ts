import { infiniteQueryOptions } from "@tanstack/react-query";
import { base, request } from "./client.ts";

interface GeneratedFile {
  readonly id: string;
  readonly request: string;
  /** Null until the call has ended. */
  readonly model: string | null;
  readonly type: string;
  readonly bytes: number;
  readonly created_at: number;
  readonly expires_at: number;
  readonly url: string;
}

interface Page {
  readonly data: readonly GeneratedFile[];
  readonly next: string | null;
}

export const generatedFilesQuery = infiniteQueryOptions({
  queryKey: ["files"],
  queryFn: ({ pageParam, signal }) =>
    request<Page>(`${base}/files?limit=24${pageParam && `&after=${pageParam}`}`, { signal }),
  initialPageParam: "",
  getNextPageParam: ({ next }) => next ?? undefined,
});
