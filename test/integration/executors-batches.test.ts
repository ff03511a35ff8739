import { expect, onTestFinished, test } from "vitest";
import { createMoney, moneySchema } from "../../shared/money/index.ts";
import { buybackConfig, createPayments, paymentsSchema } from "../../shared/payments/index.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import { createExecutor } from "../../workers/executors/index.ts";
import { bought, market, received, spent, untouched } from "../support/executors-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { captureOf, createMovableClock, held, holdOf, minuteMs, openAccount } from "../support/money-setup.ts";
import { migrated } from "../support/schema.ts";
import { testStores } from "../support/servers.ts";

/** An account with charges of 120.00999 USD, a tenth of which buys back. */
async function charged() {
  const given = await market();
  const clock = createMovableClock();
  const log = createLogger("test", "silent");
  const config = { ...given.config, BUYBACK_BPS: 1_000, BUYBACK_TOKEN: given.token };
  const mongo = await connectMongo((await testStores()).MONGODB_URI, clock, log);
  onTestFinished(() => mongo.close());
  const money = createMoney({ mongo, buyback: buybackConfig(config).terms, clock, log });
  const payments = createPayments({ config, mongo, money, clock, log });
  const { buyback } = payments;
  await migrated(mongo, [moneySchema, paymentsSchema]);
  const account = await openAccount(money, 10n ** 12n);
  const hold = await held(money, holdOf(account, 120_000_009_990n));
  await money.charge(captureOf(hold, 120_000_009_990n));
  expect(await buyback.gather()).toEqual({ entries: 1, due: 1 });

  /** Runs the scheduled job once, in a separate process. */
  async function run(signal = new AbortController().signal) {
    const hurried = createManualClock();
    // Time passes only while the executor sleeps.
    const timer = setInterval(() => hurried.pending() > 0 && hurried.advance(1_000), 10);
    const executor = await createExecutor({ config, clock: hurried });
    try {
      return await buyback.execute(executor, signal);
    } finally {
      clearInterval(timer);
      await executor.close();
    }
  }
  const batch = async () => (await buyback.list({ limit: 1 }))[0];
  return { ...given, clock, run, batch };
}

test("accruals are bought once, and the batch has the transaction", async () => {
  const { run, batch, has } = await charged();
  expect(await run()).toEqual({ done: 1, pending: 0 });
  const done = { state: "done", executor: "jupiter", spent, received, signature: expect.any(String) };
  expect(await batch()).toMatchObject(done);
  expect(await has()).toEqual(bought);
  expect(await run()).toEqual({ done: 0, pending: 0 });
  expect(await has()).toEqual(bought);
});

test("a batch whose process died between sending and the answer is bought once", async () => {
  const { chain, clock, run, batch, has, swaps } = await charged();
  const death = new AbortController();
  const { promise: never } = Promise.withResolvers<void>();
  chain.faults.next("sendTransaction", { after: never });
  const dying = run(death.signal);
  await expect.poll(has).toEqual(bought);
  death.abort(new Error("died"));
  expect(await dying).toEqual({ done: 0, pending: 1 });
  expect(await batch()).toMatchObject({ state: "due", signature: expect.any(String) });
  clock.later(minuteMs);
  expect(await run()).toEqual({ done: 1, pending: 0 });
  expect(swaps()).toBe(1);
  expect(await has()).toEqual(bought);
});

test("a swap that cannot be made leaves the batch due", async () => {
  const { jupiter, clock, run, batch, has } = await charged();
  jupiter.behavior.status = 503;
  expect(await run()).toEqual({ done: 0, pending: 1 });
  expect(await has()).toEqual(untouched);
  jupiter.behavior.status = undefined;
  clock.later(minuteMs);
  expect(await run()).toEqual({ done: 1, pending: 0 });
  expect(await batch()).toMatchObject({ state: "done" });
});
