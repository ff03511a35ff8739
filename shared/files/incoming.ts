import { invalidValue, ServiceError } from "#errors";
import type { Clock } from "#platform/clock";

/** A body that is being received: its first bytes, then all of it. */
export interface Incoming {
  /** So many, or all there are. */
  head(bytes: number): Promise<Buffer>;
  /**
   * Everything, head included. The last chunk comes only once it is certain that it is the last and nothing is missing: an
   * object of this length cannot come to be from a body of another.
   */
  all(): AsyncIterable<Buffer>;
  /** Every byte was handed out. */
  complete(): boolean;
  /** Nothing more is wanted. */
  stop(): void;
}

/** Whoever sends nothing for so long is not waited for. */
const silentMs = 60_000;

/** Throws 400 for a body that breaks off, goes silent, has another length than `bytes`, or is not there `until` then. */
export function createIncoming(
  body: AsyncIterable<Buffer>,
  { bytes, until, clock }: { bytes: number; until: number; clock: Clock },
): Incoming {
  const source = body[Symbol.asyncIterator]();
  let received = 0;
  let handedOut = 0;
  let first: Buffer = Buffer.alloc(0);

  const incomplete = (why: string) =>
    invalidValue(undefined, `The file did not arrive: ${why} after ${received} of ${bytes} bytes.`);

  async function next(): Promise<Buffer | undefined> {
    if (clock.now() >= until) throw incomplete("its time was over");
    const late = Promise.withResolvers<never>();
    const cancel = clock.after(silentMs, () => late.reject(incomplete("nothing came for a minute")));
    try {
      const { done, value } = await Promise.race([source.next(), late.promise]);
      if (done) {
        if (received < bytes) throw incomplete("it ended");
        return undefined;
      }
      received += value.length;
      if (received > bytes) throw invalidValue(undefined, `The file has more than the ${bytes} bytes announced.`);
      return value;
    } catch (error) {
      throw error instanceof ServiceError ? error : incomplete("it broke off");
    } finally {
      cancel();
    }
  }

  return {
    async head(wanted) {
      while (first.length < Math.min(wanted, bytes)) {
        const chunk = await next();
        if (!chunk) break;
        first = Buffer.concat([first, chunk]);
      }
      return first;
    },
    async *all() {
      let last = first;
      for (let chunk = await next(); chunk; chunk = await next()) {
        yield last;
        handedOut += last.length;
        last = chunk;
      }
      handedOut += last.length;
      yield last;
    },
    complete: () => bytes > 0 && handedOut === bytes,
    stop() {
      // It may wait for a chunk that never comes.
      source.return?.().catch(() => undefined);
    },
  };
}
