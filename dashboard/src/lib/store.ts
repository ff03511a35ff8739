import { useSyncExternalStore } from "react";

export interface Store<Value> {
  readonly get: () => Value;
  readonly set: (next: Value) => void;
  readonly use: () => Value;
}

/** A mutable value that components subscribe to. */
export function createStore<Value>(initial: Value): Store<Value> {
  const listeners = new Set<() => void>();
  let value = initial;
  const get = () => value;
  function subscribe(listener: () => void) {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }
  function set(next: Value) {
    if (Object.is(next, value)) return;
    value = next;
    for (const notify of listeners) notify();
  }
  return { get, set, use: () => useSyncExternalStore(subscribe, get) };
}
