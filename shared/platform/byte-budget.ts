/**
 * Bytes of large contents that a process holds at once, in memory or on disk. What does not fit is refused, not waited for:
 * the caller's repeat may reach another process.
 *
 * An owner may hold at most as much as is then still free, so that one who takes all there is to get leaves half for
 * others, and two leave a third. What has no owner is bounded by the budget alone.
 */
export interface ByteBudget {
  readonly heldBytes: number;
  /** What one piece of work holds of it. */
  share(owner?: string): ByteShare;
}

export interface ByteShare {
  /** Holds so many bytes from now on. False: they do not fit, or the share is closed, and nothing has changed. */
  resize(bytes: number): boolean;
  /** Holds so many more. */
  take(bytes: number): boolean;
  give(bytes: number): void;
  /** Gives back all that was taken, for good. */
  close(): void;
}

export function createByteBudget(limitBytes: number): ByteBudget {
  const owners = new Map<string, number>();
  let heldBytes = 0;
  return {
    get heldBytes() {
      return heldBytes;
    },
    share(owner) {
      let own = 0;
      let isClosed = false;
      function resize(bytes: number): boolean {
        const more = bytes - own;
        const owned = (owner === undefined ? 0 : (owners.get(owner) ?? 0)) + more;
        const free = limitBytes - heldBytes - more;
        if (more > 0 && (isClosed || free < 0 || (owner !== undefined && owned > free))) return false;
        own = bytes;
        heldBytes += more;
        if (owner === undefined) return true;
        if (owned > 0) owners.set(owner, owned);
        else owners.delete(owner);
        return true;
      }
      return {
        resize,
        take: (bytes) => resize(own + bytes),
        give: (bytes) => void resize(Math.max(0, own - bytes)),
        close() {
          isClosed = true;
          resize(0);
        },
      };
    },
  };
}
