import { createHash } from "node:crypto";
import { x402Client } from "@x402/core/client";
import {
  decodePaymentRequiredHeader,
  decodePaymentResponseHeader,
  encodePaymentSignatureHeader,
} from "@x402/core/http";
import type { PaymentPayload, PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { ExactSvmScheme } from "@x402/svm/exact/client";
import { expect } from "vitest";
import type { Wallet } from "../../infra/embedded/solana/index.ts";
import type { Money } from "../../shared/money/index.ts";
import {
  createPayments,
  type PaidRequest,
  type Payments,
  paymentsSchema,
  type X402,
} from "../../shared/payments/index.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import type { Mongo } from "../../shared/platform/mongo/connection.ts";
import { createMovableClock, type MovableClock, startMoney } from "./money-setup.ts";
import { migrated } from "./schema.ts";
import { testStores } from "./servers.ts";
import { type SolanaChain, testChain } from "./solana.ts";

export interface Instance {
  readonly payments: Payments;
  readonly x402: X402;
  readonly money: Money;
  readonly mongo: Mongo;
}

export const hashOf = (request: unknown): string => createHash("sha256").update(JSON.stringify(request)).digest("hex");
export const usd = (text: string): bigint => BigInt(Math.round(Number(text) * 1e9));
export const micro = (nanoUsd: bigint): bigint => nanoUsd / 1_000n;

export const settingsOf = (chain: SolanaChain) => ({
  X402_NETWORK: chain.network,
  X402_PAY_TO: chain.payTo,
  SOLANA_RPC_URL: chain.rpcUrl,
  X402_FEE_PAYER_KEY: chain.feePayer.secret,
});

/** Lines are serialized, to find fields that cannot be, and then dropped. */
const unread = { write: () => {} };

/** The connections of one process. They end with the test. */
export async function openPayments(
  uri: string,
  clock: MovableClock,
  settings: Readonly<Record<string, string>>,
): Promise<Instance> {
  const stores = { ...(await testStores()), MONGODB_URI: uri };
  const config = loadConfig({ ...stores, ...settings });
  const { money, mongo } = await startMoney(uri, clock);
  const payments = createPayments({ config, mongo, money, clock, log: createLogger("test", "info", unread) });
  await migrated(mongo, [paymentsSchema]);
  if (!payments.x402) throw new Error("payments are off");
  return { payments, x402: payments.x402, money, mongo };
}

export const priceNanoUsd = usd("0.04");
export const request = { model: "local/image", prompt: "a lighthouse", n: 1 };

const paidRequest: PaidRequest = {
  requestHash: hashOf(request),
  priceNanoUsd,
  resource: { url: "http://localhost/v1/images/generations", description: "An image", mimeType: "application/json" },
};

/** The response to a request without a payment. */
export const quoteRequest = ({ x402 }: Pick<Instance, "x402">, fields: Partial<PaidRequest> = {}) =>
  x402.quote({ ...paidRequest, ...fields });

/** Handles a payment as the API does: looks it up, then settles it or quotes the request. */
export async function settlePayment(
  { x402 }: Pick<Instance, "x402">,
  header: string,
  fields: Partial<PaidRequest> = {},
) {
  const asked = { ...paidRequest, ...fields };
  const found = await x402.find({ header, requestHash: asked.requestHash });
  const settlement = found.kind === "open" ? await x402.settle(found, asked.priceNanoUsd) : found;
  if (settlement.kind === "settled") return settlement;
  const { body } = await x402.quote(asked, settlement.reason);
  return { ...settlement, kind: "refused" as const, body };
}

/** A chain, a database, one process on both, and a payer who has five dollars. */
export async function startPayments(settings: Readonly<Record<string, string>> = {}) {
  const chain = await testChain();
  const { MONGODB_URI: uri } = await testStores();
  const clock = createMovableClock();
  const payer = await chain.wallet("5.00");
  const own = { ...settingsOf(chain), ...settings };
  const first = await openPayments(uri, clock, own);
  const another = () => openPayments(uri, clock, own);
  const quoted = async (fields: Partial<PaidRequest> = {}): Promise<PaymentRequired> => {
    const { body, headers } = await quoteRequest(first, fields);
    expect(decodePaymentRequiredHeader(headers["PAYMENT-REQUIRED"] ?? "")).toEqual(body);
    return body;
  };
  const received = async () => (await chain.balance(chain.payTo)) ?? 0n;
  return {
    ...first,
    uri,
    clock,
    chain,
    payer,
    another,
    quoted,
    received,
    /** A payment for a quote from the official client, not sent yet. */
    pay: async (fields: Partial<PaidRequest> = {}) => payFrom(chain, payer, await quoted(fields)),
    settle: (header: string, fields: Partial<PaidRequest> = {}) => settlePayment(first, header, fields),
  };
}

export type Started = Awaited<ReturnType<typeof startPayments>>;

const clientOf = (chain: SolanaChain, { signer }: Wallet) =>
  new x402Client().setSpendControls(false).register("solana:*", new ExactSvmScheme(signer, { rpcUrl: chain.rpcUrl }));

export const payloadFrom = (chain: SolanaChain, payer: Wallet, required: PaymentRequired): Promise<PaymentPayload> =>
  clientOf(chain, payer).createPaymentPayload(required);

export const headerOf = (payload: PaymentPayload): string => encodePaymentSignatureHeader(payload);

export async function payFrom(chain: SolanaChain, payer: Wallet, required: PaymentRequired) {
  const header = headerOf(await payloadFrom(chain, payer, required));
  const [accepted] = required.accepts as [PaymentRequirements];
  return { header, memo: accepted.extra["memo"] as string, accepted };
}

/** A payment that names the quoted terms, but is signed for others. */
export async function paySomethingElse(
  chain: SolanaChain,
  payer: Wallet,
  required: PaymentRequired,
  other: Partial<PaymentRequirements>,
): Promise<string> {
  const [accepted] = required.accepts as [PaymentRequirements];
  const payload = await payloadFrom(chain, payer, { ...required, accepts: [{ ...accepted, ...other }] });
  return headerOf({ ...payload, accepted });
}

export const receiptOf = ({ headers }: { headers: Readonly<Record<string, string>> }) =>
  decodePaymentResponseHeader(headers["PAYMENT-RESPONSE"] ?? "");

export const quoteDocument = ({ mongo }: Pick<Instance, "mongo">, memo: string) =>
  mongo.connection.collection<{ _id: string; state: string }>("quotes").findOne({ _id: memo });

export const available = async ({ money }: Pick<Instance, "money">, memo: string) =>
  (await money.account(`x402:${memo}`))?.availableNanoUsd;

export const stateOf = async (all: Pick<Instance, "mongo">, memo: string) => (await quoteDocument(all, memo))?.state;

/** Expects that the payment arrived once, with its account and nothing else. */
export async function expectPaid(all: Pick<Started, "received" | "money" | "mongo">, memo: string): Promise<void> {
  expect(await all.received()).toBe(micro(priceNanoUsd));
  expect(await available(all, memo)).toBe(priceNanoUsd);
  expect(await stateOf(all, memo)).toBe("settled");
  expect(await all.money.check()).toMatchObject({ ok: true, accounts: 1 });
}
