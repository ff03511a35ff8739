import { type Address, getBase58Encoder, type Signature } from "@solana/kit";
import { findAssociatedTokenPda, TOKEN_PROGRAM_ADDRESS } from "@solana-program/token";
import type { Rpc } from "./chain.ts";
import { isQuoteMemo } from "./quotes.ts";

const memoPrograms = new Set<string>([
  "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo",
]);

/** The position up to which the transactions of a reference were read, newest first. */
export interface Progress {
  /** Everything up to this transaction was read. */
  readonly until?: string | undefined;
  /** While several pages are read: the first transaction of the newest page, and the last one of the latest page. */
  readonly newest?: string | undefined;
  readonly before?: string | undefined;
  /** The slot of the newest known transaction. */
  readonly slot?: bigint | undefined;
}

/** The token of a top-up's payment, and its recipient. */
export type Expected = Readonly<Record<"reference" | "recipient" | "asset", string>>;

interface TokenBalance {
  readonly accountIndex: number;
  readonly mint: string;
  readonly uiTokenAmount: { readonly amount: string };
}

export type TopupChain = ReturnType<typeof createTopupChain>;

/** Reads payments of top-ups from the network, finalized ones only. Rejects while the network does not respond. */
export function createTopupChain(rpc: Rpc) {
  /** Reads a page of successful transactions that name the reference. Rejects if the node is behind the known slot. */
  async function nextPage({ reference }: Expected, progress: Progress, limit: number) {
    const { until, before, slot } = progress;
    const page = await rpc
      .getSignaturesForAddress(reference as Address, {
        commitment: "finalized",
        limit,
        ...(until !== undefined && { until: until as Signature }),
        ...(before !== undefined && { before: before as Signature }),
        ...(slot !== undefined && { minContextSlot: slot }),
      })
      .send();
    const [first] = page;
    const newest = before === undefined ? (first?.signature ?? until) : progress.newest;
    const seen = before === undefined && first ? first.slot : slot;
    const isComplete = page.length < limit;
    const next: Progress = isComplete
      ? { until: newest, slot: seen }
      : { until, newest, before: page.at(-1)?.signature, slot: seen };
    return { signatures: page.flatMap((each) => (each.err === null ? each.signature : [])), isComplete, next };
  }

  /**
   * Returns the units of the token that the transaction added to the recipient's account. Returns 0 for a transaction
   * that pays an x402 quote: its verification requires the quote's memo, so no payment counts as both.
   */
  async function unitsIn(signature: Signature, { reference, recipient, asset }: Expected): Promise<bigint> {
    const config = { encoding: "json", commitment: "finalized", maxSupportedTransactionVersion: 0 } as const;
    const found = await rpc.getTransaction(signature, config).send();
    if (!found?.meta) throw new Error(`the RPC node has no transaction ${signature}, which it listed`);
    const { meta, transaction } = found;
    const { message } = transaction;
    const { loadedAddresses: loaded } = meta;
    const accounts: string[] = [...message.accountKeys, ...(loaded?.writable ?? []), ...(loaded?.readonly ?? [])];
    if (meta.err !== null || !accounts.includes(reference)) return 0n;
    const memos = message.instructions.filter(({ programIdIndex }) => memoPrograms.has(accounts[programIdIndex] ?? ""));
    if (memos.some(({ data }) => isQuoteMemo(textOf(data)))) return 0n;

    const seeds = { owner: recipient as Address, mint: asset as Address, tokenProgram: TOKEN_PROGRAM_ADDRESS };
    const at = accounts.indexOf((await findAssociatedTokenPda(seeds))[0]);
    const unitsOf = (balances: readonly TokenBalance[] | undefined) =>
      BigInt(
        balances?.find(({ accountIndex, mint }) => accountIndex === at && mint === asset)?.uiTokenAmount.amount ?? 0,
      );
    const units = unitsOf(meta.postTokenBalances) - unitsOf(meta.preTokenBalances);
    return units > 0n ? units : 0n;
  }

  return { nextPage, unitsIn };
}

const textOf = (base58: string) => new TextDecoder().decode(new Uint8Array(getBase58Encoder().encode(base58)));
