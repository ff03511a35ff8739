import { type Address, getSignatureFromTransaction } from "@solana/kit";
import { type FacilitatorRpcConfig, toFacilitatorSvmSigner } from "@x402/svm";
import { configError } from "#platform/config";
import type { Logger } from "#platform/logger";
import type { Caps, X402 } from "./config.ts";
import type { Facilitator, Outcome } from "./facilitator.ts";
import { decodeTransaction } from "./payment-header.ts";
import type { Rpc } from "./rpc.ts";
import { walletOf } from "./wallet-key.ts";

/** How the packages' signer says that the network simulated it, and it failed. Anything else is the network's silence. */
const simulated = "Simulation failed";
/** What only the account that pays the fee can be the reason of. */
const unfunded = /"(AccountNotFound|InsufficientFundsForFee)"|InsufficientFundsForRent/;

const signatureLamports = 5_000;
/** An account may not have less, unless it has nothing. */
const rentExemptLamports = 890_880;
const fewPayments = 1_000;

/** A payment that fails on chain costs this, too. */
const dearestLamports = ({ maxComputeUnits, maxPriorityFeeMicroLamports, maxRequiredSignatures }: Caps) =>
  signatureLamports * maxRequiredSignatures + Math.ceil((maxComputeUnits * maxPriorityFeeMicroLamports) / 1e6);

/** How many payments are left to pay the fee of. Rejects if none is. */
async function checkFunds(rpc: Rpc, feePayer: Address, caps: Caps, log: Logger): Promise<void> {
  const { value } = await rpc.getBalance(feePayer, { commitment: "confirmed" }).send();
  const payments = Math.floor((Number(value) - rentExemptLamports) / dearestLamports(caps));
  const found = { feePayer, lamports: String(value), payments: Math.max(0, payments) };
  if (payments < 1) throw new Error(`the fee payer ${feePayer} has ${value} lamports: too little for one payment`);
  if (payments < fewPayments) log.warn(found, "the fee payer of x402 has SOL for few payments");
}

/**
 * Settles in this process. The packages' own settling is not used: it does not tell whether anything was sent. Rejects
 * while the fee payer has no SOL.
 */
export async function ownFacilitator({ network, caps, payTo }: X402, key: string, rpc: Rpc, log: Logger) {
  const feePayer = await walletOf(key, "X402_FEE_PAYER_KEY");
  if (feePayer.address === payTo)
    throw configError(
      "X402_FEE_PAYER_KEY: is the key of X402_PAY_TO; give it a wallet of its own, with nothing but SOL",
    );
  await checkFunds(rpc, feePayer.address, caps, log);
  const signer = toFacilitatorSvmSigner(feePayer, { [network]: rpc } as unknown as FacilitatorRpcConfig);

  /** Undefined: the network would take it now. */
  async function fault(transaction: string): Promise<Outcome | undefined> {
    try {
      await signer.simulateTransaction(transaction, network);
      return undefined;
    } catch (error) {
      const reason = error instanceof Error ? error.message : "";
      if (!reason.startsWith(simulated)) return { kind: "unsent" };
      if (!unfunded.test(reason)) return { kind: "refused", reason: "invalid_exact_svm_transaction_simulation_failed" };
      log.error({ feePayer: feePayer.address, reason }, "the fee payer of x402 cannot pay");
      return { kind: "unsent" };
    }
  }

  const facilitator: Facilitator = {
    feePayer: feePayer.address,
    async settle(payment, _, remember) {
      // Quoted before the key was changed.
      if (payment.feePayer !== feePayer.address)
        return { kind: "refused", reason: "invalid_exact_svm_fee_payer_not_managed_by_facilitator" };
      const half = payment.payload.payload["transaction"] as string;
      const found = await fault(half);
      if (found) return found;
      const transaction = await signer.signTransaction(half, feePayer.address, network);
      const signature = getSignatureFromTransaction(decodeTransaction(transaction));
      if (!(await remember(signature))) return { kind: "unsent" };
      try {
        await signer.sendTransaction(transaction, network);
        await signer.confirmTransaction(signature, network);
      } catch (error) {
        return { kind: "unknown", reason: error };
      }
      return { kind: "settled", signature };
    },
  };
  return facilitator;
}
