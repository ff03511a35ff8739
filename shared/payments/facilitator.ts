import { getSignatureFromTransaction } from "@solana/kit";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { type PaymentRequirements, SettleError, type SettleResponse } from "@x402/core/types";
import { assertFeePayerIsolated, type FacilitatorRpcConfig, SettlementCache, toFacilitatorSvmSigner } from "@x402/svm";
import { ExactSvmScheme } from "@x402/svm/exact/facilitator";
import { ConfigError } from "#platform/config";
import type { X402 } from "./config.ts";
import { decodeTransaction, type Payment } from "./payment-header.ts";
import type { Rpc } from "./rpc.ts";
import { walletOf } from "./wallet-key.ts";

export type Outcome =
  | { readonly kind: "settled"; readonly signature: string; readonly payer: string }
  /** Nothing was sent, and nothing will be. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Nothing was sent: the network was silent, or the claim was lost before. */
  | { readonly kind: "unsent" }
  /** The chain alone can tell. The reason is for the log. */
  | { readonly kind: "unknown"; readonly reason: unknown };

/** Settles a payment that nobody else is settling, and is asked once for it. */
export interface Facilitator {
  readonly feePayer: string;
  /** `remember` gets the signature before anything is sent, where it is known. Nothing is sent if it says no, or rejects. */
  settle(
    payment: Payment,
    requirements: PaymentRequirements,
    remember: (signature: string) => Promise<boolean>,
  ): Promise<Outcome>;
}

/** Verification ends with one of these. This one does not: the transaction was sent, and its answer did not come. */
const sentReason = "invalid_exact_svm_transaction_failed";
const isVerdict = (reason: string) => reason.startsWith("invalid_") && reason !== sentReason;
/** How the packages' signer says that the network simulated it, and it failed. Anything else is the network's silence. */
const simulated = "Simulation failed";

/** The packages allow the fee payer among a memo's accounts; the specification does not. */
export async function isIsolated({ payload }: Payment, feePayer: string): Promise<boolean> {
  try {
    await assertFeePayerIsolated(decodeTransaction(payload.payload["transaction"] as string), feePayer);
    return true;
  } catch {
    return false;
  }
}

export function createFacilitator(config: X402, rpc: Rpc): Promise<Facilitator> {
  const { facilitator } = config;
  switch (facilitator?.kind) {
    case "own":
      return inProcess(config, facilitator.feePayerKey, rpc);
    case "remote":
      return remote(config, facilitator);
    case undefined:
      throw new ConfigError(
        "The configuration is not complete.\n  X402_FEE_PAYER_KEY or X402_FACILITATOR_URL is missing: one of them settles payments",
      );
  }
}

/** The package verifies. What follows is done here: its own settling does not tell whether anything was sent. */
async function inProcess({ network, caps }: X402, key: string, rpc: Rpc): Promise<Facilitator> {
  const feePayer = await walletOf(key, "X402_FEE_PAYER_KEY");
  const signer = toFacilitatorSvmSigner(feePayer, { [network]: rpc } as unknown as FacilitatorRpcConfig);

  /** Undefined: the payment is good. */
  async function fault({ payload }: Payment, requirements: PaymentRequirements): Promise<Outcome | undefined> {
    let silent = false;
    const simulateTransaction: typeof signer.simulateTransaction = (...ask) =>
      signer.simulateTransaction(...ask).catch((error: unknown) => {
        silent = !(error instanceof Error && error.message.startsWith(simulated));
        throw error;
      });
    const scheme = new ExactSvmScheme({ ...signer, simulateTransaction }, new SettlementCache(), caps);
    const { isValid, invalidReason = "invalid_payment" } = await scheme.verify(payload, requirements);
    if (isValid) return undefined;
    return silent ? { kind: "unsent" } : { kind: "refused", reason: invalidReason };
  }

  return {
    feePayer: feePayer.address,
    async settle(payment, requirements, remember) {
      const found = await fault(payment, requirements);
      if (found) return found;
      const half = payment.payload.payload["transaction"] as string;
      const transaction = await signer.signTransaction(half, feePayer.address, network);
      const signature = getSignatureFromTransaction(decodeTransaction(transaction));
      if (!(await remember(signature))) return { kind: "unsent" };
      try {
        await signer.sendTransaction(transaction, network);
        await signer.confirmTransaction(signature, network);
      } catch (error) {
        return { kind: "unknown", reason: error };
      }
      return { kind: "settled", signature, payer: payment.payer };
    },
  };
}

const requestMs = 45_000;

async function remote({ network }: X402, { url, token }: { url: string; token: string | undefined }) {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const client = new HTTPFacilitatorClient({
    url,
    timeoutMs: requestMs,
    createAuthHeaders: () => Promise.resolve({ verify: headers, settle: headers, supported: headers }),
  });
  const { kinds } = await client.getSupported();
  const kind = kinds.find((each) => each.x402Version === 2 && each.scheme === "exact" && each.network === network);
  const feePayer = kind?.extra?.["feePayer"];
  if (typeof feePayer !== "string")
    throw new ConfigError(
      `The configuration is not complete.\n  X402_FACILITATOR_URL: it does not settle "exact" on ${network}`,
    );

  const facilitator: Facilitator = {
    feePayer,
    async settle(payment, requirements) {
      const answer = await client.settle(payment.payload, requirements).catch(refusal);
      if (answer?.success && isSignature(answer.transaction))
        return { kind: "settled", signature: answer.transaction, payer: answer.payer ?? payment.payer };
      const reason = answer?.errorReason ?? "settlement_failed";
      const verdict = answer?.success === false && answer.transaction === "" && isVerdict(reason);
      return verdict ? { kind: "refused", reason } : { kind: "unknown", reason };
    },
  };
  return facilitator;
}

/** An answer of 4xx may say why; whatever else it is, nobody knows. */
function refusal(
  error: unknown,
): Pick<SettleResponse, "success" | "transaction" | "errorReason" | "payer"> | undefined {
  if (!(error instanceof SettleError) || error.statusCode >= 500) return undefined;
  const { errorReason, transaction } = error;
  return { success: false, transaction: transaction ?? "", ...(errorReason !== undefined && { errorReason }) };
}

const isSignature = (text: string) => /^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(text);
