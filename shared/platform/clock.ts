export const dayMs = 24 * 60 * 60 * 1000;

/** Time as a dependency, so that tests can move it. */
export interface Clock {
  /** Unix milliseconds. */
  now(): number;
  /** Calls `tick` every `ms` until the returned function is called. Never keeps the process alive. */
  every(ms: number, tick: () => void): () => void;
  /** Calls `fire` once after `ms`, unless the returned function is called first. */
  after(ms: number, fire: () => void): () => void;
}

export const systemClock: Clock = {
  now: Date.now,
  every(ms, tick) {
    const timer = setInterval(tick, ms).unref();
    return () => clearInterval(timer);
  },
  after(ms, fire) {
    const timer = setTimeout(fire, ms);
    return () => clearTimeout(timer);
  },
};

/**
 * Calls `expire` once after `ms`, unless the returned function is called first. After a pause of this process, what has
 * arrived meanwhile is read before that.
 */
export function onTimeout(clock: Clock, ms: number, expire: () => void): () => void {
  let isCancelled = false;
  const cancel = clock.after(ms, () => setImmediate(() => isCancelled || expire()));
  return () => {
    isCancelled = true;
    cancel();
  };
}

/** Resolves when the work does, or after `ms`. */
export const atMost = (clock: Clock, ms: number, work: Promise<unknown>): Promise<void> =>
  new Promise((resolve, reject) => {
    const cancel = clock.after(ms, resolve);
    work.then(() => resolve(), reject).finally(cancel);
  });

/** Resolves to the result of the work, or to undefined if it rejects or takes longer than `ms`. */
export const resultWithin = <T>(clock: Clock, ms: number, work: () => T | Promise<T>): Promise<T | undefined> =>
  new Promise((resolve) => {
    const cancel = onTimeout(clock, ms, () => resolve(undefined));
    Promise.resolve()
      .then(work)
      .then(resolve, () => resolve(undefined))
      .finally(cancel);
  });

/** Resolves after `ms`, or rejects with the signal's reason. */
export const sleep = (clock: Clock, ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    const onAbort = () => {
      cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
  });
