import type { Wallet } from "../../infra/embedded/solana/index.ts";
import { parseTransferRequest, payTransferRequest } from "../../infra/embedded/solana/wallet.ts";
import type { Money } from "../../shared/money/index.ts";
import { type Instance, startPayments } from "./payments-setup.ts";
import { type Client, eventually } from "./service.ts";
import type { SolanaChain } from "./solana.ts";

/** A wallet's changes to the request that it pays. */
export type Changes = Partial<ReturnType<typeof parseTransferRequest>>;

/** Pays a transfer request as any wallet does. Resolves with the transaction's signature. */
export const payUrl = (
  { rpcUrl }: Pick<SolanaChain, "rpcUrl">,
  { signer }: Wallet,
  url: string,
  changes: Changes = {},
) => payTransferRequest({ ...parseTransferRequest(url), ...changes }, { rpcUrl, signer });

function topupsOf({ payments }: Pick<Instance, "payments">) {
  if (!payments.topups) throw new Error("payments are off");
  return payments.topups;
}

/** A chain, a payer who has fifty dollars and SOL, and the accounts that are topped up. */
export async function startTopups() {
  const all = await startPayments();
  const { money, chain, clock } = all;
  const wallet = await chain.wallet("50.00", { sol: 10n });
  const account = async () => (await money.createAccount({ name: "test" })).id;
  const topups = topupsOf(all);
  return {
    ...all,
    topups,
    wallet,
    account,
    pay: (topup: { readonly url: string }, changes?: Changes) => payUrl(chain, wallet, topup.url, changes),
    /** Runs the job when all top-ups are due. */
    async run({ payments } = all as Pick<Instance, "payments">) {
      clock.later(60_000);
      return topupsOf({ payments }).creditArrived(new AbortController().signal);
    },
  };
}

export const availableOf = async (money: Money, account: string) => (await money.account(account))?.availableNanoUsd;

/** The fields of a top-up, or of a refusal, that tests read. */
export interface TopupBody {
  readonly id: string;
  readonly status: string;
  readonly solana_pay_url: string;
  readonly received_usd: string;
  readonly transaction: string | null;
  readonly error: { readonly code: string; readonly param: string | null };
}

export async function callTopups({ baseUrl }: Pick<Client, "baseUrl">, key: string, path = "", body?: unknown) {
  const response = await fetch(`${baseUrl}/v1/topups${path}`, {
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as TopupBody };
}

/** A top-up, and a new key of the account that may request one. */
export async function askTopup(service: Client, account: string, usd: string) {
  const { key } = await service.admin<{ key: string }>("POST", `/accounts/${account}/keys`, { scopes: ["manage"] });
  const { status, body: topup } = await callTopups(service, key, "", { amount_usd: usd });
  if (status !== 201) throw new Error(`${status} ${JSON.stringify(topup)}`);
  return { key, topup };
}

/** Resolves once the top-up is credited. */
export const completed = (service: Pick<Client, "baseUrl">, key: string, id: string): Promise<TopupBody> =>
  eventually(async () => {
    const { body } = await callTopups(service, key, `/${id}`);
    return body.status === "completed" ? body : undefined;
  });
