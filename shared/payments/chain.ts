import { type Address, type Blockhash, getAddressDecoder, type Signature } from "@solana/kit";
import { findAssociatedTokenPda, TOKEN_PROGRAM_ADDRESS } from "@solana-program/token";
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

const decimals = 6;
/** Of the two account layouts: where what is read here begins. */
const mintDecimalsAt = 44;
const tokenOwnerAt = 32;
const tokenStateAt = 108;
const initialized = 1;

const pageSize = 1_000;
const mostPages = 50;
/** Clocks of validators and ours. */
const slackSeconds = 600;

export type Chain = ReturnType<typeof createChain>;

/** What the network says. Rejects where it says nothing. */
export function createChain(rpc: Rpc, { network, asset, payTo }: X402) {
  const bytesOf = async (account: Address) => {
    const { value } = await rpc.getAccountInfo(account, { encoding: "base64", commitment: "confirmed" }).send();
    return value && { owner: value.owner, data: Buffer.from(value.data[0], "base64") };
  };
  const addressAt = (data: Buffer, at: number) => getAddressDecoder().decode(data.subarray(at, at + 32));

  /** Undefined: payments can arrive. */
  async function misfit(): Promise<Misfit | undefined> {
    const genesis = await rpc.getGenesisHash().send();
    if (!beganWith(network, genesis))
      return `SOLANA_RPC_URL: its network is not ${network}, as X402_NETWORK says, but solana:${genesis.slice(0, 32)}`;
    const mint = await bytesOf(asset);
    // A token of the newer program may take a fee out of what is paid, or take it back.
    if (mint?.owner !== TOKEN_PROGRAM_ADDRESS)
      return `X402_ASSET: ${asset} is not a mint of the token program on ${network}`;
    if (mint.data[mintDecimalsAt] !== decimals) return `X402_ASSET: ${asset} does not have ${decimals} decimals`;
    const [account] = await findAssociatedTokenPda({ owner: payTo, mint: asset, tokenProgram: TOKEN_PROGRAM_ADDRESS });
    const found = await bytesOf(account);
    if (!found && (await bytesOf(payTo))?.owner === TOKEN_PROGRAM_ADDRESS)
      return `X402_PAY_TO: ${payTo} is a token account or a mint; give the wallet that owns it`;
    if (!found || found.data.length <= tokenStateAt)
      return `X402_PAY_TO: ${payTo} has no token account for ${asset}; open it at ${account} first`;
    if (found.data[tokenStateAt] !== initialized) return `X402_PAY_TO: the token account ${account} is frozen`;
    if (addressAt(found.data, tokenOwnerAt) !== payTo)
      return `X402_PAY_TO: the token account ${account} has another owner`;
    return undefined;
  }

  /** Rejects a node that has not seen what another has. */
  async function bySignature(signature: string, seenSlot: bigint): Promise<Landed | undefined> {
    const asked = rpc.getSignatureStatuses([signature as Signature], { searchTransactionHistory: true });
    const { context, value } = await asked.send();
    const [status] = value;
    if (!status && context.slot < seenSlot) throw new Error(`a node of the network is behind: at ${context.slot}`);
    // A fork may still take back what is only processed.
    if (!status || status.confirmationStatus === "processed") return undefined;
    return { signature, failed: status.err !== null, finalized: status.confirmationStatus === "finalized" };
  }

  /** Anybody may write our memo: only the very message that was claimed counts. */
  async function isMessage(signature: Signature, messageHash: string): Promise<boolean> {
    const config = { encoding: "base64", commitment: "confirmed", maxSupportedTransactionVersion: 0 } as const;
    const found = await rpc.getTransaction(signature, config).send();
    if (!found) throw new Error(`a node of the network cannot show ${signature}, which another lists`);
    return messageHashOf(decodeTransaction(found.transaction[0]).messageBytes) === messageHash;
  }

  /** Among what the payer signed, so that nobody else can bury it. Rejects if that is more than is looked through. */
  async function byMemo({ _id: memo, messageHash, payer, createdAt }: Claimed, minContextSlot: bigint) {
    const since = BigInt(Math.floor(createdAt.getTime() / 1_000) - slackSeconds);
    let before: Signature | undefined;
    for (let page = 0; page < mostPages; page++) {
      const config = { limit: pageSize, commitment: "confirmed", minContextSlot, ...(before && { before }) } as const;
      const found = await rpc.getSignaturesForAddress(payer as Address, config).send();
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

  /** The payment that claimed the quote. That it is not there says only a node that has seen this slot. */
  const find = (quote: Claimed, seenSlot = 0n): Promise<Landed | undefined> =>
    quote.signature === undefined ? byMemo(quote, seenSlot) : bySignature(quote.signature, seenSlot);

  const height = (commitment: "processed" | "finalized") => rpc.getBlockHeight({ commitment }).send();

  /** The slot by which the blockhash was over, of what is finalized. Undefined: it is not. */
  async function overSince(blockhash: string): Promise<bigint | undefined> {
    const config = { commitment: "finalized" } as const;
    const { context, value } = await rpc.isBlockhashValid(blockhash as Blockhash, config).send();
    return value ? undefined : context.slot;
  }

  return { misfit, find, height, overSince };
}
