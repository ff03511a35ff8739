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
import { payFrom, payments, unchecked } from "../support/solana-setup.ts";

const post = async (url: string, body: unknown) => {
  const response = await fetch(url, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) });
  return (await response.json()) as unknown;
};
const asking = (method: string, ...params: unknown[]) => ({ jsonrpc: "2.0", id: method, method, params });

test("a transaction lands once, and not after its blockhash has expired", async () => {
  const { chain, rpc, signed } = await payments("5.00");
  const { wire, name } = await signed(40_000n, "quote-7");
  const late = await signed(40_000n, "late");
  for (const _ of "12") expect(await rpc.sendTransaction(wire, unchecked).send()).toBe(name);
  chain.mempool.hold();
  await rpc.sendTransaction(late.wire, unchecked).send();
  chain.advance(151);
  chain.mempool.release();
  expect((await rpc.getSignatureStatuses([late.name]).send()).value).toEqual([null]);
  expect(await chain.balance(chain.payTo)).toBe(40_000n);
});

test("single and batched calls are answered with their ids, and errors have names", async () => {
  const { chain, payer, signed } = await payments();
  const answers = await post(chain.rpcUrl, [asking("getHealth"), asking("noSuchMethod"), { id: 9 }]);
  expect(answers).toMatchObject([
    { id: "getHealth", result: "ok" },
    { id: "noSuchMethod", error: { code: -32601 } },
    { id: 9, error: { code: -32600 } },
  ]);
  expect(await post(chain.rpcUrl, "{")).toMatchObject({ id: null, error: { code: -32700 } });
  expect((await fetch(chain.rpcUrl)).status).toBe(405);
  expect((await fetch(chain.rpcUrl, { method: "OPTIONS" })).headers.get("access-control-allow-origin")).toBe("*");

  const { wire } = await signed(1_000n);
  expect(await post(chain.rpcUrl, asking("sendTransaction", wire))).toMatchObject({ error: { code: -32602 } });
  const { payload } = await payFrom({ ...chain, feePayer: await chain.wallet() }, payer, 1_000n);
  const simulated = asking("simulateTransaction", payload.payload["transaction"], { encoding: "base64" });
  expect(await post(chain.rpcUrl, simulated)).toMatchObject({ result: { value: { err: "AccountNotFound" } } });
});

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
  const instructions = [
    getTransferInstruction({ source, destination, authority: signer, amount: 1_000_000n }),
    getCloseAccountInstruction({ account: source, destination: signer.address, owner: signer }),
  ];
  const { value } = await rpc.getLatestBlockhash().send();
  const emptied = pipe(
    createTransactionMessage({ version: 0 }),
    (tx) => setTransactionMessageFeePayerSigner(signer, tx),
    (tx) => setTransactionMessageLifetimeUsingBlockhash(value, tx),
    (tx) => appendTransactionMessageInstructions(instructions, tx),
  );
  const wire = getBase64EncodedWireTransaction(await signTransactionMessageWithSigners(emptied));
  await rpc.sendTransaction(wire, { encoding: "base64" }).send();
  expect(await chain.balance(signer.address)).toBeNull();
  await chain.close();

  const again = await testChain({ stored });
  expect(await again.balance(signer.address)).toBeNull();
  expect(await again.balance(again.payTo)).toBe(1_000_000n);
});
