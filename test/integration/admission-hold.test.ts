import { expect, test } from "vitest";
import { hold } from "../../api/admission/admit.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { balance, free, startBank, startMoney } from "../support/money-setup.ts";

const bound = {
  maxNanoUsd: 2_000n,
  minNanoUsd: 2_000n,
  inputNanoUsd: 50n,
  inputTokens: 1,
  outputCap: 10,
  isCapNamed: true,
  capFor: () => 3,
};

test.each([
  [
    "in tokens",
    {},
    "The input alone can cost 0.00000005 USD; the balance has 0.000001. You asked for up to 10 tokens; the balance covers 3.",
  ],
  [
    "without the cap that the request does not name",
    { maxNanoUsd: 90_000_000n, minNanoUsd: 20_000_000n, inputNanoUsd: 12_000_000n, isCapNamed: false },
    "The input alone can cost 0.012 USD; the balance has 0.000001.",
  ],
  [
    "in USD for a call that is not counted in tokens",
    { maxNanoUsd: 20_000_000n, minNanoUsd: 20_000_000n, outputCap: 0 },
    "The call can cost 0.02 USD; the balance has 0.000001.",
  ],
])("without calls in flight an insufficient balance is refused at once, %s", async (_, more, text) => {
  const { money, uri, account } = await startBank();
  // A call that waited for its clock would never be refused.
  const { money: waiting } = await startMoney(uri, createManualClock(Date.now()));
  const ask = {
    account,
    requestId: "req_second",
    key: "key_test",
    endpoint: "/v1/chat/completions",
    model: "local/chat",
    expiresAt: Date.now() + 60_000,
    bound: { ...bound, ...more },
  };
  const refused = hold(async (call) => ({ heldNanoUsd: await waiting.holdForCall(call) }), ask);
  await expect(refused).rejects.toMatchObject({
    code: "insufficient_balance",
    message: `The balance is too low. ${text} Top up in the dashboard.`,
  });
  expect(await balance(money, account)).toEqual(free(1_000n));
});
