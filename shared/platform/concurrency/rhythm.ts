const usualMs = 25;
/** From this number of callbacks in a beat on, the next one comes later, which halves the cost of each. */
const many = 32;
const manyMs = 50;

/**
 * One timer of the process for work that can wait a moment, so that it is done together: a pass over a hundred streams costs
 * less than a hundred passes over one.
 */
function createRhythm() {
  const waiting = new Set<() => void>();
  let lastCount = 0;
  let isOnBeat = false;
  let timer: NodeJS.Timeout | undefined;

  function beat(): void {
    timer = undefined;
    const runs = [...waiting];
    waiting.clear();
    lastCount = runs.length;
    isOnBeat = true;
    setImmediate(() => {
      isOnBeat = false;
    });
    for (const run of runs) run();
  }

  function soon(run: () => void): void {
    waiting.add(run);
    timer ??= setTimeout(beat, lastCount < many ? usualMs : manyMs);
  }

  return {
    /** Calls it at the next beat, once, however often it was asked for. */
    soon,
    cancel(run: () => void): void {
      waiting.delete(run);
      if (waiting.size > 0) return;
      clearTimeout(timer);
      timer = undefined;
    },
    /** Resolves at the next beat. */
    next: () => new Promise<void>((resolve) => soon(resolve)),
    /** True from a beat to the end of its turn of the event loop: what is written now goes out with that of others. */
    isOnBeat: () => isOnBeat,
  };
}

export const rhythm = createRhythm();
