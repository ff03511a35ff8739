import { fileURLToPath } from "node:url";
import { x402Client, x402HTTPClient } from "@x402/core/client";
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from "@x402/core/http";
import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { ExactSvmScheme } from "@x402/svm/exact/client";
import { expect, onTestFinished } from "vitest";
import { systemClock } from "#platform/clock";
import { createLogger } from "#platform/logger";
import { connectMongo } from "#platform/mongo/connection";
import type { Wallet } from "../../infra/embedded/solana/index.ts";
import { startMockOpenai } from "./mock-openai.ts";
import { payFrom, settingsOf } from "./payments-setup.ts";
import { type StoreOptions, type Stores, testStores } from "./servers.ts";
import { type Client, type Environment, type ServiceOptions, startService } from "./service.ts";
import { nanoUsd } from "./service-setup.ts";
import { type SolanaChain, testChain } from "./solana.ts";

export const images = "/v1/images/generations";
export const media = "/v1/media/generations";
/** 0.04 USD per image. */
export const drawing = (more: object = {}) => ({ model: "mock/image", prompt: "A fox", ...more });
/** The arguments of `expectMoney` for one drawing. */
export const paidOnce = { paidMicroUsd: 40_000n, costUsd: "0.04" };
/** 0.10 USD per second. */
export const filming = (more: object = {}) => ({
  model: "mock/video",
  input: { prompt: "A fox", duration: 2, ...more },
});
const catalogFile = fileURLToPath(new URL("chaos-catalog.json", import.meta.url));
const startUsd = "5.00";

/** A chain with a payer, a provider, and the settings of a process that uses both. */
export async function startWorld(options: StoreOptions = {}) {
  const chain = await testChain();
  const provider = await startMockOpenai();
  onTestFinished(() => provider.close());
  const made = { CATALOG_FILE: catalogFile, MOCK_BASE_URL: provider.url, MOCK_API_KEY: "key-of-the-mock" };
  const payer = await chain.wallet(startUsd);
  return { chain, provider, payer, stores: await testStores(options), env: { ...made, ...settingsOf(chain) } };
}

/** The service in this process, accepting payments. */
export async function startPaid(env: Environment = {}, often: ServiceOptions["often"] = []) {
  const world = await startWorld();
  const service = await startService(world.stores, { env: { ...world.env, ...env }, often });
  return { ...world, service };
}

