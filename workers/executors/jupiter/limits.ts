import { type Address, getBase64Codec, type ReadonlyUint8Array } from "@solana/kit";
import { getTokenDecoder, TOKEN_PROGRAM_ADDRESS, type Token } from "@solana-program/token";
import type { Rpc } from "#payments";
import type { Signed } from "./signing.ts";

export interface Limits {
  readonly wallet: Address;
  /** The wallet's account of the token that is spent. */
  readonly from: { readonly account: Address; readonly maxSpent: bigint };
  /** The wallet's account of the token that is bought. */
  readonly to: { readonly account: Address; readonly minReceived: bigint };
  /** For fees and the rent of a new token account. */
  readonly maxLamports: bigint;
}

/** The token program and Token-2022. */
export const tokenPrograms: readonly string[] = [TOKEN_PROGRAM_ADDRESS, "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"];
const tokenBytes = 165;

interface State {
  readonly lamports: bigint;
  readonly owner: string;
  readonly data: ReadonlyUint8Array;
}

/**
 * Simulates a signed swap. Rejects unless, of all the wallet's accounts that it may write, it only spends from one and adds
 * to another, and transfers no right over any. A program could behave differently outside a simulation, which is why
 * `signSwap` allows only Jupiter's.
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
    // At least as late as the balances before: what another swap spends in between may fail this one, but not hide its cost.
    minContextSlot: context.slot,
    accounts: { encoding, addresses: [...writable] },
  });
  const { value: run } = await simulation.send({ abortSignal: signal });
  if (run.err !== null) throw new Error(`The swap fails in simulation: ${JSON.stringify(run.err, asText)}`);
  if (!run.accounts) throw new Error("The RPC node does not report the effects of the swap");
  for (const [n, address] of writable.entries())
    checkAccount(address, stateOf(before[n]), stateOf(run.accounts[n]), limits);
  if (!writable.includes(limits.to.account) || !writable.includes(limits.from.account))
    throw new Error("The swap buys for another wallet");
}

function checkAccount(address: Address, before: State | undefined, after: State | undefined, limits: Limits): void {
  const { wallet, from, to, maxLamports } = limits;
  if (address === wallet) {
    const lost = (before?.lamports ?? 0n) - (after?.lamports ?? 0n);
    if (lost > maxLamports) throw new Error(`The swap costs ${lost} lamports`);
    if (after && after.owner !== before?.owner) throw new Error("The swap changes the owner of the wallet");
    return;
  }
  const had = tokenOf(before);
  const has = tokenOf(after);
  if (address === to.account) {
    if (has?.owner !== wallet || isDelegated(has)) throw new Error("The swap buys for another wallet");
    const bought = has.amount - (had?.amount ?? 0n);
    if (bought < to.minReceived) throw new Error(`The swap buys ${bought}, less than ${to.minReceived}`);
    return;
  }
  if (had?.owner !== wallet) return;
  if (has?.owner !== wallet || (isDelegated(has) && !isDelegated(had)))
    throw new Error("The swap transfers rights over an account");
  const spent = had.amount - has.amount;
  if (spent > (address === from.account ? from.maxSpent : 0n))
    throw new Error(`The swap spends ${spent} of ${address}`);
}

const isDelegated = ({ delegate, closeAuthority }: Token): boolean =>
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

/** Accounts of Token-2022 begin with the same bytes. */
function tokenOf(state: State | undefined): Token | undefined {
  if (!state || !tokenPrograms.includes(state.owner) || state.data.length < tokenBytes) return undefined;
  return getTokenDecoder().decode(state.data.slice(0, tokenBytes));
}

const asText = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
