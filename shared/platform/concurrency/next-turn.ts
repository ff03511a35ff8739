/** Work on more bytes is divided into several turns of the event loop, so that other calls need not wait. */
const largeBytes = 1024 * 1024;
/** The pause between two pieces of such work, in which others do theirs: enough for several of their reads and writes. */
const pauseMs = 2;

const waiting: (() => void)[] = [];

function runNext(): void {
  waiting[0]?.();
  // The pause begins after the piece, which runs once this function has returned.
  setImmediate(() => setTimeout(goOn, pauseMs));
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
