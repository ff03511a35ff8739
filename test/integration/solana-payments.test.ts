import { expect, onTestFinished, test, vi } from "vitest";
import { failedSimulation } from "../support/solana.ts";
import { payFrom, payments } from "../support/solana-setup.ts";

test("a payment by the official client, settled by the official facilitator, moves exactly its micro-USDC", async () => {
  const { chain, payer, newFacilitator, pay } = await payments("5.00");
  const { payload, requirements } = await pay(40_001n);
  const facilitator = newFacilitator();
  expect(await facilitator.verify(payload, requirements)).toMatchObject({ isValid: true, payer: payer.address });
  expect(await facilitator.settle(payload, requirements)).toMatchObject({ success: true, network: chain.network });
  expect(await chain.balance(chain.payTo)).toBe(40_001n);
  expect(await chain.balance(payer.address)).toBe(4_959_999n);
  expect(chain.lamports(payer.address)).toBe(0n);
});

test("twenty payments at once move the sum of them", async () => {
  const { chain, payer, newFacilitator, pay } = await payments("5.00");
  const facilitator = newFacilitator();
  const all = await Promise.all(Array.from({ length: 20 }, (_, n) => pay(1_000n + BigInt(n), `memo-${n}`)));
  const settled = await Promise.all(all.map((each) => facilitator.settle(each.payload, each.requirements)));
  expect(settled.every(({ success }) => success)).toBe(true);
  expect(await chain.balance(chain.payTo)).toBe(20_190n);
  expect(await chain.balance(payer.address)).toBe(5_000_000n - 20_190n);
});

test.each([
  ["has too little", "0.04"],
  ["has no token account", undefined],
])("a payer who %s pays nothing", async (_, usd) => {
  const { chain, newFacilitator } = await payments();
  const payer = await chain.wallet(usd);
  const { payload, requirements } = await payFrom(chain, payer, 40_001n);
  const settled = await newFacilitator().settle(payload, requirements);
  expect(settled).toMatchObject({ success: false, errorReason: "invalid_exact_svm_transaction_simulation_failed" });
  expect(chain.calls.sendTransaction).toBeUndefined();
  expect(await chain.balance(chain.payTo)).toBe(0n);
});

test("a merchant without a token account cannot be paid", async () => {
  const { chain, payer, newFacilitator } = await payments();
  const nobody = await chain.wallet();
  const { payload, requirements } = await payFrom({ ...chain, payTo: nobody.address }, payer, 1_000n);
  expect(await newFacilitator().verify(payload, requirements)).toMatchObject({ isValid: false });
  expect(await chain.balance(payer.address)).toBe(5_000_000n);
});

test("a payment whose blockhash has expired can no longer be settled", async () => {
  const { chain, newFacilitator, pay } = await payments();
  const { payload, requirements } = await pay(1_000n);
  chain.advance(151);
  const settled = await newFacilitator().settle(payload, requirements);
  expect(settled).toMatchObject({ success: false, errorReason: "invalid_exact_svm_transaction_simulation_failed" });
  expect(await chain.balance(chain.payTo)).toBe(0n);
});

test("a settled payment is refused by every other facilitator, and moves nothing again", async () => {
  const { chain, newFacilitator, pay } = await payments();
  const { payload, requirements } = await pay(1_000n);
  expect(await newFacilitator().settle(payload, requirements)).toMatchObject({ success: true });
  expect(await newFacilitator().verify(payload, requirements)).toMatchObject({
    isValid: false,
    invalidMessage: expect.stringContaining("AlreadyProcessed"),
  });
  const again = await newFacilitator().settle(payload, requirements);
  expect(again).toMatchObject({ success: false, errorReason: "invalid_exact_svm_transaction_simulation_failed" });
  expect(await chain.balance(chain.payTo)).toBe(1_000n);
});

test("the facilitator reports a settlement as failed when the answer was lost, though the merchant was paid", async () => {
  const { chain, newFacilitator, pay } = await payments();
  const { payload, requirements } = await pay(1_000n);
  // The package prints the error.
  vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => void vi.restoreAllMocks());
  chain.faults.next("sendTransaction", { lose: "answer" });
  expect(await newFacilitator().settle(payload, requirements)).toMatchObject({ success: false });
  expect(await chain.balance(chain.payTo)).toBe(1_000n);
});

test("a settlement waits until its transaction is confirmed", async () => {
  const { chain, newFacilitator, pay } = await payments();
  const { payload, requirements } = await pay(1_000n);
  chain.holdAt("processed");
  const settling = newFacilitator().settle(payload, requirements);
  await expect.poll(() => chain.calls.getSignatureStatuses ?? 0).toBeGreaterThan(1);
  chain.holdAt("confirmed");
  expect(await settling).toMatchObject({ success: true });
});

test("a planned simulation failure has the given reason", async () => {
  const { chain, newFacilitator, pay } = await payments();
  const { payload, requirements } = await pay(1_000n);
  chain.faults.next("simulateTransaction", failedSimulation("AccountInUse"));
  const verified = await newFacilitator().verify(payload, requirements);
  expect(verified).toMatchObject({ isValid: false, invalidMessage: expect.stringContaining("AccountInUse") });
  expect(await newFacilitator().verify(payload, requirements)).toMatchObject({ isValid: true });
});
