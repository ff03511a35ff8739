import { infiniteQueryOptions, type QueryClient, queryOptions } from "@tanstack/react-query";
import { client, unwrap } from "./client.ts";
import type { components } from "./schema.d.ts";

export type Key = components["schemas"]["Key"];
export type NewKey = components["schemas"]["NewKey"];
export type KeyPatch = components["schemas"]["KeyPatch"];
export type KeyWithSecret = components["schemas"]["NewKeyWithSecret"];

export const keysQuery = infiniteQueryOptions({
  queryKey: ["keys"],
  queryFn: ({ pageParam: after, signal }) =>
    unwrap(client.GET("/v1/keys", { params: { query: { limit: 100, ...(after && { after }) } }, signal })),
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

export const keysChanged = (queries: QueryClient) => queries.invalidateQueries({ queryKey: ["keys"] });
