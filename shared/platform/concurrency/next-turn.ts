/** Work on more bytes is divided into several turns of the event loop, so that other calls need not wait. */
const largeBytes = 1024 * 1024;
/**
 * Others get as much time as a piece of such work took, and at least that for several of their reads and writes. So a call
 * that needs several turns waits for one piece, not for one at each turn.
 */
const pauseMs = { min: 2, max: 100 } as const;

const waiting: (() => void)[] = [];

function runNext(): void {
  const startedAt = performance.now();
  waiting[0]?.();
  // The piece runs once this function has returned.
  setImmediate(() => {
    const tookMs = performance.now() - startedAt;
    setTimeout(goOn, Math.min(pauseMs.max, Math.max(pauseMs.min, tookMs)));
  });
}

function goOn(): void {
  waiting.shift();
  if (waiting.length > 0) runNext();
}

/**
 * Resolves in a later turn of the event loop if the number of bytes or characters is large. All such work of the process
 * takes turns: what many calls do at once holds others up no longer than what one of them does.
 */
export const nextTurnIfLarge = (bytes: number): Promise<void> | undefined =>
  bytes < largeBytes
    ? undefined
    : new Promise((resolve) => {
        if (waiting.push(resolve) === 1) setImmediate(runNext);
      });
