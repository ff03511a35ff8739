import type { ServerResponse } from "node:http";
import { noCapacity } from "#errors";
import type { ByteBudget, ByteShare } from "#platform/byte-budget";
import type { Uses } from "#platform/uses";
import { hasReadNothingSince, idleMs } from "./connections.ts";

/** Memory for shorter text is not counted. */
const smallUnits = 64 * 1024;
/** V8 stores two bytes for each character unless all are ASCII. */
const bytesPerUnit = 2;

/**
 * The memory of long responses until their clients have read them, as shares of one budget by account. A response that is
 * decoded for its request is refused if there is no room. One that is there already, and was paid for, takes the place of
 * others of its account: first of those whose clients have read nothing for 2 s, then of the oldest.
 */
export function createUnread({ budget, clock, log }: Uses<"clock" | "log"> & { readonly budget: ByteBudget }) {
  /** The responses that hold memory by account, the oldest first. */
  const held = new Map<string, Map<ServerResponse, ByteShare>>();

  function release(res: ServerResponse, account: string): void {
    const ofAccount = held.get(account);
    ofAccount?.get(res)?.close();
    ofAccount?.delete(res);
    if (ofAccount?.size === 0) held.delete(account);
  }

  function cut(res: ServerResponse, account: string): void {
    log.warn({ account }, "a client was cut off: its account has too many unread responses");
    release(res, account);
    res.destroy();
  }

  /** Returns false if there is no room, although those that `mayCut` accepts were cut off. */
  function take(
    res: ServerResponse,
    account: string,
    bytes: number,
    mayCut: (res: ServerResponse) => boolean,
  ): boolean {
    // Nothing would release it.
    if (res.closed) return true;
    const before = held.get(account);
    const share = before?.get(res) ?? budget.share(account);
    let others: ServerResponse[] | undefined;
    while (!share.take(bytes)) {
      others ??= [...(before?.keys() ?? [])].filter((other) => other !== res && mayCut(other));
      const other = others.shift();
      if (!other) return false;
      cut(other, account);
    }
    if (before?.has(res)) return true;
    const ofAccount = held.get(account) ?? new Map<ServerResponse, ByteShare>();
    held.set(account, ofAccount.set(res, share));
    res.once("close", () => release(res, account));
    return true;
  }

  const isIdle = ({ socket }: ServerResponse) => hasReadNothingSince(socket, clock.now() - idleMs);

  return {
    /** Takes memory for a text before it is decoded for this response. Throws 503. */
    reserve(res: ServerResponse, account: string, textBytes: number): void {
      if (textBytes > smallUnits && !take(res, account, bytesPerUnit * textBytes, isIdle))
        throw noCapacity("Too many large responses are being sent right now.", 2);
    },
    /**
     * Counts a text that was received for this response, which takes so many bytes as UTF-8. Returns false if there is no
     * room, whoever is cut off.
     */
    keep(res: ServerResponse, account: string, parts: readonly string[], utf8Bytes: number): boolean {
      const units = parts.reduce((sum, { length }) => sum + length, 0);
      if (units <= smallUnits) return true;
      const bytes = utf8Bytes === units ? units : bytesPerUnit * units;
      return take(res, account, bytes, isIdle) || take(res, account, bytes, () => true);
    },
  };
}

export type Unread = ReturnType<typeof createUnread>;
