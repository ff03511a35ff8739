import {
  isSolanaError,
  SOLANA_ERROR__JSON_RPC__SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE as preflightFailure,
  type Signature,
} from "@solana/kit";
import { expect, test } from "vitest";
import { createManualClock } from "../support/manual-clock.ts";
import { payments, unchecked } from "../support/solana-setup.ts";

const whole = { encoding: "json", maxSupportedTransactionVersion: 0 } as const;

test("a transaction is found at a commitment only once its block has reached it", async () => {
  const { chain, rpc, signed } = await payments();
  const { wire, name } = await signed(1_000n);
  const account = await chain.tokenAccountOf(chain.payTo);
  const found = async (commitment: "confirmed" | "finalized") => ({
    whole: (await rpc.getTransaction(name, { ...whole, commitment }).send()) !== null,
    listed: (await rpc.getSignaturesForAddress(account, { commitment }).send()).map(({ signature }) => signature),
  });
  const level = async () => (await rpc.getSignatureStatuses([name]).send()).value[0]?.confirmationStatus;

  expect(await level()).toBeUndefined();
  chain.holdAt("processed");
  expect(await rpc.sendTransaction(wire, unchecked).send()).toBe(name);
  expect(await level()).toBe("processed");
  expect(await found("confirmed")).toEqual({ whole: false, listed: [] });
  chain.holdAt("confirmed");
  expect(await level()).toBe("confirmed");
  expect(await found("confirmed")).toEqual({ whole: true, listed: [name] });
  expect(await found("finalized")).toEqual({ whole: false, listed: [] });
  chain.holdAt("finalized");
  expect(await level()).toBe("finalized");
  expect(await found("finalized")).toEqual({ whole: true, listed: [name] });
});

test("a transaction shows its memo, fee, and what it did to token accounts", async () => {
  const { chain, payer, rpc, signed } = await payments("5.00");
  const { wire, name } = await signed(1_000n, "quote-7");
  await rpc.sendTransaction(wire, unchecked).send();
  const account = await chain.tokenAccountOf(chain.payTo);
  const [listed] = await rpc.getSignaturesForAddress(account).send();
  expect(listed).toMatchObject({ signature: name, memo: "[7] quote-7", err: null });
  const found = await rpc.getTransaction(name, whole).send();
  // Two signatures, and a priority fee that rounds up to one.
  expect(found?.meta).toMatchObject({ err: null, fee: 10_001n });
  const changes = found?.meta?.postTokenBalances?.map((after, n) => ({
    owner: after.owner,
    amount: BigInt(after.uiTokenAmount.amount) - BigInt(found.meta?.preTokenBalances?.[n]?.uiTokenAmount.amount ?? 0),
  }));
  expect(changes).toContainEqual({ owner: chain.payTo, amount: 1_000n });
  expect(changes).toContainEqual({ owner: payer.address, amount: -1_000n });
});

test("lists of signatures are newest first, and are paged by signature", async () => {
  const { chain, rpc, signed } = await payments();
  const names: Signature[] = [];
  for (const memo of ["a", "b", "c"]) {
    const { wire, name } = await signed(1n, memo);
    names.unshift(name);
    await rpc.sendTransaction(wire, unchecked).send();
  }
  const account = await chain.tokenAccountOf(chain.payTo);
  const list = async (config: Parameters<typeof rpc.getSignaturesForAddress>[1]) =>
    (await rpc.getSignaturesForAddress(account, config).send()).map(({ signature }) => signature);
  const [c, b, a] = names as [Signature, Signature, Signature];
  expect(await list({})).toEqual([c, b, a]);
  expect(await list({ limit: 1 })).toEqual([c]);
  expect(await list({ before: c })).toEqual([b, a]);
  expect(await list({ until: a })).toEqual([c, b]);
});

test("a blockhash is valid for 150 blocks, counted at the requested commitment", async () => {
  const { chain, rpc, signed } = await payments();
  const { value } = await rpc.getLatestBlockhash().send();
  const valid = async (commitment: "processed" | "finalized") =>
    (await rpc.isBlockhashValid(value.blockhash, { commitment }).send()).value;
  const { wire, name } = await signed(1_000n);
  chain.holdAt("confirmed");
  chain.advance(150);
  expect(await rpc.getBlockHeight({ commitment: "processed" }).send()).toBe(value.lastValidBlockHeight);
  expect(await valid("processed")).toBe(true);
  chain.advance(1);
  expect(await valid("processed")).toBe(false);
  expect(await valid("finalized")).toBe(true);
  chain.holdAt("finalized");
  expect(await valid("finalized")).toBe(false);

  expect(await rpc.sendTransaction(wire, unchecked).send()).toBe(name);
  expect((await rpc.getSignatureStatuses([name], { searchTransactionHistory: true }).send()).value).toEqual([null]);
  chain.holdAt("processed");
  chain.advance(1);
  const young = (await rpc.getLatestBlockhash({ commitment: "processed" }).send()).value.blockhash;
  expect((await rpc.isBlockhashValid(young, { commitment: "finalized" }).send()).value).toBe(false);
});

