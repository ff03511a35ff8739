import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError, connectionLost } from "./client.ts";
import { type Kind, kindOfPath, type Sessions, sessionQuery } from "./session.ts";

/** Shows the sign-in page. The service is not asked: for a second, another instance may still accept the session. */
export function endSession(kind: Kind): void {
  queryClient.setQueryData<Sessions>(sessionQuery.queryKey, (sessions) => sessions && { ...sessions, [kind]: null });
}

/**
 * Ends the current page's session at the next response if it ended elsewhere, by time or with its key. This covers errors of
 * queries and mutations; other callers of the service call it themselves.
 */
export function onError(error: unknown): void {
  if (error instanceof ApiError && error.status === 401)
    endSession(kindOfPath(window.location.pathname.slice(import.meta.env.BASE_URL.length - 1)));
}

/** Fetches queries again that failed in the meantime or are stale. */
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
    // Run without a network too: the service may be on this machine, and an error says more than an endless wait.
    queries: { staleTime: 10_000, retry: isWorthRetrying, networkMode: "always", refetchOnReconnect: true },
    mutations: { retry: false, networkMode: "always" },
  },
});
