import { expect, test } from "vitest";
import type { SentTransaction } from "../../shared/payments/index.ts";
import { createExecutor } from "../../workers/executors/index.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { bought, market, received, spent, untouched } from "./executors-setup.ts";

const done = { kind: "bought", spent, received };

test("without Jupiter a buyback is only recorded", async () => {
  const { config } = await market();
  const executor = await createExecutor({
    config: { ...config, BUYBACK_EXECUTOR: "record" },
    clock: createManualClock(),
  });
  const remember = () => Promise.reject(new Error("nothing is sent"));
  const batch = { id: "batch1", token: "-", nanoUsd: 1n };
  expect(await executor.execute(batch, remember, new AbortController().signal)).toEqual({ kind: "recorded" });
});

test("a batch is spent to the micro-USDC, and what was bought is told as it stands on chain", async () => {
  const { execute, has, jupiter } = await market();
  const { execution, sent } = await execute();
  expect(execution).toEqual({ ...done, signature: sent?.signature });
  expect(await has()).toEqual(bought);
  expect(jupiter.requests.map(({ path }) => path)).toEqual(["/swap/v1/quote", "/swap/v1/swap"]);
  expect(jupiter.requests.every(({ key }) => key === "key-of-jupiter")).toBe(true);
});

test("nothing is sent before the transaction is remembered, nor when it cannot be", async () => {
  const { chain, execute, has } = await market();
  const refuse = () => {
    expect(chain.calls.sendTransaction).toBeUndefined();
    return Promise.reject(new Error("another process has the batch"));
  };
  await expect(execute(undefined, refuse)).rejects.toThrow("another process has the batch");
  expect(chain.calls.sendTransaction).toBeUndefined();
  expect(await has()).toEqual(untouched);
});

test("a process that dies after it remembered is followed by one that sends the same transaction", async () => {
  const { chain, execute, has, swaps } = await market();
  const death = new AbortController();
  let remembered: SentTransaction | undefined;
  const die = (sent: SentTransaction) => {
    remembered = sent;
    death.abort(new Error("died"));
    return Promise.resolve();
  };
  await expect(execute(undefined, die, death.signal)).rejects.toThrow("died");
  expect(chain.calls.sendTransaction).toBeUndefined();
  const { execution } = await execute(remembered);
  expect(execution).toEqual({ ...done, signature: remembered?.signature });
  expect(swaps()).toBe(1);
  expect(await has()).toEqual(bought);
});

test("a process that dies after it sent is followed by one that finds the transaction on chain", async () => {
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

test.each(["answer", "request"] as const)("the %s to a sending may be lost: it is bought once", async (lose) => {
  const { chain, execute, has, swaps } = await market();
  chain.faults.next("sendTransaction", { lose });
  expect((await execute()).execution).toMatchObject(done);
  expect(swaps()).toBe(1);
  expect(await has()).toEqual(bought);
});

test("a transaction that lands late is waited for, and no second one is made", async () => {
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

test("a lost transaction is replaced only when it can land no more at finalized commitment", async () => {
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

test("a swap that failed on chain is made anew, once its failure is finalized", async () => {
  const { chain, token, jupiter, execute, has, swaps } = await market();
  chain.mempool.hold();
  const first = await execute();
  await chain.setBalance(jupiter.pool.address, 0n, token);
  chain.holdAt("confirmed");
  chain.mempool.release();
  expect((await execute(first.sent)).execution).toEqual({ kind: "pending" });
  await chain.setBalance(jupiter.pool.address, 10n ** 9n, token);
  chain.holdAt("finalized");
  expect((await execute(first.sent)).execution).toMatchObject(done);
  expect(swaps()).toBe(2);
  expect(await has()).toEqual(bought);
});

test("while the chain cannot be asked about what was sent, nothing else is made", async () => {
  const { chain, execute, swaps } = await market();
  chain.holdAt("confirmed");
  const first = await execute();
  chain.holdAt("finalized");
  chain.faults.next("getSignatureStatuses", { status: 503 });
  await expect(execute(first.sent)).rejects.toThrow("503");
  expect(swaps()).toBe(1);
});

test("a wallet that has too little, and a Jupiter that has no route, buy nothing", async () => {
  const poor = await market("11.99");
  await expect(poor.execute()).rejects.toThrow("fails in simulation");
  expect(await poor.has()).toEqual({ usdc: 11_990_000n, token: null });
  const { jupiter, execute, has } = await market();
  jupiter.behaviour.status = 400;
  await expect(execute()).rejects.toThrow("Jupiter answered 400");
  expect(await has()).toEqual(untouched);
});

test.each(["BUYBACK_WALLET_KEY", "SOLANA_RPC_URL"] as const)("Jupiter does not start without %s", async (name) => {
  const { config } = await market();
  const created = createExecutor({ config: { ...config, [name]: undefined }, clock: createManualClock() });
  await expect(created).rejects.toThrow(`${name} is missing`);
});

test("a key that is none is refused by its name, and not shown", async () => {
  const { config } = await market();
  const wrong = { ...config, BUYBACK_WALLET_KEY: "hunter2hunter2" };
  const failed = await createExecutor({ config: wrong, clock: createManualClock() }).catch((error: Error) => error);
  expect(failed).toMatchObject({ name: "ConfigError", message: expect.stringContaining("BUYBACK_WALLET_KEY") });
  expect(String((failed as Error).stack)).not.toContain("hunter2");
});
