import { type Address, getSignatureFromTransaction, type KeyPairSigner } from "@solana/kit";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { type PaymentRequirements, SettleError } from "@x402/core/types";
import { type FacilitatorRpcConfig, toFacilitatorSvmSigner } from "@x402/svm";
import { configError } from "#platform/config-error";
import type { Logger } from "#platform/logger";
import type { Rpc } from "./chain.ts";
import { isSignature, type SolanaConfig } from "./config.ts";
import { decodeTransaction, type Payment } from "./payment.ts";

export type Outcome =
  | { readonly kind: "settled"; readonly signature: string }
  /** Nothing was sent, and nothing will be. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Nothing was sent: the network did not respond, the fee cannot be paid, or the claim was lost. */
  | { readonly kind: "unsent" }
  /** Only the chain shows the outcome. The reason is for the log. */
  | { readonly kind: "unknown"; readonly reason: unknown };

/** Settles payments that are verified and claimed. `settle` is called once for each. */
export interface Facilitator {
  readonly feePayer: string;
  /** Calls `recordSignature` before it sends, if it knows the signature. Sends nothing unless that resolves to true. */
  settle(
    payment: Payment,
    requirements: PaymentRequirements,
    recordSignature: (signature: string) => Promise<boolean>,
  ): Promise<Outcome>;
}

/** Prefix of the x402 signer's errors when a simulation failed. Other errors mean that the network did not respond. */
const simulationFailed = "Simulation failed";
/** Failures that only the account of the fee payer can cause. */
const unfunded = /"(AccountNotFound|InsufficientFundsForFee)"|InsufficientFundsForRent/;

const signatureLamports = 5_000;
/** The minimum balance of a non-empty account. */
const rentExemptLamports = 890_880;
const warnBelowPayments = 1_000;

/** Rejects if the fee payer cannot pay for a single payment, and warns if it can pay for only a few. */
async function checkFunds(rpc: Rpc, feePayer: Address, { caps }: SolanaConfig, log: Logger): Promise<void> {
  const { value } = await rpc.getBalance(feePayer, { commitment: "confirmed" }).send();
  const priorityLamports = Math.ceil((caps.maxComputeUnits * caps.maxPriorityFeeMicroLamports) / 1e6);
  // A payment that fails on chain also costs this fee.
  const maxFeeLamports = signatureLamports * caps.maxRequiredSignatures + priorityLamports;
  const payments = Math.floor((Number(value) - rentExemptLamports) / maxFeeLamports);
  const found = { feePayer, lamports: String(value), payments: Math.max(0, payments) };
  if (payments < 1) throw new Error(`the fee payer ${feePayer} has ${value} lamports: too little for one payment`);
  if (payments < warnBelowPayments) log.warn(found, "the x402 fee payer has enough SOL for only a few more payments");
}

/**
 * Settles in this process. The x402 packages' own facilitator is not used, because it does not report whether a
 * transaction was sent. Rejects while the fee payer has no SOL.
 */
export async function ownFacilitator(
  solana: SolanaConfig,
  feePayer: KeyPairSigner,
  rpc: Rpc,
  log: Logger,
): Promise<Facilitator> {
  const { network } = solana;
  await checkFunds(rpc, feePayer.address, solana, log);
  const signer = toFacilitatorSvmSigner(feePayer, { [network]: rpc } as unknown as FacilitatorRpcConfig);

  /** Returns undefined if the simulation succeeded. */
  async function simulationFault(transaction: string): Promise<Outcome | undefined> {
    try {
      await signer.simulateTransaction(transaction, network);
      return undefined;
    } catch (error) {
      const reason = error instanceof Error ? error.message : "";
      if (!reason.startsWith(simulationFailed)) return { kind: "unsent" };
      if (!unfunded.test(reason)) return { kind: "refused", reason: "invalid_exact_svm_transaction_simulation_failed" };
      log.error({ feePayer: feePayer.address, reason }, "the x402 fee payer cannot pay the fees");
      return { kind: "unsent" };
    }
  }

  return {
    feePayer: feePayer.address,
    async settle(payment, _, recordSignature) {
      // The fee payer's key was changed after the quote.
      if (payment.feePayer !== feePayer.address)
        return { kind: "refused", reason: "invalid_exact_svm_fee_payer_not_managed_by_facilitator" };
      const unsigned = payment.payload.payload["transaction"] as string;
      const found = await simulationFault(unsigned);
      if (found) return found;
      const transaction = await signer.signTransaction(unsigned, feePayer.address, network);
      const signature = getSignatureFromTransaction(decodeTransaction(transaction));
      if (!(await recordSignature(signature))) return { kind: "unsent" };
      try {
        await signer.sendTransaction(transaction, network);
        await signer.confirmTransaction(signature, network);
      } catch (error) {
        return { kind: "unknown", reason: error };
      }
      return { kind: "settled", signature };
    },
  };
}

const requestMs = 45_000;

/** Reason of a transaction that was sent with an unknown outcome, despite the prefix of failed verifications. */
const sentReason = "invalid_exact_svm_transaction_failed";
const isVerificationFault = (reason: string) => /^invalid_[a-z0-9_]{1,120}$/.test(reason) && reason !== sentReason;

/** Settles remotely; the facilitator pays the fees. It is trusted only when it reports that a payment was settled. */
export async function remoteFacilitator(
  { network, facilitatorToken }: SolanaConfig,
  url: string,
): Promise<Facilitator> {
  const headers = facilitatorToken === undefined ? {} : { Authorization: `Bearer ${facilitatorToken}` };
  const client = new HTTPFacilitatorClient({
    url,
    timeoutMs: requestMs,
    createAuthHeaders: () => Promise.resolve({ verify: headers, settle: headers, supported: headers }),
  });
  const { kinds } = await client.getSupported();
  const kind = kinds.find((each) => each.x402Version === 2 && each.scheme === "exact" && each.network === network);
  const feePayer = kind?.extra?.["feePayer"];
  if (typeof feePayer !== "string")
    throw configError(`X402_FACILITATOR_URL: the facilitator does not support "exact" on ${network}`);

  return {
    feePayer,
    async settle(payment, requirements) {
      const answer = await client.settle(payment.payload, requirements).catch(refusal);
      if (answer?.success && isSignature(answer.transaction)) return { kind: "settled", signature: answer.transaction };
      const reason = answer?.errorReason ?? "settlement_failed";
      const refused = answer?.success === false && answer.transaction === "" && isVerificationFault(reason);
      return refused ? { kind: "refused", reason } : { kind: "unknown", reason };
    },
  };
}

/** A 4xx response may give a reason; after any other error the outcome is unknown. */
function refusal(error: unknown) {
  if (!(error instanceof SettleError) || error.statusCode >= 500) return undefined;
  const { errorReason, transaction } = error;
  return { success: false, transaction, errorReason: typeof errorReason === "string" ? errorReason : undefined };
}
