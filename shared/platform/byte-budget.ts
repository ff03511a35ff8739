/**
 * How many bytes of large contents a process holds in memory at once. What does not fit is refused, not waited for: the
 * caller's repeat may reach another process.
 */
export interface ByteBudget {
  readonly heldBytes: number;
  /** What one piece of work holds of it. */
  share(): ByteShare;
}

export interface ByteShare {
  /** False, and nothing is taken: it does not fit, or the share is closed. */
  take(bytes: number): boolean;
  give(bytes: number): void;
  /** Gives back all that was taken. */
  close(): void;
}

export function createByteBudget(limitBytes: number): ByteBudget {
  let heldBytes = 0;
  return {
    get heldBytes() {
      return heldBytes;
    },
    share() {
      let ownBytes = 0;
      let isClosed = false;
      const give = (bytes: number) => {
        const given = Math.min(bytes, ownBytes);
        ownBytes -= given;
        heldBytes -= given;
      };
      return {
        take(bytes) {
          if (isClosed || heldBytes + bytes > limitBytes) return false;
          ownBytes += bytes;
          heldBytes += bytes;
          return true;
        },
        give,
        close() {
          isClosed = true;
          give(ownBytes);
        },
      };
    },
  };
}
