/** The work's result, or the signal's reason as soon as it aborts. The work itself may go on. */
export async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
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
