import { expect, test } from "vitest";
import { hold } from "../../api/admission/hold.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { eventually } from "../support/service.ts";
import { balance, decisionOf, free, held, holdOf, startBank } from "./money-setup.ts";

const bound = { mostNanoUsd: 600n, leastNanoUsd: 600n, inputTokens: 1, outputCap: 10, capFor: () => 3 };
const ask = (account: string) => ({ account, requestId: "req_second", expiresAt: Date.now() + 60_000, bound });

test("who calls again at once is not told that what the call before did not use is missing", async () => {
  const { money, account } = await startBank();
  const before = await held(money, holdOf(account, 600n));
  const clock = createManualClock();
  const again = hold({ money, clock }, ask(account));
  await eventually(() => clock.pending() === 1);
  // The call before was answered already; its cost is applied only now.
  await money.settle(decisionOf(before, 10n));
  clock.advance(50);
  expect(await again).toEqual({ heldNanoUsd: 600n, outputCap: 10 });
  expect(await balance(money, account)).toMatchObject({ availableNanoUsd: 390n, heldNanoUsd: 600n });
});

test("who is poor without a call in flight is told so at once", async () => {
  const { money, account } = await startBank();
  const clock = createManualClock();
  const poor = hold(
    { money, clock },
    { ...ask(account), bound: { ...bound, mostNanoUsd: 2_000n, leastNanoUsd: 2_000n } },
  );
  await expect(poor).rejects.toMatchObject({
    code: "insufficient_balance",
    message: expect.stringContaining("covers 3"),
  });
  expect(await balance(money, account)).toEqual(free(1_000n));
});