test("an old signature is found only in the history", async () => {
  const { chain, rpc, signed } = await payments();
  const { wire, name } = await signed(1_000n);
  await rpc.sendTransaction(wire, unchecked).send();
  chain.advance(301);
  expect((await rpc.getSignatureStatuses([name]).send()).value).toEqual([null]);
  const history = await rpc.getSignatureStatuses([name], { searchTransactionHistory: true }).send();
  expect(history.value).toMatchObject([{ confirmationStatus: "finalized", err: null }]);
});

test("transactions in the mempool land late, fail, or never land", async () => {
  const { chain, payer, rpc, signed } = await payments();
  const send = async (micro: bigint, memo: string) => {
    const { wire, name } = await signed(micro, memo);
    await rpc.sendTransaction(wire, unchecked).send();
    return name;
  };
  const errorOf = async (name: Awaited<ReturnType<typeof send>>) =>
    (await rpc.getSignatureStatuses([name]).send()).value[0]?.err;

  chain.mempool.hold();
  const late = await send(1_000n, "late");
  expect(await errorOf(late)).toBeUndefined();
  chain.mempool.release();
  expect(await errorOf(late)).toBeNull();

  chain.mempool.hold();
  const failing = await send(1_000n, "failing");
  await chain.setBalance(payer.address, 1n);
  chain.mempool.release();
  expect(await errorOf(failing)).toEqual({ InstructionError: [2n, { Custom: 1n }] });

  await chain.setBalance(payer.address, 10_000n);
  chain.mempool.hold();
  const never = await send(1_000n, "never");
  chain.mempool.drop();
  chain.mempool.hold();
  const expired = await send(1_000n, "expired");
  chain.advance(151);
  chain.mempool.release();
  expect(await errorOf(never)).toBeUndefined();
  expect(await errorOf(expired)).toBeUndefined();
  expect(await chain.balance(chain.payTo)).toBe(1_000n);
});

test("with preflight the node reports why it refuses; without it, a bad signature is accepted and dropped", async () => {
  const { chain, rpc, signed } = await payments();
  const { wire, name } = await signed(1_000n);
  const bytes = Buffer.from(wire, "base64");
  bytes[70] = (bytes[70] ?? 0) ^ 1;
  const corrupt = bytes.toString("base64") as typeof wire;
  await expect(rpc.sendTransaction(corrupt, { encoding: "base64" }).send()).rejects.toThrow("signature verification");
  await rpc.sendTransaction(corrupt, unchecked).send();
  expect(await chain.balance(chain.payTo)).toBe(0n);

  await rpc.sendTransaction(wire, { encoding: "base64" }).send();
  const again = await rpc
    .sendTransaction(wire, { encoding: "base64" })
    .send()
    .catch((error: unknown) => error);
  expect(isSolanaError(again, preflightFailure)).toBe(true);
  expect(await rpc.sendTransaction(wire, unchecked).send()).toBe(name);
  expect(await chain.balance(chain.payTo)).toBe(1_000n);
});

test("each fault affects one call", async () => {
  const { chain, rpc, signed } = await payments();
  const { wire, name } = await signed(1_000n);
  const send = () => rpc.sendTransaction(wire, unchecked).send();
  const paid = () => chain.balance(chain.payTo);
  chain.faults.next("sendTransaction", { lose: "request" });
  await expect(send()).rejects.toThrow("fetch failed");
  chain.faults.next("sendTransaction", { status: 429 });
  await expect(send()).rejects.toThrow("429");
  chain.faults.next("sendTransaction", { code: -32005, message: "Node is behind" });
  await expect(send()).rejects.toThrow(/behind|-32005/);
  chain.faults.next("sendTransaction", { answer: name });
  expect(await send()).toBe(name);
  expect(await paid()).toBe(0n);

  const { promise, resolve } = Promise.withResolvers<void>();
  chain.faults.next("sendTransaction", { after: promise });
  const slow = send();
  await expect.poll(paid).toBe(1_000n);
  resolve();
  expect(await slow).toBe(name);
});

test("with a slot time, a block holds any number of transactions", async () => {
  const clock = createManualClock();
  const { chain, rpc, signed } = await payments("5.00", { clock, slotMs: 400 });
  const all = await Promise.all(Array.from({ length: 20 }, (_, n) => signed(1n, `memo-${n}`)));
  const height = await rpc.getBlockHeight().send();
  for (const { wire } of all) await rpc.sendTransaction(wire, unchecked).send();
  expect(await chain.balance(chain.payTo)).toBe(20n);
  expect(await rpc.getBlockHeight().send()).toBe(height);
  clock.advance(400);
  expect(await rpc.getBlockHeight().send()).toBe(height + 1n);
});

test("a chain has the genesis hash of its network", async () => {
  const { chain, rpc } = await payments();
  expect(`solana:${(await rpc.getGenesisHash().send()).slice(0, 32)}`).toBe(chain.network);
});

test("getMultipleAccounts answers null for an account that does not exist", async () => {
  const { chain, rpc } = await payments();
  const nobody = await chain.wallet();
  const all = await rpc.getMultipleAccounts([chain.feePayer.address, nobody.address], { encoding: "base64" }).send();
  expect(all.value).toMatchObject([{ lamports: 10_000_000_000n }, null]);
  const account = await chain.tokenAccountOf(chain.payTo);
  expect((await rpc.getTokenAccountBalance(account).send()).value).toMatchObject({ amount: "0", decimals: 6 });
  await expect(rpc.getTokenAccountBalance(nobody.address).send()).rejects.toThrow("could not find account");
});
