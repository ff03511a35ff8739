import { noCapacity } from "#errors";
import type { ReleaseReason } from "#money";
import { type Clock, sleep } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Charges } from "./charges.ts";
import type { Expiry } from "./expiry.ts";
import type { MediaType } from "./media-types.ts";
import type { Records, StoredUpload } from "./records.ts";
import type { Storage } from "./storage.ts";
import { uploadKey } from "./upload-view.ts";

export type Outcome = ReturnType<typeof createOutcome>;

/** MongoDB is waited for so long; what is not done by then is left to expiry and the sweeper. */
const patienceMs = 60_000;
const hurryMs = 10_000;
const againMs = 200;
/** Storage takes fewer connections at once than a batch has uploads. */
const atOnce = 20;

/**
 * How a pending upload ends: active and charged, or neither. The charge is decided first: a crash after it leaves a charge
 * without an active file, which the next completion finishes or expiry refunds; never an active file without a charge.
 */
export function createOutcome(deps: {
  records: Records;
  charges: Charges;
  storage: Storage;
  clock: Clock;
  log: Logger;
}) {
  const { records, charges, storage, clock, log } = deps;

  /** All of it is in storage. Null: it has ended meanwhile, or its time is over: then it is to `fail`. */
  async function succeed(record: StoredUpload, type: MediaType, bytes: number): Promise<StoredUpload | null> {
    const signal = AbortSignal.timeout(patienceMs);
    const { _id: id, expiresAt } = record;
    try {
      const cost = await charges.charge(record, bytes, signal);
      const found = cost !== undefined && (await activate(id, { ...type, bytes, cost, expiresAt }, signal));
      if (!found) return null;
      await charges.apply(record, cost, signal).catch((error: unknown) => {
        log.warn({ err: error, upload: id }, "a storage charge is left to the sweeper");
      });
      return found;
    } catch (error) {
      throw noCapacity("The upload could not be recorded in time.", 5, error);
    }
  }

  /** Until it is done: whether a write without an answer stands is seen by the next. */
  async function activate(id: string, found: Parameters<Records["activate"]>[1], signal: AbortSignal) {
    for (;;) {
      try {
        const activated = await records.activate(id, found);
        if (activated) return activated;
        const standing = await records.read(id);
        return standing?.status === "active" ? standing : null;
      } catch (error) {
        log.warn({ err: error, upload: id }, "an upload is not active yet");
        await sleep(clock, againMs, signal);
      }
    }
  }

  /**
   * It failed: nothing stays. Never rejects; what cannot be done now is left to expiry. `unsureUntil`: storage may still be
   * making an object of it; then expiry looks again at that time.
   */
  async function fail(record: StoredUpload, reason: ReleaseReason, lives: Expiry, unsureUntil?: Date): Promise<void> {
    const { _id: id } = record;
    try {
      const ended = (await records.fail(id, unsureUntil ?? new Date(clock.now()))) ?? (await records.read(id));
      // Not here, but it did become active: its charge stands, whatever became of it since.
      if (ended?.activatedAt) return;
      await charges.release(record, reason, AbortSignal.timeout(hurryMs));
      if (unsureUntil) await storage.remove([uploadKey(id)]);
      else await lives.finish([id]);
    } catch (error) {
      log.warn({ err: error, upload: id }, "a failed upload is left to expiry");
    }
  }

  /** Of uploads that have ended: those that never were active let go of their money and of their parts. */
  async function settle(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const unsettled = new Set<string>();
    const never = (await records.all(ids)).filter(({ activatedAt }) => !activatedAt);
    for (let from = 0; from < never.length; from += atOnce) {
      const signal = AbortSignal.timeout(hurryMs);
      const some = never.slice(from, from + atOnce).map((record) =>
        settleOne(record, signal).catch((error: unknown) => {
          log.warn({ err: error, upload: record._id }, "an upload that has ended is not settled yet");
          unsettled.add(record._id);
        }),
      );
      await Promise.all(some);
    }
    return unsettled;
  }

  async function settleOne(record: StoredUpload, signal: AbortSignal): Promise<void> {
    const reason: ReleaseReason =
      record.status === "expired"
        ? { status: "failed", error: "upload_expired" }
        : { status: "cancelled", error: "upload_deleted" };
    await charges.release(record, reason, signal);
    // Also one whose id was never written down: by its key.
    if (record.multipart) await storage.multipart.abort(uploadKey(record._id));
  }

  return { succeed, fail, settle };
}