export const post = (
  { baseUrl }: Pick<Client, "baseUrl">,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  path = images,
): Promise<Response> =>
  fetch(`${baseUrl}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

/** The quote of a 402: the same in its body and its header, and not cacheable. */
export async function quoteOf(response: Response): Promise<PaymentRequired> {
  const body = (await response.json()) as PaymentRequired;
  expect([response.status, body]).toEqual([402, expect.objectContaining({ x402Version: 2 })]);
  expect(decodePaymentRequiredHeader(response.headers.get("PAYMENT-REQUIRED") ?? "")).toEqual(body);
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  return body;
}

export const quoted = async (service: Pick<Client, "baseUrl">, body: unknown, path = images) =>
  quoteOf(await post(service, body, {}, path));

/** A payment for the call, signed by the official client and not sent yet. */
export async function payFor(
  { chain, payer }: { chain: SolanaChain; payer: Wallet },
  service: Pick<Client, "baseUrl">,
  body: unknown,
  path = images,
) {
  const { header, memo } = await payFrom(chain, payer, await quoted(service, body, path));
  return { memo, headers: { "PAYMENT-SIGNATURE": header }, account: `x402:${memo}` };
}

/** The official client's whole flow: request, 402, payment, request. */
export async function buy(
  { chain, payer }: { chain: SolanaChain; payer: Wallet },
  service: Pick<Client, "baseUrl">,
  body: unknown,
  path = images,
) {
  const core = new x402Client().register("solana:*", new ExactSvmScheme(payer.signer, { rpcUrl: chain.rpcUrl }));
  const client = new x402HTTPClient(core.setSpendControls(false));
  const asked = await post(service, body, {}, path);
  const required = client.getPaymentRequiredResponse((name) => asked.headers.get(name), await asked.json());
  const headers = client.encodePaymentSignatureHeader(await client.createPaymentPayload(required));
  const response = await post(service, body, headers, path);
  const receipt = client.getPaymentSettleResponse((name) => response.headers.get(name));
  const [{ amount, extra }] = required.accepts as [PaymentRequirements];
  return { response, receipt, amount: BigInt(amount), account: `x402:${String(extra["memo"])}`, headers };
}

const receiptOf = ({ headers }: Response) => decodePaymentResponseHeader(headers.get("PAYMENT-RESPONSE") ?? "");

/** The parts of a response that tests compare. */
export async function answerOf(answering: Promise<Response> | Response) {
  const response = await answering;
  const { status, headers } = response;
  const body = (await response.json()) as {
    readonly data?: readonly { readonly url: string }[];
    readonly files?: readonly { readonly url: string }[];
    readonly error?: { readonly code: string; readonly param: string | null; readonly message: string };
  };
  return {
    status,
    body,
    code: body.error?.code,
    param: body.error?.param,
    requestId: headers.get("x-request-id"),
    costUsd: headers.get("x-xm-cost-usd"),
    replayed: headers.get("idempotent-replayed"),
    receipt: headers.has("PAYMENT-RESPONSE") ? receiptOf(response) : undefined,
    urls: [...(body.data ?? []), ...(body.files ?? [])].map(({ url }) => url),
  };
}

export interface LedgerLine {
  readonly id: string;
  readonly kind: string;
  readonly amount_usd: string;
  readonly request?: { readonly status: string };
}

/** The entries of an account, oldest first. */
export const ledgerOf = async (service: Client, account: string): Promise<LedgerLine[]> =>
  (await service.admin<{ data: LedgerLine[] }>("GET", `/accounts/${account}/ledger?limit=200`)).data.toReversed();

/** The charges of an account that are not zero. */
export const charges = async (service: Client, account: string): Promise<string[]> =>
  (await ledgerOf(service, account))
    .filter(({ kind, amount_usd }) => kind === "usage" && amount_usd !== "0.00")
    .map(({ amount_usd }) => amount_usd);

/**
 * Expects that the payer's loss equals the payee's gain, to the micro-USDC, and that the ledger agrees for every
 * account.
 */
export async function expectMoney(
  { chain, payer }: { chain: SolanaChain; payer: Wallet },
  service: Client,
  accounts: Readonly<Record<string, { readonly paidMicroUsd: bigint; readonly costUsd: string }>>,
): Promise<void> {
  await service.settled();
  const paid = Object.values(accounts).reduce((sum, { paidMicroUsd }) => sum + paidMicroUsd, 0n);
  expect(await chain.balance(chain.payTo)).toBe(paid);
  expect(await chain.balance(payer.address)).toBe(5_000_000n - paid);
  for (const [account, { paidMicroUsd, costUsd }] of Object.entries(accounts)) {
    const { available_usd } = await service.admin<{ available_usd: string }>("GET", `/accounts/${account}`);
    expect(nanoUsd(available_usd)).toBe(paidMicroUsd * 1_000n - nanoUsd(costUsd));
    expect(await charges(service, account)).toEqual(costUsd === "0.00" ? [] : [`-${costUsd}`]);
  }
}

/** Moves all payments into the past. */
export async function agePayments({ MONGODB_URI }: Stores, ms: number): Promise<void> {
  const mongo = await connectMongo(MONGODB_URI, systemClock, createLogger("test", "silent"));
  onTestFinished(() => mongo.close());
  const age = { settledAt: { $subtract: ["$settledAt", ms] } };
  await mongo.connection.collection("quotes").updateMany({ state: "settled" }, [{ $set: age }]);
}
