import { noCapacity, toServiceError } from "#errors";
import { formatUsd, type Money, parseUsd, type ReleaseReason } from "#money";
import type { Background } from "#platform/concurrency/background";
import { retry } from "#platform/concurrency/retry";
import { unlessAborted } from "#platform/concurrency/unless-aborted";
import type { Uses } from "#platform/uses";
import { createExpiry, oneObject } from "./expiry.ts";
import type { MediaType } from "./media-types.ts";
import { fileLifetimeMs, type Records, type StoredUpload, type UploadRequest, uploadKey } from "./records.ts";
import type { Storage } from "./storage.ts";

export type Lifecycle = ReturnType<typeof createLifecycle>;

/** A completion waits this long for MongoDB. */
const activateTimeoutMs = 60_000;
const releaseTimeoutMs = 10_000;
/** A failed attempt to end an upload is retried for this long. Afterwards expiry and the sweeper of holds finish it. */
const endTimeoutMs = 120_000;
const backoff = { firstMs: 200, maxMs: 200 };
const endBackoff = { firstMs: 500, maxMs: 5_000 };
/** Storage accepts fewer concurrent connections than a batch has uploads. */
const maxConcurrent = 20;

const endpoint = "/v1/uploads";
const bytesPerGb = 1n << 30n;

/** The price of storing a number of bytes for 24 hours: exact, rounded once, half up to a nano-USD. */
export function storagePrice(usdPerGbDay: string): (bytes: number) => bigint {
  const nanoUsdPerGb = parseUsd(usdPerGbDay);
  if (nanoUsdPerGb === undefined || nanoUsdPerGb < 0n) throw new RangeError(`not a price: ${usdPerGbDay}`);
  return (bytes) => (BigInt(bytes) * nanoUsdPerGb + bytesPerGb / 2n) / bytesPerGb;
}

/**
 * A pending upload ends either active and charged, or neither. The charge is captured first. A crash afterwards leaves
 * a charge without an active file, which the next completion finishes or expiry refunds, but never an active file
 * without a charge. The cost is held before the first byte.
 */
