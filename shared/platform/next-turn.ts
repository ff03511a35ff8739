/**
 * Work on more bytes than this is divided into several turns of the event loop, so that other calls do not have to wait
 * for all of it.
 */
const largeBytes = 1024 * 1024;

/**
 * Resolves in the next turn of the event loop if the number of bytes or characters is large. Returns undefined
 * otherwise.
 */
export const nextTurnIfLarge = (bytes: number): Promise<void> | undefined =>
  bytes < largeBytes ? undefined : new Promise((resolve) => void setImmediate(resolve));
