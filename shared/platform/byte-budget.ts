export type ByteBudget = ReturnType<typeof createByteBudget>;
export type ByteShare = ReturnType<ByteBudget["share"]>;

/**
 * Limits the bytes of large content that a process holds at once, in memory or on disk. Content that does not fit is
 * refused instead of queued, because the caller's retry may reach another process.
 *
 * An owner may hold at most as much as remains free: one greedy owner leaves half of the budget for others, two leave a
 * third. Content without an owner is limited by the budget alone.
 */
export function createByteBudget(limitBytes: number) {
  const owners = new Map<string, number>();
  let heldBytes = 0;
  return {
    limitBytes,
    get heldBytes(): number {
      return heldBytes;
    },
    /** The share of the budget that one piece of work holds. `mostBytes` limits the total of its owner. */
    share(owner?: string, mostBytes = limitBytes) {
      let own = 0;
      let isClosed = false;
      /** Sets the number of held bytes. Returns false and changes nothing if they do not fit or the share is closed. */
      function resize(bytes: number): boolean {
        const more = bytes - own;
        const owned = (owner === undefined ? 0 : (owners.get(owner) ?? 0)) + more;
        const free = limitBytes - heldBytes - more;
        if (more > 0 && (isClosed || free < 0 || (owner !== undefined && owned > Math.min(free, mostBytes))))
          return false;
        own = bytes;
        heldBytes += more;
        if (owner === undefined) return true;
        if (owned > 0) owners.set(owner, owned);
        else owners.delete(owner);
        return true;
      }
      return {
        resize,
        take: (bytes: number) => resize(own + bytes),
        give: (bytes: number) => void resize(Math.max(0, own - bytes)),
        /** Returns all bytes. The share cannot be used afterwards. */
        close(): void {
          isClosed = true;
          resize(0);
        },
      };
    },
  };
}
