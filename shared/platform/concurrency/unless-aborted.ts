/** Settles like `work`, or rejects with the signal's reason once it aborts. Does not stop the work itself. */
export async function unlessAborted<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  if (!signal) return work();
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const listener = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", listener, { once: true });
  try {
    return await Promise.race([work(), aborted.promise]);
  } finally {
    signal.removeEventListener("abort", listener);
  }
}
