import { formatUsd, type Money, parseUsd, type ReleaseReason } from "#money";
import type { Clock } from "#platform/clock";
import { unlessAborted } from "#platform/unless-aborted";
import type { StoredUpload } from "./records.ts";
import type { UploadRequest } from "./types.ts";

export type Charges = ReturnType<typeof createCharges>;

const endpoint = "/v1/uploads";
const bytesPerGb = 1n << 30n;

/** The price of storing a number of bytes for 24 hours: exact, rounded once, half up to a nano-USD. */
export function storagePrice(usdPerGbDay: string): (bytes: number) => bigint {
  const nanoUsdPerGb = parseUsd(usdPerGbDay);
  if (nanoUsdPerGb === undefined || nanoUsdPerGb < 0n) throw new RangeError(`not a price: ${usdPerGbDay}`);
  return (bytes) => (BigInt(bytes) * nanoUsdPerGb + bytesPerGb / 2n) / bytesPerGb;
}

/** The storage charge of an upload: held before its first byte, decided once, before the upload becomes active. */
export function createCharges(deps: { money: Money; price: (bytes: number) => bigint; clock: Clock }) {
  const { money, price, clock } = deps;

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
  function hold({ account, keyId, requestId }: UploadRequest, bytes: number, expiresAt: number): Promise<bigint> {
    const nanoUsd = price(bytes);
    return money.holdForCall({
      kind: "storage",
      account,
      requestId,
      key: keyId,
      endpoint,
      maxNanoUsd: nanoUsd,
      minNanoUsd: nanoUsd,
      expiresAt,
      insufficientText: (availableNanoUsd) =>
        `The balance is too low. Storing ${bytes} bytes costs ${formatUsd(nanoUsd)} USD; the balance has ${formatUsd(availableNanoUsd)}.`,
    });
  }

  /** The cost in the ledger; undefined if it was decided elsewhere that this upload is not charged. */
  async function charge(record: StoredUpload, bytes: number, signal: AbortSignal): Promise<bigint | undefined> {
    const { entry } = await money.decide({
      ...callOf(record),
      costNanoUsd: price(bytes),
      status: "succeeded",
      attempts: 0,
      usage: {},
      estimated: false,
      signal,
    });
    return entry.request?.status === "succeeded" ? entry.costNanoUsd : undefined;
  }

  /** Ends the hold and takes the decided cost from the balance. */
  async function apply({ account, requestId, held }: StoredUpload, costNanoUsd: bigint, signal: AbortSignal) {
    await money.apply({ account, requestId, heldNanoUsd: held, costNanoUsd, signal });
  }

  /** For an upload that was never active: ends the hold and refunds what a completion may have charged. */
  async function release(record: StoredUpload, reason: ReleaseReason, signal: AbortSignal): Promise<void> {
    const { entry } = await money.release({ ...callOf(record), signal }, reason);
    if (entry.costNanoUsd === 0n) return;
    // `money` retries the refund by itself; only the wait for it ends with the signal.
    await unlessAborted(signal, () => money.refund(record.account, record.requestId));
  }

  return { hold, charge, apply, release };
}
