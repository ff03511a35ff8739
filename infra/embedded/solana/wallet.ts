import {
  AccountRole,
  type Address,
  address,
  appendTransactionMessageInstructions,
  assertIsTransactionWithBlockhashLifetime,
  createSolanaRpc,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  type KeyPairSigner,
  pipe,
  type Signature,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from "@solana/kit";
import { getTransferCheckedInstruction } from "@solana-program/token";
import { sleep, systemClock } from "#platform/clock";
import { tokenAccountOf } from "./accounts.ts";

/** Follows the transfer request of Solana Pay: docs.solanapay.com/spec. */

interface TransferRequest {
  readonly recipient: Address;
  /** Decimal, in whole tokens. */
  readonly amount: string;
  readonly splToken: Address;
  readonly references: readonly Address[];
  readonly memo?: string | undefined;
}

const memoProgram = address("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");
const pollMs = 400;
const polls = 100;

/** Throws if the URL is not a request for a token. */
export function parseTransferRequest(url: string): TransferRequest {
  const { protocol, pathname, searchParams } = new URL(url);
  const required = (name: string): string => {
    const value = searchParams.get(name);
    if (value === null) throw new Error(`${url} has no ${name}.`);
    return value;
  };
  if (protocol !== "solana:") throw new Error(`${url} is not a transfer request.`);
  return {
    recipient: address(pathname),
    amount: required("amount"),
    splToken: address(required("spl-token")),
    references: searchParams.getAll("reference").map((each) => address(each)),
    memo: searchParams.get("memo") ?? undefined,
  };
}

/** Signs the transfer and sends it. Resolves to its signature once it is confirmed. */
export async function payTransferRequest(
  { recipient, amount, splToken: mint, references, memo }: TransferRequest,
  { rpcUrl, signer }: { readonly rpcUrl: string; readonly signer: KeyPairSigner },
): Promise<Signature> {
  const rpc = createSolanaRpc(rpcUrl);
  const { decimals } = (await rpc.getTokenSupply(mint).send()).value;
  const { value: lifetime } = await rpc.getLatestBlockhash().send();
  const transfer = getTransferCheckedInstruction({
    source: await tokenAccountOf(mint, signer.address),
    mint,
    destination: await tokenAccountOf(mint, recipient),
    authority: signer,
    amount: unitsOf(amount, decimals),
    decimals,
  });
  const named = references.map((each) => ({ address: each, role: AccountRole.READONLY }) as const);
  const written = { programAddress: memoProgram, data: new TextEncoder().encode(memo) };
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (tx) => setTransactionMessageFeePayerSigner(signer, tx),
    (tx) => setTransactionMessageLifetimeUsingBlockhash(lifetime, tx),
    (tx) => appendTransactionMessageInstructions(memo === undefined ? [] : [written], tx),
    (tx) => appendTransactionMessageInstructions([{ ...transfer, accounts: [...transfer.accounts, ...named] }], tx),
  );
  const signed = await signTransactionMessageWithSigners(message);
  assertIsTransactionWithBlockhashLifetime(signed);
  const signature = getSignatureFromTransaction(signed);
  await rpc.sendTransaction(getBase64EncodedWireTransaction(signed), { encoding: "base64" }).send();
  for (let poll = 0; poll < polls; poll++) {
    const [status] = (await rpc.getSignatureStatuses([signature]).send()).value;
    if (status?.err) throw new Error(`${signature} failed: ${JSON.stringify(status.err)}`);
    if (status && status.confirmationStatus !== "processed") return signature;
    await sleep(systemClock, pollMs);
  }
  throw new Error(`${signature} was not confirmed.`);
}

/** Converts "1.5" to 1_500_000n for a token with six decimals. */
function unitsOf(amount: string, decimals: number): bigint {
  const [, whole, fraction = ""] = /^(\d+)(?:[.](\d+))?$/.exec(amount) ?? [];
  if (whole === undefined || fraction.length > decimals) throw new Error(`${amount} is not an amount of this token.`);
  return BigInt(whole + fraction.padEnd(decimals, "0"));
}
