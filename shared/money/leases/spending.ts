import type { Clock } from "#platform/clock";

const windowMs = 5_000;

/** What an account spends in five seconds: the larger of this window's sum and the one before it. */
export function createSpending(clock: Clock) {
  let windowAt = clock.now();
  let current = 0n;
  let before = 0n;

  function move(): void {
    const now = clock.now();
    if (now - windowAt < windowMs) return;
    before = now - windowAt < 2 * windowMs ? current : 0n;
    current = 0n;
    windowAt = now;
  }

  return {
    add(nanoUsd: bigint): void {
      move();
      current += nanoUsd;
    },
    inFiveSeconds(): bigint {
      move();
      return current > before ? current : before;
    },
  };
}
