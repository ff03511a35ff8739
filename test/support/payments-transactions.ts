import {
  AccountRole,
  type Address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compressTransactionMessageUsingAddressLookupTables,
  createSolanaRpc,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  type Instruction,
  partiallySignTransactionMessageWithSigners,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from "@solana/kit";
import { getTransferCheckedInstruction } from "@solana-program/token";
import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import type { Wallet } from "../../infra/embedded/solana/index.ts";
import { headerOf, payFrom, payloadFrom, paySomethingElse } from "./payments-setup.ts";
import type { SolanaChain } from "./solana.ts";

const computeBudget = "ComputeBudget111111111111111111111111111111" as Address;
const memoProgram = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr" as Address;

const numbered = (kind: number, value: bigint, bytes: 4 | 8): Instruction => {
  const data = new Uint8Array(1 + bytes);
  data[0] = kind;
  const view = new DataView(data.buffer);
  if (bytes === 4) view.setUint32(1, Number(value), true);
  else view.setBigUint64(1, value, true);
  return { programAddress: computeBudget, data };
};

export interface Oddities {
  /** Adds the fee payer to the memo's accounts. */
  readonly smuggled?: boolean;
  /** An additional account of the transfer. */
  readonly reference?: Address;
  readonly units?: bigint;
  readonly microLamports?: bigint;
  /** The payer replaces the fee payer of the quote. */
  readonly payerPaysFee?: boolean;
  /** Adds a first instruction that makes the blockhash a durable nonce. */
  readonly nonce?: boolean;
  /** Additional instructions after all others. */
  readonly more?: readonly ("memo" | "transfer" | "fee")[];
  /** Names the payee's account through a lookup table. */
  readonly hidden?: boolean;
}

const systemProgram = "11111111111111111111111111111111" as Address;
const someAddress = "4uQeVj5tqViQh7yWWGStvkEG1Zmhx6uasJtWCJziofM" as Address;

const advanceNonce = (authority: Address): Instruction => ({
  programAddress: systemProgram,
  accounts: [
    { address: someAddress, role: AccountRole.WRITABLE },
    { address: "SysvarRecentB1ockHashes11111111111111111111" as Address, role: AccountRole.READONLY },
    { address: authority, role: AccountRole.READONLY_SIGNER },
  ],
  data: new Uint8Array([4, 0, 0, 0]),
});

/** A payment built by hand, unlike those of honest clients; without options it is valid. */
export async function oddPayment(chain: SolanaChain, payer: Wallet, required: PaymentRequired, odd: Oddities) {
  const [accepted] = required.accepts as [PaymentRequirements];
  const { feePayer, memo } = accepted.extra as { feePayer: Address; memo: string };
  const transfer = getTransferCheckedInstruction({
    source: await chain.tokenAccountOf(payer.address),
    mint: chain.mint,
    destination: await chain.tokenAccountOf(chain.payTo),
    authority: payer.signer,
    amount: BigInt(accepted.amount),
    decimals: 6,
  });
  const accounts = odd.smuggled ? [{ address: feePayer, role: AccountRole.READONLY_SIGNER }] : [];
  const references = odd.reference ? [{ address: odd.reference, role: AccountRole.READONLY }] : [];
  const written = { programAddress: memoProgram, accounts, data: new TextEncoder().encode(memo) };
  const more = { memo: written, transfer, fee: numbered(3, 5_000_000n, 8) };
  const instructions: Instruction[] = [
    ...(odd.nonce ? [advanceNonce(payer.address)] : []),
    numbered(2, odd.units ?? 20_000n, 4),
    numbered(3, odd.microLamports ?? 1n, 8),
    { ...transfer, accounts: [...transfer.accounts, ...references] },
    written,
    ...(odd.more ?? []).map((each) => more[each]),
  ];
  const tables = odd.hidden ? { [someAddress]: [transfer.accounts[2].address] } : {};
  const { value } = await createSolanaRpc(chain.rpcUrl).getLatestBlockhash().send();
  const lifetime = { blockhash: value.blockhash as Blockhash, lastValidBlockHeight: value.lastValidBlockHeight };
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (tx) => setTransactionMessageFeePayer(odd.payerPaysFee ? payer.address : feePayer, tx),
    (tx) => appendTransactionMessageInstructions(instructions, tx),
    (tx) => setTransactionMessageLifetimeUsingBlockhash(lifetime, tx),
    (tx) => compressTransactionMessageUsingAddressLookupTables(tx, tables),
  );
  const signed = await partiallySignTransactionMessageWithSigners(message);
  const transaction = getBase64EncodedWireTransaction(signed);
  return headerOf({ x402Version: 2, resource: required.resource, accepted, payload: { transaction } });
}

/** Flips one bit of the payer's signature, which is after the fee payer's empty one. */
function corrupted(header: string): string {
  const payload = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
  const bytes = Buffer.from(payload.payload.transaction, "base64");
  bytes.writeUInt8(bytes.readUInt8(1 + 64 + 5) ^ 1, 1 + 64 + 5);
  payload.payload.transaction = bytes.toString("base64");
  return headerOf(payload);
}

export interface Payer {
  readonly chain: SolanaChain;
  readonly payer: Wallet;
}
/** Creates a `PAYMENT-SIGNATURE` for a quote. */
export type Make = (payer: Payer, required: PaymentRequired) => Promise<string>;
/** The fault, and the reason of the refusal. */
export type BadPayment = [string, Make, string];

export const byHand =
  (oddities: Oddities): Make =>
  ({ chain, payer }, required) =>
    oddPayment(chain, payer, required, oddities);

/** A payment that names the quoted terms, but is signed for others. */
export const signedFor =
  (terms: Partial<PaymentRequirements>): Make =>
  ({ chain, payer }, required) =>
    paySomethingElse(chain, payer, required, terms);

/** A payment for the quoted terms that names others. */
export const renamed =
  (terms: Partial<PaymentRequirements>): Make =>
  async ({ chain, payer }, required) => {
    const payload = await payloadFrom(chain, payer, required);
    return headerOf({ ...payload, accepted: { ...payload.accepted, ...terms } });
  };

export const inAnotherAsset: Make = async (all, required) => {
  const { chain, payer } = all;
  const asset = await chain.createMint();
  await chain.setBalance(payer.address, 1_000_000n, asset);
  await chain.setBalance(chain.payTo, 0n, asset);
  return signedFor({ asset })(all, required);
};

export const toAnotherPayee: Make = async (all, required) => {
  const { address: payTo } = await all.chain.wallet("0");
  return signedFor({ payTo })(all, required);
};

export const withAnotherMemo: Make = (all, required) =>
  signedFor({ extra: { feePayer: all.chain.feePayer.address, memo: "forged" } })(all, required);

export const expired: Make = async ({ chain, payer }, required) => {
  const { header } = await payFrom(chain, payer, required);
  chain.advance(151);
  return header;
};

export const withCorruptSignature: Make = async ({ chain, payer }, required) =>
  corrupted((await payFrom(chain, payer, required)).header);

/** A payment from another wallet with this much USDC, or without a token account. */
export const fromWallet =
  (usd: string | undefined): Make =>
  async ({ chain }, required) =>
    (await payFrom(chain, await chain.wallet(usd), required)).header;