export function createLifecycle(
  deps: Uses<"clock" | "log"> & {
    records: Records;
    money: Money;
    price: (bytes: number) => bigint;
    storage: Storage;
    background: Background;
  },
) {
  const { records, money, price, storage, background, clock, log } = deps;
  const expiry = createExpiry({
    ...deps,
    collection: records.objects,
    keysOf: oneObject(uploadKey),
    release: releaseEnded,
  });

  const callOf = ({ account, requestId, key, buybackToken, held, createdAt }: StoredUpload) => ({
    kind: "storage" as const,
    account,
    requestId,
    key,
    endpoint,
    heldNanoUsd: held,
    buybackToken,
    totalMs: clock.now() - createdAt.getTime(),
  });

  /** Throws the 402, 403, 429 or 503 to respond with. */
  async function hold(request: UploadRequest, bytes: number, expiresAt: number): Promise<bigint> {
    const { account, keyId: key, requestId, onHeld } = request;
    const nanoUsd = price(bytes);
    const call = { kind: "storage" as const, account, requestId, key, endpoint };
    const heldNanoUsd = await money.holdForCall({
      ...call,
      maxNanoUsd: nanoUsd,
      minNanoUsd: nanoUsd,
      expiresAt,
      insufficientText: (availableNanoUsd) =>
        `The balance is too low. Storing ${bytes} bytes costs ${formatUsd(nanoUsd)} USD; the balance has ${formatUsd(availableNanoUsd)}.`,
    });
    try {
      await onHeld?.(heldNanoUsd);
    } catch (refused) {
      const released = { ...call, heldNanoUsd, totalMs: 0, signal: AbortSignal.timeout(releaseTimeoutMs) };
      await money
        .release(released, { status: "failed", error: toServiceError(refused).code })
        .catch((error: unknown) =>
          log.warn({ err: error, requestId }, "a hold could not be released; the sweeper will release it"),
        );
      throw refused;
    }
    return heldNanoUsd;
  }

  /** Ends the hold of an upload that was never active and refunds a charge that a completion may have made. */
  async function releaseCharge(record: StoredUpload, reason: ReleaseReason, signal: AbortSignal): Promise<void> {
    const { entry } = await money.release({ ...callOf(record), signal }, reason);
    if (entry.costNanoUsd === 0n) return;
    // `money` retries the refund itself; the signal only ends the wait for it.
    await unlessAborted(signal, () => money.refund(record.account, record.requestId));
  }

  /**
   * Called when the whole file is in storage. Returns null if the upload has since ended or expired, in which case the
   * caller must `fail` it.
   */
  async function activate(record: StoredUpload, type: MediaType, bytes: number): Promise<StoredUpload | null> {
    const signal = AbortSignal.timeout(activateTimeoutMs);
    const { _id: id } = record;
    // A multipart upload may have been started an hour ago.
    const expiresAt = record.multipart ? new Date(clock.now() + fileLifetimeMs) : record.expiresAt;
    try {
      const { entry } = await money.capture({
        ...callOf(record),
        costNanoUsd: price(bytes),
        status: "succeeded",
        attempts: [],
        usage: {},
        estimated: false,
        signal,
      });
      // Another process has already captured a cost of zero for this upload.
      if (entry.request?.status !== "succeeded") return null;
      const { costNanoUsd: cost } = entry;
      const active = await markActive(id, { ...type, bytes, cost, expiresAt }, signal);
      if (!active) return null;
      const { account, requestId, held: heldNanoUsd } = record;
      const settleSignal = AbortSignal.timeout(endTimeoutMs);
      const settled = money.settle({ account, requestId, heldNanoUsd, costNanoUsd: cost, signal: settleSignal });
      background.run("a storage charge could not be settled; the sweeper will settle it", settled, { upload: id });
      // The charge is already captured.
      await unlessAborted(signal, () => settled).catch(() => undefined);
      return active;
    } catch (error) {
      throw noCapacity("The upload could not be recorded in time.", 5, error);
    }
  }

  /** If the outcome of a write is unknown, the next attempt reads the record. */
  function markActive(id: string, found: Parameters<Records["activate"]>[1], signal: AbortSignal) {
    const retryIf = (error: unknown) => {
      log.warn({ err: error, upload: id }, "an upload could not be marked active; retrying");
      return true;
    };
    return retry({ clock, signal, backoff, retryIf }, async () => {
      const activated = await records.activate(id, found);
      if (activated) return activated;
      const current = await records.find(id);
      return current?.status === "active" ? current : null;
    });
  }

  /**
   * Ends a pending upload without a trace. Never rejects: a failure is retried in the background and then by expiry.
   * Set `recheckAt` if storage may still create the object afterwards; expiry then checks again at that time.
   */
  async function fail(record: StoredUpload, reason: ReleaseReason, recheckAt?: Date): Promise<void> {
    const { _id: id } = record;
    try {
      await end(record, reason, recheckAt);
    } catch (error) {
      log.warn({ err: error, upload: id }, "a failed upload could not be ended; retrying");
      const ended = retry({ clock, signal: AbortSignal.timeout(endTimeoutMs), backoff: endBackoff }, () =>
        end(record, reason, recheckAt),
      );
      background.run("a failed upload could not be cleaned up; expiry will do so", ended, { upload: id });
    }
  }

  /** Idempotent. */
  async function end(record: StoredUpload, reason: ReleaseReason, recheckAt: Date | undefined): Promise<void> {
    const { _id: id } = record;
    const ended = (await records.fail(id, recheckAt ?? new Date(clock.now()))) ?? (await records.find(id));
    // Another process has activated the upload, so its charge remains valid even if the upload has ended since.
    if (ended?.activatedAt) return;
    await releaseCharge(record, reason, AbortSignal.timeout(releaseTimeoutMs));
    if (recheckAt) await storage.remove([uploadKey(id)]);
    else await expiry.cleanUp([id]);
  }

  /** Releases the holds of ended uploads that were never active, and aborts their multipart uploads. */
  async function releaseEnded(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const unreleased = new Set<string>();
    const neverActive = (await records.findAll(ids)).filter(({ activatedAt }) => !activatedAt);
    for (let from = 0; from < neverActive.length; from += maxConcurrent) {
      const signal = AbortSignal.timeout(releaseTimeoutMs);
      const batch = neverActive.slice(from, from + maxConcurrent).map((record) =>
        releaseOne(record, signal).catch((error: unknown) => {
          log.warn({ err: error, upload: record._id }, "an ended upload could not be released; this will be retried");
          unreleased.add(record._id);
        }),
      );
      await Promise.all(batch);
    }
    return unreleased;
  }

  async function releaseOne(record: StoredUpload, signal: AbortSignal): Promise<void> {
    const reason: ReleaseReason =
      record.status === "expired"
        ? { status: "failed", error: "upload_expired" }
        : { status: "cancelled", error: "upload_deleted" };
    await releaseCharge(record, reason, signal);
    // Aborts by key, because the record may lack storage's id of the multipart upload.
    if (record.multipart) await storage.multipart.abort(uploadKey(record._id));
  }

  return { hold, activate, fail, expiry };
}
