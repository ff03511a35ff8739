import {
  generateKeyPairSigner,
  getBase58Decoder,
  getBase64Decoder,
  getBase64Encoder,
  getTransactionDecoder,
  lamports,
  type Signature,
  type TransactionMessageBytesBase64,
} from "@solana/kit";
import { expect, test } from "vitest";
import { payFrom, payments, unchecked } from "../support/solana-setup.ts";

const post = async (url: string, body: unknown) => {
  const response = await fetch(url, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) });
  return (await response.json()) as unknown;
};
const asking = (method: string, ...params: unknown[]) => ({ jsonrpc: "2.0", id: method, method, params });

test("jsonParsed shows transfers and memos of a payment", async () => {
  const { chain, payer, rpc, signed } = await payments("5.00");
  const { wire, name } = await signed(40_000n, "quote-7");
  await rpc.sendTransaction(wire, unchecked).send();
  const found = await rpc.getTransaction(name, { encoding: "jsonParsed", maxSupportedTransactionVersion: 0 }).send();
  const { accountKeys, instructions } = found?.transaction.message ?? {};
  expect(accountKeys?.slice(0, 2)).toMatchObject([
    { pubkey: chain.feePayer.address, signer: true, writable: true },
    { pubkey: payer.address, signer: true, writable: false },
  ]);
  const [source, destination] = [await chain.tokenAccountOf(payer.address), await chain.tokenAccountOf(chain.payTo)];
  const info = { source, destination, mint: chain.mint, authority: payer.address };
  expect(instructions).toMatchObject([
    { programId: expect.stringMatching(/^ComputeBudget/) },
    { programId: expect.stringMatching(/^ComputeBudget/) },
    { program: "spl-token", parsed: { type: "transferChecked", info: { ...info, tokenAmount: { amount: "40000" } } } },
    { program: "spl-memo", parsed: "quote-7" },
  ]);
});

test("a wallet's token accounts are found by mint and by program, and shown in each encoding", async () => {
  const { chain, payer, rpc } = await payments("5.00");
  const other = await chain.createMint(9);
  await chain.setBalance(payer.address, 7n, other);
  const [usdc, others] = [await chain.tokenAccountOf(payer.address), await chain.tokenAccountOf(payer.address, other)];
  const owned = async (by: Parameters<typeof rpc.getTokenAccountsByOwner>[1]) =>
    (await rpc.getTokenAccountsByOwner(payer.address, by, { encoding: "jsonParsed" }).send()).value;
  const programId = (await rpc.getAccountInfo(usdc).send()).value?.owner as typeof usdc;
  expect(await owned({ mint: chain.mint })).toMatchObject([
    { pubkey: usdc, account: { data: { parsed: { info: { tokenAmount: { amount: "5000000", decimals: 6 } } } } } },
  ]);
  expect((await owned({ programId })).map(({ pubkey }) => pubkey).toSorted()).toEqual([usdc, others].toSorted());

  const mint = await rpc.getAccountInfo(chain.mint, { encoding: "jsonParsed" }).send();
  expect(mint.value?.data).toMatchObject({ program: "spl-token", parsed: { type: "mint", info: { decimals: 6 } } });
  const nulls = { encoding: "base64", commitment: null, dataSlice: null, minContextSlot: null };
  expect(await post(chain.rpcUrl, asking("getAccountInfo", chain.mint, nulls))).toHaveProperty(
    "result.value.space",
    82,
  );
  const bytes = Buffer.from(
    (await rpc.getAccountInfo(usdc, { encoding: "base64" }).send()).value?.data[0] ?? "",
    "base64",
  );
  const dataSlice = { offset: 32, length: 32 };
  const sliced = await rpc.getAccountInfo(usdc, { encoding: "base64", dataSlice }).send();
  expect(Buffer.from(sliced.value?.data[0] ?? "", "base64").equals(bytes.subarray(32, 64))).toBe(true);
  expect((await rpc.getTokenSupply(other).send()).value).toMatchObject({ decimals: 9 });
});

test("an airdrop is a transaction with a status, and gives SOL", async () => {
  const { chain, rpc } = await payments();
  const funded = await generateKeyPairSigner();
  const least = await rpc.getMinimumBalanceForRentExemption(0n).send();
  const names: Signature[] = [];
  for (const _ of "12") names.push(await rpc.requestAirdrop(funded.address, lamports(1_000_000_000n)).send());
  expect(new Set(names).size).toBe(2);
  expect((await rpc.getSignatureStatuses(names).send()).value).toMatchObject([{ err: null }, { err: null }]);
  expect(chain.lamports(funded.address)).toBe(2_000_000_000n);
  const written = { encoding: "base64", maxSupportedTransactionVersion: 0 } as const;
  const given = await rpc.getTransaction(names[0] as Signature, written).send();
  const bytes = getBase64Encoder().encode(given?.transaction[0] ?? "");
  const message = getBase64Decoder().decode(getTransactionDecoder().decode(bytes).messageBytes);
  expect(given?.meta?.fee).toBe(5_000n);
  expect(await rpc.getFeeForMessage(message as TransactionMessageBytesBase64).send()).toMatchObject({ value: 5_000n });
  const empty = await generateKeyPairSigner();
  await expect(rpc.requestAirdrop(empty.address, lamports(least - 1n)).send()).rejects.toThrow("simulation failed");
  expect(chain.lamports(empty.address)).toBe(0n);
});

test("transactions are base58 by default, and errors have names", async () => {
  const { chain, payer, signed } = await payments();
  const { wire, name } = await signed(1_000n);
  expect(await post(chain.rpcUrl, asking("sendTransaction", wire))).toMatchObject({ error: { code: -32602 } });
  const text = getBase58Decoder().decode(Buffer.from(wire, "base64"));
  expect(await post(chain.rpcUrl, asking("sendTransaction", text))).toMatchObject({ result: name });
  expect(await chain.balance(chain.payTo)).toBe(1_000n);

  const nobody = await chain.wallet();
  const { payload } = await payFrom({ ...chain, feePayer: nobody }, payer, 1_000n);
  const simulated = asking("simulateTransaction", payload.payload["transaction"], { encoding: "base64" });
  expect(await post(chain.rpcUrl, simulated)).toMatchObject({ result: { value: { err: "AccountNotFound" } } });
});

test("single and batched calls are answered with their ids", async () => {
  const { chain } = await payments();
  const [height, health, nothing, broken] = (await post(chain.rpcUrl, [
    asking("getBlockHeight"),
    asking("getHealth"),
    asking("noSuchMethod"),
    { id: 9 },
  ])) as object[];
  expect(height).toMatchObject({ id: "getBlockHeight", result: expect.any(Number) });
  expect(health).toEqual({ jsonrpc: "2.0", id: "getHealth", result: "ok" });
  expect(nothing).toMatchObject({ id: "noSuchMethod", error: { code: -32601 } });
  expect(broken).toMatchObject({ id: 9, error: { code: -32600 } });
  expect(await post(chain.rpcUrl, "{")).toMatchObject({ id: null, error: { code: -32700 } });
  const other = await fetch(chain.rpcUrl);
  expect([other.status, await other.text()]).toEqual([405, expect.stringContaining("POST")]);
  expect((await fetch(chain.rpcUrl, { method: "OPTIONS" })).headers.get("access-control-allow-origin")).toBe("*");
});
