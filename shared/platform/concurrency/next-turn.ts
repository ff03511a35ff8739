/** Work on more bytes is divided into several turns of the event loop, so that other calls need not wait. */
const largeBytes = 1024 * 1024;

/** Resolves in the next turn of the event loop if the number of bytes or characters is large. */
export const nextTurnIfLarge = (bytes: number): Promise<void> | undefined =>
  bytes < largeBytes ? undefined : new Promise((resolve) => void setImmediate(resolve));
