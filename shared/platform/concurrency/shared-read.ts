import type { Clock } from "../clock.ts";

/** Shares one read among all callers within `ms`. A failed read is not cached. */
export function sharedRead<T>(clock: Clock, ms: number, read: () => Promise<T>): () => Promise<T> {
  let last: { readonly at: number; readonly value: Promise<T> } | undefined;
  return () => {
    if (last && clock.now() - last.at < ms) return last.value;
    const value = read();
    last = { at: clock.now(), value };
    value.catch(() => {
      last = undefined;
    });
    return value;
  };
}
