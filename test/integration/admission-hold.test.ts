import { expect, test } from "vitest";
import { hold } from "../../api/admission/admit.ts";
import type { CallHold, Money } from "../../shared/money/index.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { balance, captureOf, free, held, holdOf, startBank, startMoney } from "../support/money-setup.ts";
import { eventually } from "../support/service.ts";

const bound = {
  maxNanoUsd: 600n,
  minNanoUsd: 600n,
  inputNanoUsd: 50n,
  inputTokens: 1,
  outputCap: 10,
  isCapNamed: true,
  capFor: () => 3,
};
const ask = (account: string) => ({
  account,
  requestId: "req_second",
  key: "key_test",
  endpoint: "/v1/chat/completions",
  model: "local/chat",
  expiresAt: Date.now() + 60_000,
  bound,
});

const from = (money: Money) => async (call: CallHold) => ({ heldNanoUsd: await money.holdForCall(call) });

/** An account with 1,000 nano-USD, and a second process with a stopped clock. */
async function startWaiting() {
  const bank = await startBank();
  const clock = createManualClock(Date.now());
  const { money: waiting } = await startMoney(bank.uri, clock);
  return { ...bank, clock, waiting };
}

test("a call waits a moment for the unused part of the previous call's hold", async () => {
  const { money, account, clock, waiting } = await startWaiting();
  const before = await held(money, holdOf(account, 600n));
  const again = hold(from(waiting), ask(account));
  await eventually(() => clock.pending() === 1);
  // The previous call has been answered; its capture is settled only now.
  await money.charge(captureOf(before, 10n));
  clock.advance(50);
  expect(await again).toEqual({ heldNanoUsd: 600n });
  expect(await balance(money, account)).toMatchObject({ availableNanoUsd: 390n, heldNanoUsd: 600n });
});

test("an insufficient balance without calls in flight is refused at once, in tokens", async () => {
  const { money, account, waiting } = await startWaiting();
  const refused = hold(from(waiting), { ...ask(account), bound: { ...bound, maxNanoUsd: 2_000n, minNanoUsd: 2_000n } });
  await expect(refused).rejects.toMatchObject({
    code: "insufficient_balance",
    message:
      "The balance is too low. The input alone can cost 0.00000005 USD; the balance has 0.000001. You asked for up to 10 tokens; the balance covers 3. Top up in the dashboard.",
  });
  expect(await balance(money, account)).toEqual(free(1_000n));
});

test("without a cap in the request the refusal names none", async () => {
  const { account, waiting } = await startWaiting();
  const expensive = { ...bound, maxNanoUsd: 90_000_000n, minNanoUsd: 20_000_000n, inputNanoUsd: 12_000_000n };
  await expect(
    hold(from(waiting), { ...ask(account), bound: { ...expensive, isCapNamed: false } }),
  ).rejects.toMatchObject({
    message:
      "The balance is too low. The input alone can cost 0.012 USD; the balance has 0.000001. Top up in the dashboard.",
  });
});

test("a call that is not counted in tokens is refused in USD", async () => {
  const { account, waiting } = await startWaiting();
  const image = { ...bound, maxNanoUsd: 20_000_000n, minNanoUsd: 20_000_000n, outputCap: 0 };
  await expect(hold(from(waiting), { ...ask(account), bound: image })).rejects.toMatchObject({
    code: "insufficient_balance",
    message: "The balance is too low. The call can cost 0.02 USD; the balance has 0.000001. Top up in the dashboard.",
  });
});

test("a balance between the least and the most is held whole", async () => {
  const { money, account, waiting } = await startWaiting();
  expect(await hold(from(waiting), { ...ask(account), bound: { ...bound, maxNanoUsd: 5_000n } })).toEqual({
    heldNanoUsd: 1_000n,
  });
  expect(await balance(money, account)).toMatchObject({ availableNanoUsd: 0n, heldNanoUsd: 1_000n });
});
