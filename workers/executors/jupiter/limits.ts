import { type Address, getBase64Codec, type ReadonlyUint8Array } from "@solana/kit";
import { getTokenDecoder, type Token } from "@solana-program/token";
import type { Rpc } from "#payments";
import type { Signed } from "./signing.ts";
import { tokenPrograms } from "./token-accounts.ts";

export interface Limits {
  readonly wallet: Address;
  /** The wallet's account of the token that is spent, and how much at most. */
  readonly from: { readonly account: Address; readonly most: bigint };
  /** The wallet's account of the token that is bought, and how much at least. */
  readonly to: { readonly account: Address; readonly least: bigint };
  /** For fees and the rent of a new token account. */
  readonly mostLamports: bigint;
}

const tokenBytes = 165;

interface State {
  readonly lamports: bigint;
  readonly owner: string;
  readonly data: ReadonlyUint8Array;
}

/**
 * Runs a signed swap in simulation, and throws unless it does to the wallet what was asked and nothing else: of all the
 * wallet's accounts that it may write to, one is spent from, one is added to, and no right over any is given away. It does
 * not bind a program that behaves otherwise when it is run in earnest: `signFor` lets in none but Jupiter's.
 */
export async function checkEffects(rpc: Rpc, signed: Signed, limits: Limits, signal: AbortSignal): Promise<void> {
  const { writable } = signed;
  const encoding = "base64" as const;
  const earlier = rpc.getMultipleAccounts([...writable], { encoding, commitment: "confirmed" });
  const { value: before, context } = await earlier.send({ abortSignal: signal });
  const simulation = rpc.simulateTransaction(signed.wire, {
    encoding,
    commitment: "processed",
    sigVerify: true,
    // By no node that is behind: what another swap has spent meanwhile counts against this one, never for it.
    minContextSlot: context.slot,
    accounts: { encoding, addresses: [...writable] },
  });
  const { value: run } = await simulation.send({ abortSignal: signal });
  if (run.err !== null) throw new Error(`The swap fails in simulation: ${JSON.stringify(run.err, asText)}`);
  if (!run.accounts) throw new Error("The node does not say what the swap does");
  for (const [n, address] of writable.entries())
    checkAccount(address, stateOf(before[n]), stateOf(run.accounts[n]), limits);
  if (!writable.includes(limits.to.account) || !writable.includes(limits.from.account))
    throw new Error("The swap buys for somebody else");
}

function checkAccount(address: Address, before: State | undefined, after: State | undefined, limits: Limits): void {
  const { wallet, from, to, mostLamports } = limits;
  if (address === wallet) {
    const lost = (before?.lamports ?? 0n) - (after?.lamports ?? 0n);
    if (lost > mostLamports) throw new Error(`The swap costs ${lost} lamports`);
    if (after && after.owner !== before?.owner) throw new Error("The swap gives the wallet away");
    return;
  }
  const had = tokenOf(before);
  const has = tokenOf(after);
  if (address === to.account) {
    if (has?.owner !== wallet || isLent(has)) throw new Error("The swap buys for somebody else");
    const bought = has.amount - (had?.amount ?? 0n);
    if (bought < to.least) throw new Error(`The swap buys ${bought}, less than ${to.least}`);
    return;
  }
  if (had?.owner !== wallet) return;
  if (has?.owner !== wallet || (isLent(has) && !isLent(had))) throw new Error("The swap gives an account away");
  const spent = had.amount - has.amount;
  if (spent > (address === from.account ? from.most : 0n)) throw new Error(`The swap spends ${spent} of ${address}`);
}

const isLent = ({ delegate, closeAuthority }: Token): boolean =>
  delegate.__option === "Some" || closeAuthority.__option === "Some";

type Account = {
  readonly lamports: bigint;
  readonly owner: string;
  readonly data: unknown;
} | null;

function stateOf(account: Account | undefined): State | undefined {
  if (!account || !Array.isArray(account.data)) return undefined;
  const { lamports, owner } = account;
  return { lamports, owner, data: getBase64Codec().encode(String(account.data[0])) };
}

/** Token-2022 begins with the same bytes. */
function tokenOf(state: State | undefined): Token | undefined {
  if (!state || !tokenPrograms.includes(state.owner) || state.data.length < tokenBytes) return undefined;
  return getTokenDecoder().decode(state.data.slice(0, tokenBytes));
}

const asText = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
