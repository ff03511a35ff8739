import { type Address, type Blockhash, getAddressDecoder, type Signature } from "@solana/kit";
import { findAssociatedTokenPda } from "@solana-program/token";
import type { X402 } from "./config.ts";
import { beganWith } from "./network.ts";
import { decodeTransaction, messageHashOf } from "./payment-header.ts";
import type { Claimed } from "./quotes.ts";
import type { Rpc } from "./rpc.ts";

/** A payment as it stands on chain. */
export interface Landed {
  readonly signature: string;
  /** Nothing moved. */
  readonly failed: boolean;
  readonly finalized: boolean;
}

/** Why payments cannot be taken, in a line for the operator. */
export type Misfit = string;

const programs = {
  token: "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
  token2022: "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",
} as Readonly<Record<string, string>>;
const decimals = 6;
/** Of the two account layouts: where what is read here begins. */
const mintDecimalsAt = 44;
const tokenOwnerAt = 32;
const tokenStateAt = 108;
const initialized = 1;

const pageSize = 1_000;
const mostPages = 50;
/** Clocks of validators and ours, and what a payer's blockhash is older than its claim. */
const slackSeconds = 600;

export type Chain = ReturnType<typeof createChain>;

/** What the network says. Rejects where it says nothing. */
export function createChain(rpc: Rpc, { network, asset, payTo }: X402) {
  const bytesOf = async (account: Address) => {
    const { value } = await rpc.getAccountInfo(account, { encoding: "base64", commitment: "confirmed" }).send();
    return value && { owner: value.owner, data: Buffer.from(value.data[0], "base64") };
  };
  const addressAt = (data: Buffer, at: number) => getAddressDecoder().decode(data.subarray(at, at + 32));

  async function tokenAccount(): Promise<Address | Misfit> {
    const mint = await bytesOf(asset);
    const tokenProgram = Object.values(programs).find((program) => program === mint?.owner) as Address | undefined;
    if (!mint || !tokenProgram) return `X402_ASSET: ${asset} is not a mint on ${network}`;
    if (mint.data[mintDecimalsAt] !== decimals) return `X402_ASSET: ${asset} does not have ${decimals} decimals`;
    const [found] = await findAssociatedTokenPda({ owner: payTo, mint: asset, tokenProgram });
    return found;
  }

  /** Undefined: payments can arrive. */
  async function misfit(): Promise<Misfit | undefined> {
    const genesis = await rpc.getGenesisHash().send();
    if (!beganWith(network, genesis)) return `SOLANA_RPC_URL: its network is not ${network}`;
    const account = await tokenAccount();
    if (account.includes(" ")) return account;
    const found = await bytesOf(account as Address);
    if (!found || found.data.length <= tokenStateAt)
      return `X402_PAY_TO: ${payTo} has no token account for ${asset}; open it at ${account} first`;
    if (found.data[tokenStateAt] !== initialized) return `X402_PAY_TO: the token account ${account} is frozen`;
    if (addressAt(found.data, tokenOwnerAt) !== payTo)
      return `X402_PAY_TO: the token account ${account} has another owner`;
    return undefined;
  }

  async function bySignature(signature: string): Promise<Landed | undefined> {
    const asked = rpc.getSignatureStatuses([signature as Signature], { searchTransactionHistory: true });
    const [status] = (await asked.send()).value;
    // A fork may still take back what is only processed.
    if (!status || status.confirmationStatus === "processed") return undefined;
    return { signature, failed: status.err !== null, finalized: status.confirmationStatus === "finalized" };
  }

  /** Anybody may write our memo: only the very message that was claimed counts. */
  async function isMessage(signature: Signature, messageHash: string): Promise<boolean> {
    const config = { encoding: "base64", commitment: "confirmed", maxSupportedTransactionVersion: 0 } as const;
    const found = await rpc.getTransaction(signature, config).send();
    return found !== null && messageHashOf(decodeTransaction(found.transaction[0]).messageBytes) === messageHash;
  }

  /** Rejects if more has come in since than is looked through. */
  async function byMemo({ _id: memo, messageHash, claimedAt }: Claimed): Promise<Landed | undefined> {
    const account = await tokenAccount();
    if (account.includes(" ")) throw new Error(account);
    const since = BigInt(Math.floor((claimedAt?.getTime() ?? 0) / 1_000) - slackSeconds);
    let before: Signature | undefined;
    for (let page = 0; page < mostPages; page++) {
      const config = { limit: pageSize, commitment: "confirmed", ...(before && { before }) } as const;
      const found = await rpc.getSignaturesForAddress(account as Address, config).send();
      for (const { signature, err, memo: written, confirmationStatus, blockTime } of found) {
        if (blockTime !== null && blockTime < since) return undefined;
        if (!written?.includes(memo) || !(await isMessage(signature, messageHash))) continue;
        return { signature, failed: err !== null, finalized: confirmationStatus === "finalized" };
      }
      before = found.at(-1)?.signature;
      if (found.length < pageSize) return undefined;
    }
    throw new Error(`the payment ${memo} was not found among ${mostPages * pageSize} transactions`);
  }

  /** The payment that claimed the quote. */
  const find = (quote: Claimed): Promise<Landed | undefined> =>
    quote.signature === undefined ? byMemo(quote) : bySignature(quote.signature);

  const height = (commitment: "processed" | "finalized") => rpc.getBlockHeight({ commitment }).send();

  async function isBlockhashOver(blockhash: string): Promise<boolean> {
    const config = { commitment: "finalized" } as const;
    return !(await rpc.isBlockhashValid(blockhash as Blockhash, config).send()).value;
  }

  return { misfit, find, height, isBlockhashOver };
}
