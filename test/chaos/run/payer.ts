import { x402Client } from "@x402/core/client";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import type { PaymentRequired } from "@x402/core/types";
import { ExactSvmScheme } from "@x402/svm/exact/client";
import { startChain } from "../../../infra/embedded/solana/index.ts";
import { type Network, startWire } from "./network.ts";

/** A Solana chain, and a caller without a key who pays for each call with the official client. */
export interface Payer {
  /** The environment of processes that accept its payments. */
  readonly env: Readonly<Record<string, string>>;
  /** Pays a 402's quote, and returns the account that the payment credits. */
  pay(quote: PaymentRequired): Promise<{ readonly header: string; readonly account: string }>;
  close(): Promise<void>;
}

export async function startPayer(network: Network): Promise<Payer> {
  const chain = await startChain();
  const wire = await startWire(network.host, () => Number(new URL(chain.rpcUrl).port));
  const { signer } = await chain.wallet("100000");
  const client = new x402Client().register("solana:*", new ExactSvmScheme(signer, { rpcUrl: chain.rpcUrl }));
  client.setSpendControls(false);
  return {
    env: {
      X402_NETWORK: chain.network,
      X402_PAY_TO: chain.merchant.address,
      X402_FEE_PAYER_KEY: chain.feePayer.secret,
      SOLANA_RPC_URL: `http://${network.host}:${wire.port}`,
    },
    async pay(quote) {
      const payment = await client.createPaymentPayload(quote);
      const memo = String(payment.accepted.extra["memo"]);
      return { header: encodePaymentSignatureHeader(payment), account: `x402:${memo}` };
    },
    async close() {
      wire.close();
      await chain.close();
    },
  };
}
