import { infiniteQueryOptions, type QueryClient, queryOptions, useInfiniteQuery } from "@tanstack/react-query";
import { client, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";
import { useAccountSession, useCanManage } from "./session.ts";

export type Key = components["schemas"]["Key"];
export type NewKey = components["schemas"]["NewKey"];
export type KeyPatch = components["schemas"]["KeyPatch"];
export type KeyWithSecret = components["schemas"]["NewKeyWithSecret"];

export const nameOf = ({ name, prefix }: Pick<Key, "name" | "prefix">): string => name ?? prefix;

/** Revoked and expired keys cannot be used again. */
export const isOver = ({ revoked_at, expires_at }: Pick<Key, "revoked_at" | "expires_at">, nowMs: number): boolean =>
  revoked_at !== null || (expires_at !== null && expires_at * 1000 <= nowMs);

const keysAfter = (after: string, signal: AbortSignal) =>
  unwrap(client.GET("/v1/keys", { params: { query: { limit: 100, ...(after && { after }) } }, signal }));

export const keysQuery = infiniteQueryOptions({
  queryKey: ["keys"],
  queryFn: ({ pageParam, signal }) => keysAfter(pageParam, signal),
  initialPageParam: "",
  getNextPageParam: ({ next }) => next ?? undefined,
});

export const ownKeyQuery = queryOptions({
  queryKey: ["keys", "own"],
  queryFn: ({ signal }) => unwrap(client.GET("/v1/key", { signal })),
});

export const createKey = (body: NewKey) => unwrap(client.POST("/v1/keys", { body }));
export const updateKey = (id: string, body: KeyPatch) =>
  unwrap(client.PATCH("/v1/keys/{id}", { params: { path: { id } }, body }));
export const revokeKey = (id: string) => unwrap(client.DELETE("/v1/keys/{id}", { params: { path: { id } } }));

/** True if no other key can manage the account. Reads the keys until it finds one that can. */
export const isLastManagerQuery = ({ id, scopes }: Pick<Key, "id" | "scopes">) =>
  queryOptions({
    queryKey: ["keys", "last manager", id],
    async queryFn({ signal }): Promise<boolean> {
      if (!scopes.includes("manage")) return false;
      const canManage = (key: Key) => key.id !== id && key.scopes.includes("manage") && !isOver(key, Date.now());
      for (let after: string | null = ""; after !== null; ) {
        const page: Awaited<ReturnType<typeof keysAfter>> = await keysAfter(after, signal);
        if (page.data.some(canManage)) return false;
        after = page.next;
      }
      return true;
    },
    staleTime: 0,
  });

export const keysChanged = (queries: QueryClient) => queries.invalidateQueries({ queryKey: ["keys"] });

/** The keys that the session may see, as options of a filter. */
export function useKeyOptions(isNeeded = true): readonly { readonly value: string; readonly label: string }[] {
  const canManage = useCanManage();
  const keys = useInfiniteQuery({ ...keysQuery, enabled: isNeeded && canManage });
  const found = keys.data?.pages.flatMap(({ data }) => data) ?? [];
  return found.map(({ id, name, prefix }) => ({ value: id, label: name ? `${name} (${prefix})` : prefix }));
}

/** Maps key ids to names. */
export function useKeyNames(isNeeded: boolean): (id: string) => string {
  const { key } = useAccountSession();
  const names = new Map([
    [key.id, nameOf(key)],
    ...useKeyOptions(isNeeded).map(({ value, label }) => [value, label] as const),
  ]);
  return (id) => names.get(id) ?? id;
}
