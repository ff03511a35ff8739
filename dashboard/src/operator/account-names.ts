import { queryOptions } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { admin } from "./api.ts";

/** The names of accounts, by which operators know them. All that a page shows are read together. */

/** The limit of one request. */
const maxIds = 100;

interface Gathering {
  readonly ids: Set<string>;
  readonly names: Promise<ReadonlyMap<string, string>>;
}

let gathering: Gathering | undefined;

async function readNames(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const { data } = await unwrap(admin.GET("/accounts", { params: { query: { ids: ids.join(",") } } }));
  return new Map(data.map(({ id, name }) => [id, name]));
}

function gather(): Gathering {
  const ids = new Set<string>();
  const names = new Promise((resolve) => setTimeout(resolve)).then(() => {
    gathering = undefined;
    return readNames([...ids]);
  });
  return { ids, names };
}

async function nameOf(id: string): Promise<string | null> {
  if (!gathering || gathering.ids.size === maxIds) gathering = gather();
  const { ids, names } = gathering;
  ids.add(id);
  return (await names).get(id) ?? null;
}

export const accountNameQuery = (id: string) =>
  queryOptions({ queryKey: ["admin", "accounts", "name", id], queryFn: () => nameOf(id), staleTime: 60_000 });
