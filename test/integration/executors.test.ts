import { expect, test } from "vitest";
import type { SentTransaction } from "../../shared/payments/index.ts";
import { createExecutor } from "../../workers/executors/index.ts";
import { bought, market, received, spent, untouched } from "../support/executors-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";

const done = { kind: "bought", spent, received };

test("a batch is spent to the micro-USDC, and the amount bought is read from the chain", async () => {
  const { execute, has, jupiter } = await market();
  const { execution, sent } = await execute();
  expect(execution).toEqual({ ...done, signature: sent?.signature });
  expect(await has()).toEqual(bought);
  expect(jupiter.requests.map(({ path }) => path)).toEqual(["/swap/v2/build"]);
  expect(jupiter.requests.every(({ key }) => key === "key-of-jupiter")).toBe(true);
});

test("nothing is sent before the transaction is recorded, or if that fails", async () => {
  const { countSent, execute, has } = await market();
  const refuse = () => {
    expect(countSent()).toBe(0);
    return Promise.reject(new Error("another process has the batch"));
  };
  await expect(execute(undefined, refuse)).rejects.toThrow("another process has the batch");
  expect(countSent()).toBe(0);
  expect(await has()).toEqual(untouched);
});

test("after a crash behind the recording the next process sends the same transaction", async () => {
  const { countSent, execute, has, swaps } = await market();
  const death = new AbortController();
  let remembered: SentTransaction | undefined;
  const die = (sent: SentTransaction) => {
    remembered = sent;
    death.abort(new Error("died"));
    return Promise.resolve();
  };
  await expect(execute(undefined, die, death.signal)).rejects.toThrow("died");
  expect(countSent()).toBe(0);
  const { execution } = await execute(remembered);
  expect(execution).toEqual({ ...done, signature: remembered?.signature });
  expect(swaps()).toBe(1);
  expect(await has()).toEqual(bought);
});

test("after a crash behind the sending the next process finds the transaction on chain", async () => {
  const { chain, execute, has, swaps } = await market();
  chain.holdAt("confirmed");
  const first = await execute();
  expect(first.execution).toEqual({ kind: "pending" });
  expect(await has()).toEqual(bought);
  chain.holdAt("finalized");
  expect((await execute(first.sent)).execution).toEqual({ ...done, signature: first.sent?.signature });
  expect(swaps()).toBe(1);
  expect(await has()).toEqual(bought);
});

test.each(["answer", "request"] as const)("the %s to sendTransaction may be lost: it is bought once", async (lose) => {
  const { chain, execute, has, swaps } = await market();
  chain.faults.next("sendTransaction", { lose });
  expect((await execute()).execution).toMatchObject(done);
  expect(swaps()).toBe(1);
  expect(await has()).toEqual(bought);
});

test("a process with another wallet reports the amounts of the earlier wallet's swap", async () => {
  const { chain, config, token, execute } = await market();
  chain.holdAt("confirmed");
  const { sent } = await execute();
  chain.holdAt("finalized");
  const { secret } = await chain.wallet("50.00", { sol: 1n });
  const executor = await createExecutor({
    config: { ...config, BUYBACK_WALLET_KEY: secret },
    clock: createManualClock(),
  });
  const batch = { id: "batch1", token, nanoUsd: 12_000_000_999n, ...(sent && { sent }) };
  const execution = await executor.execute(batch, () => Promise.resolve(), new AbortController().signal);
  await executor.close();
  expect(execution).toEqual({ ...done, signature: sent?.signature });
});

test("USDC itself is not swapped", async () => {
  const { chain, config, jupiter } = await market();
  const executor = await createExecutor({ config, clock: createManualClock() });
  const batch = { id: "batch1", token: chain.mint, nanoUsd: 12_000_000_999n };
  const execution = await executor.execute(batch, () => Promise.resolve(), new AbortController().signal);
  await executor.close();
  expect(execution).toEqual({ kind: "recorded" });
  expect(jupiter.requests).toEqual([]);
});

test("two batches of the same amount are two transactions, each with its batch as memo", async () => {
  const { chain, execute, has } = await market();
  chain.mempool.hold();
  const sent = [];
  for (const id of ["batch1", "batch2"]) sent.push((await execute(undefined, undefined, undefined, id)).sent);
  chain.mempool.release();
  for (const [at, id] of ["batch1", "batch2"].entries()) {
    expect(Buffer.from(sent[at]?.transaction ?? "", "base64").includes(id)).toBe(true);
    const { execution } = await execute(sent[at], undefined, undefined, id);
    expect(execution).toEqual({ ...done, signature: sent[at]?.signature });
  }
  expect(await has()).toEqual({ usdc: untouched.usdc - 2n * spent, token: 2n * received });
});

test("a transaction that lands late is awaited, and no second one is made", async () => {
  const { chain, execute, has, swaps } = await market();
  chain.mempool.hold();
  const first = await execute();
  expect(first.execution).toEqual({ kind: "pending" });
  chain.advance(100);
  expect((await execute(first.sent)).execution).toEqual({ kind: "pending" });
  chain.mempool.release();
  expect((await execute(first.sent)).execution).toMatchObject(done);
  expect(swaps()).toBe(1);
  expect(await has()).toEqual(bought);
});

test("a lost transaction is replaced only when it has expired at finalized commitment", async () => {
  const { chain, execute, has, swaps } = await market();
  chain.mempool.hold();
  const first = await execute();
  chain.mempool.drop();
  chain.holdAt("confirmed");
  chain.advance(400);
  const second = await execute(first.sent);
  expect(second).toEqual({ execution: { kind: "pending" }, sent: first.sent });
  expect(swaps()).toBe(1);
  chain.holdAt("finalized");
  const third = await execute(second.sent);
  expect(third.execution).toMatchObject(done);
  expect(third.sent?.signature).not.toBe(first.sent?.signature);
  expect(swaps()).toBe(2);
  expect(await has()).toEqual(bought);
});

test("a swap that failed on chain is replaced once its failure is finalized", async () => {
  const { chain, wallet, execute, has, swaps } = await market();
  chain.mempool.hold();
  const first = await execute();
  await chain.setBalance(wallet.address, 0n);
  chain.holdAt("confirmed");
  chain.mempool.release();
  expect((await execute(first.sent)).execution).toEqual({ kind: "pending" });
  await chain.setBalance(wallet.address, 50_000_000n);
  chain.holdAt("finalized");
  expect((await execute(first.sent)).execution).toMatchObject(done);
  expect(swaps()).toBe(2);
  expect(await has()).toEqual(bought);
});

test("while the status of a sent transaction cannot be read, no other is made", async () => {
  const { chain, execute, swaps } = await market();
  chain.holdAt("confirmed");
  const first = await execute();
  chain.holdAt("finalized");
  chain.faults.next("getSignatureStatuses", { status: 503 });
  await expect(execute(first.sent)).rejects.toThrow("503");
  expect(swaps()).toBe(1);
});

test("too small a balance and a missing route buy nothing", async () => {
  const small = await market("11.99");
  await expect(small.execute()).rejects.toThrow("fails in simulation");
  expect(await small.has()).toEqual({ usdc: 11_990_000n, token: null });
  const { jupiter, execute, has } = await market();
  jupiter.behavior.status = 400;
  await expect(execute()).rejects.toThrow("Jupiter answered 400");
  expect(await has()).toEqual(untouched);
});
