import { expect, test } from "vitest";
import { brokenWire, type Command } from "../support/money-proxy.ts";
import {
  available,
  expectPaid,
  type Instance,
  micro,
  openPayments,
  payFrom,
  priceNanoUsd,
  quoteRequest,
  receiptOf,
  type Started,
  settingsOf,
  settlePayment,
  startPayments,
  stateOf,
} from "../support/payments-setup.ts";
import { eventually } from "../support/service.ts";

const leaseMs = 60_000;
const never = new Promise<never>(() => {});

/** Sends the payment to a process that will die; its response is ignored. */
function abandon(instance: Pick<Instance, "x402">, header: string): void {
  settlePayment(instance, header).catch(() => undefined);
}

/** A process that loses MongoDB, starting with the command that `isLost` selects. */
async function doomed({ uri, clock, chain }: Started, isLost: (command: Command) => boolean) {
  const state = { isDead: false };
  const wire = await brokenWire(uri, (command) => {
    state.isDead ||= isLost(command);
    return state.isDead ? "lose the request" : "pass";
  });
  return { ...(await openPayments(wire, clock, settingsOf(chain))), isDead: async () => state.isDead };
}

/** The error of a call, whenever it comes. */
const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

/** Sends a payment of unknown outcome, and waits until its caller has given up. The lease is over by then. */
async function giveUp(all: Started, header: string, memo: string): Promise<void> {
  const ended = failureOf(all.settle(header));
  await eventually(async () => (await stateOf(all, memo)) === "unknown");
  all.clock.later(leaseMs);
  // From here on only the test looks the payment up.
  expect(await ended).toMatchObject({ status: 503 });
}

/** A payment sent by a process that dies while it waits for the answer to this call. */
async function killedAt(all: Started, method: string) {
  const { calls, faults } = all.chain;
  // It must not go on when its call has timed out.
  const victim = await doomed(all, () => calls[method] !== undefined);
  const payment = await all.pay();
  faults.next(method, { after: never });
  abandon(victim, payment.header);
  await eventually(async () => calls[method] === 1);
  return payment;
}

async function expectSettled(all: Started, memo: string, settlement: Awaited<ReturnType<typeof settlePayment>>) {
  expect(settlement).toMatchObject({ kind: "settled", account: `x402:${memo}` });
  expect(all.chain.calls["sendTransaction"]).toBe(1);
  await expectPaid(all, memo);
}

/** Waits until nothing sent before can land: the lease, a look-up that records the height, and the blocks after it. */
async function waitOut({ x402, clock, chain }: Started) {
  clock.later(leaseMs);
  await x402.reconcile();
  chain.advance(400);
  clock.later(2_000);
}

test("the answer to sendTransaction is lost: the payment is found on chain and settled", async () => {
  const all = await startPayments();
  const { header, memo } = await all.pay();
  all.chain.faults.next("sendTransaction", { lose: "answer" });
  const settlement = await all.settle(header);
  await expectSettled(all, memo, settlement);
  expect(receiptOf(settlement).transaction).toMatch(/^\w{64,88}$/);
});

test("sendTransaction never reaches the network: the quote opens again only when the payment can no longer land", async () => {
  const all = await startPayments();
  const { quoted, chain, payer, clock, x402, received } = all;
  const required = await quoted();
  const { header, memo } = await payFrom(chain, payer, required);
  chain.faults.next("sendTransaction", { lose: "request" });
  await giveUp(all, header, memo);
  clock.later(2_000);
  await x402.reconcile();
  expect(await stateOf(all, memo)).toBe("unknown");
  chain.advance(151);
  clock.later(2_000);
  // Expiry according to the newest block is not enough: a lagging node may still have it.
  expect(await x402.reconcile()).toEqual({ settled: 0, reopened: 0, unknown: 1 });
  chain.advance(100);
  clock.later(2_000);
  expect(await x402.reconcile()).toEqual({ settled: 0, reopened: 1, unknown: 0 });
  expect(await stateOf(all, memo)).toBe("open");
  expect(await all.settle(header)).toMatchObject({ kind: "refused" });
  const again = await payFrom(chain, payer, required);
  expect(again.memo).toBe(memo);
  expect(await all.settle(again.header)).toMatchObject({ kind: "settled", account: `x402:${memo}` });
  expect(await received()).toBe(micro(priceNanoUsd));
});

test("a payment that lands after the caller gave up is settled", async () => {
  const all = await startPayments();
  const { header, memo } = await all.pay();
  all.chain.mempool.hold();
  all.chain.faults.next("sendTransaction", { lose: "answer" });
  await giveUp(all, header, memo);
  all.clock.later(2_000);
  await all.x402.reconcile();
  expect(await stateOf(all, memo)).toBe("unknown");
  all.chain.mempool.release();
  all.clock.later(2_000);
  expect(await all.x402.reconcile()).toMatchObject({ settled: 1 });
  await expectSettled(all, memo, await all.settle(header));
});

test("a payment in an unconfirmed block is not settled", async () => {
  const all = await startPayments();
  const { header, memo } = await all.pay();
  all.chain.holdAt("processed");
  all.chain.faults.next("sendTransaction", { lose: "answer" });
  await giveUp(all, header, memo);
  all.clock.later(2_000);
  await all.x402.reconcile();
  expect(await stateOf(all, memo)).toBe("unknown");
  expect(await available(all, memo)).toBeUndefined();
  all.chain.holdAt("finalized");
  await expectSettled(all, memo, await all.settle(header));
});

