/** One holder's bytes. */
export interface OwnerShare {
  /** Holds so many bytes from now on. False: they do not fit, and nothing has changed. */
  resize(bytes: number): boolean;
}

export interface OwnerBudget {
  share(owner: string): OwnerShare;
}

/**
 * Bytes that a process may hold at once for one purpose. An owner may hold at most as much as is then still free, so that
 * one who takes all there is to get leaves half for others, and two leave a third.
 */
export function createOwnerBudget(limitBytes: number): OwnerBudget {
  const owners = new Map<string, number>();
  let used = 0;
  return {
    share(owner) {
      let held = 0;
      return {
        resize(bytes) {
          const more = bytes - held;
          const owned = (owners.get(owner) ?? 0) + more;
          if (more > 0 && owned > limitBytes - used - more) return false;
          held = bytes;
          used += more;
          if (owned > 0) owners.set(owner, owned);
          else owners.delete(owner);
          return true;
        },
      };
    },
  };
}
