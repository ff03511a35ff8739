import { infiniteQueryOptions, type QueryClient, queryOptions } from "@tanstack/react-query";
import { base, client, defined, errorOf, unreachable, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";

export type Job = components["schemas"]["Job"];
type Status = Job["status"];

export const jobStatuses: readonly Status[] = ["queued", "in_progress", "completed", "failed", "cancelled", "expired"];
export const isOpen = ({ status }: Pick<Job, "status">): boolean => status === "queued" || status === "in_progress";

export interface Filters {
  readonly status?: string | undefined;
  readonly endpoint?: string | undefined;
}

const pageSize = 50;
const pollMs = 2_000;
/** Many jobs take a second or two. */
const firstPolls = 20;
const firstPollMs = 400;
/** Every loaded page is read again at each poll. */
const maxPolledPages = 2;

/** Polls while a listed job is open. TanStack Query pauses intervals while the tab is hidden. */
export const jobsQuery = ({ status, endpoint }: Filters) =>
  infiniteQueryOptions({
    queryKey: ["jobs", "list", status, endpoint],
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        client.GET("/v1/jobs", {
          params: {
            query: defined({
              limit: pageSize,
              // Anyone may have typed the address.
              status: jobStatuses.find((each) => each === status),
              endpoint,
              after: pageParam,
            }),
          },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: ({ state }) => {
      const pages = state.data?.pages ?? [];
      return pages.length <= maxPolledPages && pages.some(({ data }) => data.some(isOpen)) ? pollMs : false;
    },
  });

export const jobQuery = (id: string) =>
  queryOptions({
    queryKey: ["jobs", "one", id],
    queryFn: ({ signal }) =>
      unwrap(client.GET("/v1/jobs/{id}", { params: { path: { id }, query: { include: "result" } }, signal })),
    refetchInterval: ({ state: { data, dataUpdateCount } }) =>
      data && !isOpen(data) ? false : dataUpdateCount < firstPolls ? firstPollMs : pollMs,
  });

export const cancelJob = (id: string) => unwrap(client.POST("/v1/jobs/{id}/cancel", { params: { path: { id } } }));
export const deleteJob = (id: string) => unwrap(client.DELETE("/v1/jobs/{id}", { params: { path: { id } } }));

export const jobsChanged = (queries: QueryClient) => queries.invalidateQueries({ queryKey: ["jobs"] });

/** Makes a call that runs without the page. Throws an ApiError. */
export async function submitJob(endpoint: string, body: object): Promise<Job> {
  const response = await fetch(`${base}${endpoint}`, {
    method: "POST",
    headers: { "content-type": "application/json", prefer: "respond-async" },
    body: JSON.stringify(body),
  }).catch(unreachable);
  if (!response.ok) throw await errorOf(response);
  return (await response.json()) as Job;
}
