import type { Base64EncodedWireTransaction, Signature } from "@solana/kit";
import type { Rpc, SentTransaction } from "#payments";
import { type Clock, sleep } from "#platform/clock";

/** What the chain alone says of a transaction, whatever became of any answer. */
type Fate = "landed" | "failed" | "gone" | "open";

const pollMs = 2_000;
const unchecked = { encoding: "base64", skipPreflight: true, maxRetries: 0n } as const;

/**
 * Landed and failed only when it is finalized. Gone only when its last block is: the height is read first, so that the
 * transaction cannot land between the two looks.
 */
async function fateOf(rpc: Rpc, sent: SentTransaction, signal: AbortSignal): Promise<Fate> {
  const height = await rpc.getBlockHeight({ commitment: "finalized" }).send({ abortSignal: signal });
  const asked = rpc.getSignatureStatuses([sent.signature as Signature], { searchTransactionHistory: true });
  const [status] = (await asked.send({ abortSignal: signal })).value;
  if (!status) return height > sent.lastValidBlockHeight ? "gone" : "open";
  if (status.confirmationStatus !== "finalized") return "open";
  return status.err === null ? "landed" : "failed";
}

/** Sends it, again and again, until its fate is known or the time is over. It has one signature, so it lands once. */
export async function seeThrough(
  rpc: Rpc,
  sent: SentTransaction,
  { clock, patienceMs, signal }: { clock: Clock; patienceMs: number; signal: AbortSignal },
): Promise<Fate> {
  const until = clock.now() + patienceMs;
  for (;;) {
    const fate = await fateOf(rpc, sent, signal);
    if (fate !== "open" || clock.now() >= until) return fate;
    // The client sends also what was aborted before.
    signal.throwIfAborted();
    // Whether it was taken is what the next look tells.
    await rpc
      .sendTransaction(sent.transaction as Base64EncodedWireTransaction, unchecked)
      .send({ abortSignal: signal })
      .catch(() => {});
    await sleep(clock, pollMs, signal);
  }
}
