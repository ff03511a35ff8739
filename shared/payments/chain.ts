import {
  type Address,
  type Blockhash,
  createDefaultRpcTransport,
  createSolanaRpcFromTransport,
  getAddressDecoder,
  type RpcTransport,
  type Signature,
} from "@solana/kit";
import { findAssociatedTokenPda, TOKEN_PROGRAM_ADDRESS } from "@solana-program/token";
import { beganWith, type SolanaConfig, withoutPassword } from "./config.ts";
import { decodeTransaction, messageHashOf } from "./payment.ts";
import type { ClaimedQuote } from "./quotes.ts";

/** Far below the lease of a claim, so that its holder ends in time. */
const rpcTimeoutMs = 8_000;

/** Every call has a timeout. Throws `ConfigError` for an address that contains a password. */
export function connectRpc(url: string) {
  const send = createDefaultRpcTransport({ url: withoutPassword(url, "SOLANA_RPC_URL") });
  const transport: RpcTransport = (request) => {
    const timeout = AbortSignal.timeout(rpcTimeoutMs);
    return send({ ...request, signal: request.signal ? AbortSignal.any([request.signal, timeout]) : timeout });
  };
  return createSolanaRpcFromTransport(transport);
}

export type Rpc = ReturnType<typeof connectRpc>;

const decimals = 6;
/** Offsets in the layouts of mints and token accounts. */
const mintDecimalsAt = 44;
const tokenOwnerAt = 32;
const tokenStateAt = 108;
const initialized = 1;

const pageSize = 1_000;
const maxPages = 50;
/** The clocks of validators may differ from this machine's. */
const slackSeconds = 600;

export type Chain = ReturnType<typeof createChain>;

/** Reads from the network. Rejects while the network does not respond. */
export function createChain(rpc: Rpc, { network, asset, payTo }: SolanaConfig) {
  const bytesOf = async (account: Address) => {
    const { value } = await rpc.getAccountInfo(account, { encoding: "base64", commitment: "confirmed" }).send();
    return value && { owner: value.owner, data: Buffer.from(value.data[0], "base64") };
  };
  const addressAt = (data: Buffer, at: number) => getAddressDecoder().decode(data.subarray(at, at + 32));

  /** Returns, for the operator, the reason why payments cannot arrive, or undefined if they can. */
  async function configFault(): Promise<string | undefined> {
    const genesis = await rpc.getGenesisHash().send();
    if (!beganWith(network, genesis))
      return `SOLANA_RPC_URL: its network is not ${network}, as X402_NETWORK says, but solana:${genesis.slice(0, 32)}`;
    const mint = await bytesOf(asset);
    // A token of the newer program may deduct a fee from a payment, or take it back.
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

  /** Rejects if the node is behind the given slot. */
  async function bySignature(signature: string, seenSlot: bigint) {
    const request = rpc.getSignatureStatuses([signature as Signature], { searchTransactionHistory: true });
    const { context, value } = await request.send();
    const [status] = value;
    if (!status && context.slot < seenSlot) throw new Error(`the RPC node is behind, at slot ${context.slot}`);
    // A fork may still drop a transaction that is only processed.
    if (!status || status.confirmationStatus === "processed") return undefined;
    return { signature, failed: status.err !== null, finalized: status.confirmationStatus === "finalized" };
  }

  /** Anyone may write this memo, so only the message that claimed the quote counts. */
  async function isMessage(signature: Signature, messageHash: string): Promise<boolean> {
    const config = { encoding: "base64", commitment: "confirmed", maxSupportedTransactionVersion: 0 } as const;
    const found = await rpc.getTransaction(signature, config).send();
    if (!found) throw new Error(`the RPC node has no transaction ${signature}, which it listed`);
    return messageHashOf(decodeTransaction(found.transaction[0]).messageBytes) === messageHash;
  }

  /**
   * Searches the transactions that the payer signed, so that nobody else can hide the payment among other transactions.
   * Rejects after `maxPages`.
   */
  async function byMemo({ _id: memo, messageHash, payer, createdAt }: ClaimedQuote, minContextSlot: bigint) {
    const since = BigInt(Math.floor(createdAt.getTime() / 1_000) - slackSeconds);
    let before: Signature | undefined;
    for (let page = 0; page < maxPages; page++) {
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
    throw new Error(`the payment ${memo} was not found among ${maxPages * pageSize} transactions`);
  }

  /**
   * Finds the payment that claimed the quote, if it is in a block. Nothing was transferred if its transaction failed.
   * Its absence is conclusive only from a node that has seen this slot.
   */
  const find = (quote: ClaimedQuote, seenSlot = 0n) =>
    quote.signature === undefined ? byMemo(quote, seenSlot) : bySignature(quote.signature, seenSlot);

  const height = (commitment: "processed" | "finalized") => rpc.getBlockHeight({ commitment }).send();

  /**
   * Returns a finalized slot at which the payment's blockhash had expired, or undefined if it has not. The height is
   * read first: a transaction that is not found after the height was passed can never land.
   */
  async function expiredSince({ blockhash, overAtHeight }: ClaimedQuote): Promise<bigint | undefined> {
    if (overAtHeight === undefined || (await height("finalized")) <= overAtHeight) return undefined;
    const config = { commitment: "finalized" } as const;
    const { context, value } = await rpc.isBlockhashValid(blockhash as Blockhash, config).send();
    return value ? undefined : context.slot;
  }

  return { configFault, find, height, expiredSince };
}
