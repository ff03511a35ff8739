import { formatUsd, type Money, type ReleaseReason } from "#money";
import type { Clock } from "#platform/clock";
import { unlessAborted } from "#platform/unless-aborted";
import type { StoredUpload } from "./records.ts";
import type { UploadAsk } from "./types.ts";

export type Charges = ReturnType<typeof createCharges>;

const endpoint = "/v1/uploads";

/** The storage charge of an upload: held before its first byte, decided before it is active, once. */
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

  /** Throws the 402, 403, 429 or 503 to answer. */
  function hold({ account, keyId, requestId }: UploadAsk, bytes: number, expiresAt: number): Promise<bigint> {
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

  /** What stands: undefined if it was decided elsewhere that this upload is not charged. */
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

  /** Ends the hold with what stands. */
  async function apply({ account, requestId, held }: StoredUpload, costNanoUsd: bigint, signal: AbortSignal) {
    await money.apply({ account, requestId, heldNanoUsd: held, costNanoUsd, signal });
  }

  /** Of an upload that never was active: ends the hold, and gives back what a completion had charged already. */
  async function release(record: StoredUpload, reason: ReleaseReason, signal: AbortSignal): Promise<void> {
    const { entry } = await money.release({ ...callOf(record), signal }, reason);
    if (entry.costNanoUsd === 0n) return;
    // It goes on by itself until it is done; here it is waited for no longer than for the rest.
    await unlessAborted(signal, () => money.refund(record.account, record.requestId));
  }

  return { hold, charge, apply, release };
}
