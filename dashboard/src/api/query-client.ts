import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError, connectionLost } from "./client.ts";
import { sessionQuery } from "./session.ts";

/**
 * A session that ended elsewhere, by time or with its key, shows the sign-in page at the next answer. For errors of queries
 * and mutations this is done here; what else calls the service does it itself.
 */
export function onError(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) queryClient.setQueryData(sessionQuery.queryKey, null);
}

/** What failed meanwhile, or is old, is asked for again. */
function onSuccess(): void {
  if (!connectionLost.get()) return;
  connectionLost.set(false);
  void queryClient.invalidateQueries();
}

const isWorthRetrying = (failures: number, error: Error) =>
  failures < 2 && error instanceof ApiError && (error.status === 0 || error.status === 503);

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError, onSuccess }),
  mutationCache: new MutationCache({ onError, onSuccess }),
  defaultOptions: {
    // Also without a network: the service may be on this machine, and an error says more than waiting for ever.
    queries: { staleTime: 10_000, retry: isWorthRetrying, networkMode: "always", refetchOnReconnect: true },
    mutations: { retry: false, networkMode: "always" },
  },
});
