import type { Address } from "@solana/kit";

/** A transfer request as in docs.solanapay.com/spec. */
export interface TransferRequest {
  /** The wallet, not its token account. */
  readonly recipient: Address;
  /** Decimal, in whole tokens. */
  readonly amount: string;
  readonly splToken: Address;
  /** The transaction names it among its accounts, so that it can be found. */
  readonly reference: Address;
  readonly label: string;
  readonly message: string;
}

/** Wallets that do not decode a form read a plus sign as one, so spaces are `%20`. */
export function transferRequestUrl({ recipient, splToken, ...request }: TransferRequest): string {
  const { amount, reference, label, message } = request;
  const params = { amount, "spl-token": splToken, reference, label, message };
  const query = Object.entries(params).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `solana:${recipient}?${query.join("&")}`;
}
