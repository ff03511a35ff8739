import { queryOptions } from "@tanstack/react-query";
import { base, request } from "./client.ts";

interface RunningCall {
  readonly id: string;
  readonly model: string;
  readonly stage: "waiting" | "running";
  /** Position in the queue; null once the call runs. */
  readonly position: number | null;
  readonly elapsed_ms: number;
}

const pollMs = 1000;

/** Image and media calls that are queued or running. */
export const runningQuery = queryOptions({
  queryKey: ["running"],
  queryFn: async ({ signal }) => (await request<{ data: readonly RunningCall[] }>(`${base}/running`, { signal })).data,
  refetchInterval: pollMs,
  staleTime: 0,
  gcTime: 0,
});
