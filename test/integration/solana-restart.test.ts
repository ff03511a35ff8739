import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  appendTransactionMessageInstructions,
  createSolanaRpc,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from "@solana/kit";
import { getCloseAccountInstruction, getTransferInstruction } from "@solana-program/token";
import { expect, onTestFinished, test } from "vitest";
import { newSecret, openWallet } from "../../infra/embedded/solana/index.ts";
import { testChain } from "../support/solana.ts";

test("a closed account does not exist after a restart", async () => {
  const folder = await mkdtemp(join(tmpdir(), "inference-solana-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const secret = newSecret();
  const payer = { secret, usd: "1.00" };
  const stored = { journal: join(folder, "journal"), feePayer: newSecret(), merchant: newSecret(), payer };
  const chain = await testChain({ stored });
  const { signer } = await openWallet(secret);
  const rpc = createSolanaRpc(chain.rpcUrl);
  const source = await chain.tokenAccountOf(signer.address);
  const destination = await chain.tokenAccountOf(chain.payTo);
  const { value } = await rpc.getLatestBlockhash().send();
  const emptied = pipe(
    createTransactionMessage({ version: 0 }),
    (tx) => setTransactionMessageFeePayerSigner(signer, tx),
    (tx) => setTransactionMessageLifetimeUsingBlockhash(value, tx),
    (tx) =>
      appendTransactionMessageInstructions(
        [
          getTransferInstruction({ source, destination, authority: signer, amount: 1_000_000n }),
          getCloseAccountInstruction({ account: source, destination: signer.address, owner: signer }),
        ],
        tx,
      ),
  );
  const wire = getBase64EncodedWireTransaction(await signTransactionMessageWithSigners(emptied));
  await rpc.sendTransaction(wire, { encoding: "base64" }).send();
  expect(await chain.balance(signer.address)).toBeNull();
  await chain.close();

  const again = await testChain({ stored });
  expect(await again.balance(signer.address)).toBeNull();
  expect(await again.balance(again.payTo)).toBe(1_000_000n);
});
