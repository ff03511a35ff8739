import {
  AccountRole,
  type Address,
  appendTransactionMessageInstruction,
  createTransactionMessage,
  generateKeyPairSigner,
  getBase64EncodedWireTransaction,
  lamports,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from "@solana/kit";
import type { Chain } from "./chain.ts";

const systemProgram = "11111111111111111111111111111111" as Address;
const transferKind = 2;
const feeLamports = 5_000n;

/** The signed transfer that brings this much SOL, from a wallet made for it alone: no two are the same transaction. */
export async function airdropOf({ svm, blocks }: Chain, to: Address, amount: bigint): Promise<string> {
  const giver = await generateKeyPairSigner();
  svm.airdrop(giver.address, lamports(amount + feeLamports));
  const data = Buffer.alloc(12);
  data.writeUInt32LE(transferKind);
  data.writeBigUInt64LE(amount, 4);
  const { hash: blockhash, lastValidHeight: lastValidBlockHeight } = blocks.latest("processed");
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (tx) => setTransactionMessageFeePayerSigner(giver, tx),
    (tx) => setTransactionMessageLifetimeUsingBlockhash({ blockhash, lastValidBlockHeight }, tx),
    (tx) =>
      appendTransactionMessageInstruction(
        {
          programAddress: systemProgram,
          accounts: [
            { address: giver.address, role: AccountRole.WRITABLE_SIGNER },
            { address: to, role: AccountRole.WRITABLE },
          ],
          data,
        },
        tx,
      ),
  );
  return getBase64EncodedWireTransaction(await signTransactionMessageWithSigners(message));
}
