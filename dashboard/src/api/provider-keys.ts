import { infiniteQueryOptions, type QueryClient, queryOptions, useInfiniteQuery } from "@tanstack/react-query";
import { client, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";
import { useCanManage } from "./session.ts";

type Schemas = components["schemas"];
export type ProviderKey = Schemas["ProviderKey"];
export type NewProviderKey = Schemas["NewProviderKey"];
export type ProviderKeyPatch = Schemas["ProviderKeyPatch"];
export type KeyProvider = Schemas["KeyProvider"];

export const providerKeysQuery = infiniteQueryOptions({
  queryKey: ["provider-keys"],
  queryFn: ({ pageParam: after, signal }) =>
    unwrap(client.GET("/v1/provider-keys", { params: { query: { limit: 100, ...(after && { after }) } }, signal })),
  initialPageParam: "",
  getNextPageParam: ({ next }) => next ?? undefined,
});

/** A 501 if the service cannot store credentials. */
export const keyProvidersQuery = queryOptions({
  queryKey: ["key-providers"],
  queryFn: async ({ signal }) => (await unwrap(client.GET("/v1/provider-keys/providers", { signal }))).data,
  staleTime: 60_000,
});

const of = (id: string) => ({ params: { path: { id } } });

export const createProviderKey = (body: NewProviderKey) => unwrap(client.POST("/v1/provider-keys", { body }));
export const updateProviderKey = (id: string, body: ProviderKeyPatch) =>
  unwrap(client.PATCH("/v1/provider-keys/{id}", { ...of(id), body }));
export const testProviderKey = (id: string) => unwrap(client.POST("/v1/provider-keys/{id}/test", of(id)));
export const deleteProviderKey = (id: string) => unwrap(client.DELETE("/v1/provider-keys/{id}", of(id)));

export const providerKeysChanged = (queries: QueryClient) => queries.invalidateQueries({ queryKey: ["provider-keys"] });

/** The provider keys that the session may see, as options of a filter. */
export function useProviderKeyOptions(): readonly { readonly value: string; readonly label: string }[] {
  const found = useInfiniteQuery({ ...providerKeysQuery, enabled: useCanManage() }).data?.pages ?? [];
  return found
    .flatMap(({ data }) => data)
    .map(({ id, name, provider, label }) => ({ value: id, label: name ?? `${provider} (${label})` }));
}