test("killed between claim and send: nothing was sent, and after the lease the same quote can be paid", async () => {
  const all = await startPayments();
  const { chain, x402 } = all;
  const { memo } = await killedAt(all, "simulateTransaction");
  expect(await x402.reconcile()).toEqual({ settled: 0, reopened: 0, unknown: 0 });
  await waitOut(all);
  expect(await x402.reconcile()).toEqual({ settled: 0, reopened: 1, unknown: 0 });
  expect(await stateOf(all, memo)).toBe("open");
  expect(chain.calls["sendTransaction"]).toBeUndefined();
});

test("killed between send and confirmation: the next request finds it on chain", async () => {
  const all = await startPayments();
  const { header, memo } = await killedAt(all, "getSignatureStatuses");
  expect(await available(all, memo)).toBeUndefined();
  all.clock.later(leaseMs);
  await expectSettled(all, memo, await all.settle(header));
});

test.each<[string, () => (command: Command) => boolean]>([
  [
    "between confirmation and credit",
    () =>
      ({ update }) =>
        update === "accounts",
  ],
  ["between credit and quote", () => nthUpdate(3)],
])("killed %s: after the lease the next process completes it", async (_, isLost) => {
  const all = await startPayments();
  const victim = await doomed(all, isLost());
  const { header, memo } = await all.pay();
  abandon(victim, header);
  await eventually(victim.isDead);
  expect(await stateOf(all, memo)).toBe("settling");
  all.clock.later(leaseMs);
  await expectSettled(all, memo, await all.settle(header));
});

test("killed while the signature is recorded: nothing was sent, and after the lease the quote opens again", async () => {
  const all = await startPayments();
  const victim = await doomed(all, nthUpdate(2));
  const { header, memo } = await all.pay();
  abandon(victim, header);
  await eventually(victim.isDead);
  await waitOut(all);
  await all.x402.reconcile();
  expect(await stateOf(all, memo)).toBe("open");
  expect(all.chain.calls["sendTransaction"]).toBeUndefined();
});

/** The writes of a quote: claim, signature, end. */
function nthUpdate(n: number): (command: Command) => boolean {
  let updates = 0;
  return ({ update }) => update === "quotes" && ++updates >= n;
}

test("a process whose claim was taken over sends nothing", async () => {
  const all = await startPayments();
  const { chain, x402 } = all;
  const victim = await all.another();
  const { header, memo } = await all.pay();
  const gate = Promise.withResolvers<void>();
  chain.faults.next("simulateTransaction", { after: gate.promise });
  const slow = failureOf(settlePayment(victim, header));
  await eventually(async () => (chain.calls["simulateTransaction"] ?? 0) === 1);
  await waitOut(all);
  await x402.reconcile();
  expect(await stateOf(all, memo)).toBe("open");
  gate.resolve();
  // Its lease has ended, so it sends nothing.
  expect(await slow).toMatchObject({ status: 503 });
  expect(chain.calls["sendTransaction"]).toBeUndefined();
  expect(await stateOf(all, memo)).toBe("open");
  expect(await all.received()).toBe(0n);
});

test("a payment that failed on chain opens the quote again, and counts for nothing", async () => {
  const all = await startPayments();
  const { chain, payer, clock, x402 } = all;
  const { header, memo } = await all.pay();
  const before = chain.lamports(chain.feePayer.address);
  // The payer spends the balance between simulation and sending.
  chain.mempool.hold();
  chain.faults.next("sendTransaction", { lose: "answer" });
  await giveUp(all, header, memo);
  await chain.setBalance(payer.address, 0n);
  chain.mempool.release();
  clock.later(2_000);
  expect(await x402.reconcile()).toEqual({ settled: 0, reopened: 1, unknown: 0 });
  expect(await stateOf(all, memo)).toBe("open");
  expect(chain.lamports(chain.feePayer.address)).toBeLessThan(before);
  expect(await available(all, memo)).toBeUndefined();
});

test("while the network is unavailable nothing is decided, and the caller gets a retryable 503", async () => {
  const all = await startPayments();
  const { header, memo } = await all.pay();
  all.chain.faults.next("simulateTransaction", { status: 503 });
  await expect(all.settle(header)).rejects.toMatchObject({ status: 503, code: "no_capacity" });
  expect(await stateOf(all, memo)).toBe("open");
  await expectSettled(all, memo, await all.settle(header));
});

test("while MongoDB is unavailable nothing is quoted or taken, and the caller gets a retryable 503", async () => {
  const all = await startPayments();
  const wire = { isCut: false };
  const uri = await brokenWire(all.uri, () => (wire.isCut ? "lose the request" : "pass"));
  const instance = await openPayments(uri, all.clock, settingsOf(all.chain));
  await instance.x402.start();
  const { header, memo } = await all.pay();
  wire.isCut = true;
  const unavailable = { status: 503, code: "no_capacity" };
  await expect(quoteRequest(instance)).rejects.toMatchObject(unavailable);
  await expect(settlePayment(instance, header)).rejects.toMatchObject(unavailable);
  expect(await stateOf(all, memo)).toBe("open");
  wire.isCut = false;
  await expectSettled(all, memo, await all.settle(header));
});

test("concurrent jobs settle an abandoned payment once", async () => {
  const all = await startPayments();
  const others = await Promise.all([all.another(), all.another()]);
  const { header, memo } = await killedAt(all, "getSignatureStatuses");
  all.clock.later(leaseMs);
  const counts = await Promise.all([all, ...others, all, ...others].map(({ x402 }) => x402.reconcile()));
  expect(counts.some(({ settled }) => settled === 1)).toBe(true);
  await expectSettled(all, memo, await all.settle(header));
});
