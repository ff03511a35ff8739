import { createStore, type Store } from "./store.ts";

/**
 * What a page still shows when the user comes back to it. Kept in memory while the dashboard is open, and in the tab's own
 * storage over a reload; it ends with the tab or the sign-out. The number changes with the shapes that are kept.
 */
const prefix = "kept-1:";
const stores = new Map<string, Store<unknown>>();

function read(name: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(prefix + name) ?? "");
  } catch {
    return undefined;
  }
}

/** `revive` turns what was stored before a reload into what can be shown after it. */
export function kept<Value>(name: string, initial: Value, revive = (stored: Value): Value => stored): Store<Value> {
  const known = stores.get(name);
  if (known) return known as Store<Value>;
  const stored = read(name);
  const store = createStore(stored === undefined ? initial : revive(stored as Value));
  stores.set(name, store as Store<unknown>);
  return store;
}

function save(): void {
  for (const [name, { get }] of stores)
    try {
      sessionStorage.setItem(prefix + name, JSON.stringify(get()));
    } catch {
      // A browser stores some 5 MB a tab: a conversation with larger files ends with a reload.
      sessionStorage.removeItem(prefix + name);
    }
}

export const keepOverReloads = (): void => window.addEventListener("pagehide", save);

export function forget(): void {
  window.removeEventListener("pagehide", save);
  stores.clear();
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(prefix)) sessionStorage.removeItem(name);
}
