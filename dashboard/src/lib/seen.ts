import { createStore, type Store } from "./store.ts";

/** The ids of the events that a user of this browser has seen, by account. Only those of the list's first page count. */
const prefix = "seen-events:";
const stores = new Map<string, Store<ReadonlySet<string>>>();

function read(owner: string): ReadonlySet<string> {
  try {
    return new Set(JSON.parse(localStorage.getItem(prefix + owner) ?? "[]") as string[]);
  } catch {
    return new Set();
  }
}

export function seenBy(owner: string): Pick<Store<ReadonlySet<string>>, "use" | "set"> {
  const store = stores.get(owner) ?? createStore(read(owner));
  stores.set(owner, store);
  return {
    use: store.use,
    set(ids) {
      localStorage.setItem(prefix + owner, JSON.stringify([...ids]));
      store.set(ids);
    },
  };
}
