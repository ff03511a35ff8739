import { type Base64EncodedWireTransaction, createSolanaRpc, getSignatureFromTransaction } from "@solana/kit";
import { x402Client } from "@x402/core/client";
import { x402Facilitator } from "@x402/core/facilitator";
import type { PaymentPayload, PaymentRequirements } from "@x402/core/types";
import { decodeTransactionFromPayload, type ExactSvmPayloadV2, toFacilitatorSvmSigner } from "@x402/svm";
import { ExactSvmScheme as PayerScheme } from "@x402/svm/exact/client";
import { ExactSvmScheme as FacilitatorScheme } from "@x402/svm/exact/facilitator";
import type { Wallet } from "../../infra/embedded/solana/index.ts";
import { type SolanaChain, testChain } from "./solana.ts";

/** A chain, and a payer with this much USDC. */
export async function payments(usd = "5.00") {
  const chain = await testChain();
  const payer = await chain.wallet(usd);
  return {
    chain,
    payer,
    rpc: createSolanaRpc(chain.rpcUrl),
    /** A payment that the fee payer has signed as well, as a facilitator sends it. */
    signed: async (micro: bigint, memo?: string) => signedOf(chain, (await payFrom(chain, payer, micro, memo)).payload),
  };
}

/** The chain from the view of both sides of a payment. */
export type Parties = Pick<SolanaChain, "rpcUrl" | "network" | "mint" | "payTo" | "feePayer">;

const signerOf = (chain: Parties) => toFacilitatorSvmSigner(chain.feePayer.signer, { defaultRpcUrl: chain.rpcUrl });

export const facilitatorOf = (chain: Parties) =>
  new x402Facilitator().register(chain.network, new FacilitatorScheme(signerOf(chain)));

export async function payFrom(chain: Parties, payer: Wallet, micro: bigint, memo = "memo-1") {
  const requirements: PaymentRequirements = {
    scheme: "exact",
    network: chain.network,
    asset: chain.mint,
    amount: String(micro),
    payTo: chain.payTo,
    maxTimeoutSeconds: 60,
    extra: { feePayer: chain.feePayer.address, memo, paymentFlow: "upfront" },
  };
  const client = new x402Client().register("solana:*", new PayerScheme(payer.signer, { rpcUrl: chain.rpcUrl }));
  const resource = { url: "http://localhost/v1/images/generations" };
  const payload = await client.createPaymentPayload({ x402Version: 2, resource, accepts: [requirements] });
  return { payload, requirements };
}

async function signedOf(chain: Parties, payload: PaymentPayload) {
  const { transaction } = payload.payload as unknown as ExactSvmPayloadV2;
  const wire = await signerOf(chain).signTransaction(transaction, chain.feePayer.address, chain.network);
  const name = getSignatureFromTransaction(decodeTransactionFromPayload({ transaction: wire }));
  return { wire: wire as Base64EncodedWireTransaction, name };
}

export const unchecked = { encoding: "base64", skipPreflight: true } as const;
