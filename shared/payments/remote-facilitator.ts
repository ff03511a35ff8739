import { HTTPFacilitatorClient } from "@x402/core/server";
import { SettleError } from "@x402/core/types";
import { configError } from "#platform/config";
import type { X402 } from "./config.ts";
import type { Facilitator } from "./facilitator.ts";
import { isSignature } from "./network.ts";

const requestMs = 45_000;

/** Verification ends with one of these. This one does not: the transaction was sent, and its answer did not come. */
const sentReason = "invalid_exact_svm_transaction_failed";
const isVerdict = (reason: string) => /^invalid_[a-z0-9_]{1,120}$/.test(reason) && reason !== sentReason;

/** Settles elsewhere, and pays the fees. Trusted for this alone: that what it says was settled is on chain. */
export async function remoteFacilitator({ network }: X402, url: string, token: string | undefined) {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const client = new HTTPFacilitatorClient({
    url,
    timeoutMs: requestMs,
    createAuthHeaders: () => Promise.resolve({ verify: headers, settle: headers, supported: headers }),
  });
  const { kinds } = await client.getSupported();
  const kind = kinds.find((each) => each.x402Version === 2 && each.scheme === "exact" && each.network === network);
  const feePayer = kind?.extra?.["feePayer"];
  if (typeof feePayer !== "string") throw configError(`X402_FACILITATOR_URL: it does not settle "exact" on ${network}`);

  const facilitator: Facilitator = {
    feePayer,
    async settle(payment, requirements) {
      const answer = await client.settle(payment.payload, requirements).catch(refusal);
      if (answer?.success && isSignature(answer.transaction)) return { kind: "settled", signature: answer.transaction };
      const reason = answer?.errorReason ?? "settlement_failed";
      const verdict = answer?.success === false && answer.transaction === "" && isVerdict(reason);
      return verdict ? { kind: "refused", reason } : { kind: "unknown", reason };
    },
  };
  return facilitator;
}

/** An answer of 4xx may say why; whatever else it is, nobody knows. */
function refusal(error: unknown) {
  if (!(error instanceof SettleError) || error.statusCode >= 500) return undefined;
  const { errorReason, transaction } = error;
  return { success: false, transaction, errorReason: typeof errorReason === "string" ? errorReason : undefined };
}
