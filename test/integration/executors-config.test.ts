import { expect, test } from "vitest";
import { createExecutor } from "../../workers/executors/index.ts";
import { market } from "../support/executors-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";

test("without Jupiter a buyback is only recorded", async () => {
  const { config } = await market();
  const executor = await createExecutor({
    config: { ...config, BUYBACK_EXECUTOR: "record" },
    clock: createManualClock(),
  });
  const recordSent = () => Promise.reject(new Error("nothing is sent"));
  const batch = { id: "batch1", token: "-", nanoUsd: 1n };
  const { signal } = new AbortController();
  expect(await executor.execute(batch, recordSent, signal)).toEqual({ kind: "recorded" });
  // Jupiter may have executed the sent transaction: buying by hand could buy twice.
  const sent = { signature: "5".repeat(88), transaction: "AA==", lastValidBlockHeight: 1n };
  await expect(executor.execute({ ...batch, sent }, recordSent, signal)).rejects.toThrow(sent.signature);
});

test.each(["BUYBACK_WALLET_KEY", "SOLANA_RPC_URL"] as const)("Jupiter does not start without %s", async (name) => {
  const { config } = await market();
  const created = createExecutor({ config: { ...config, [name]: undefined }, clock: createManualClock() });
  await expect(created).rejects.toThrow(`${name} is missing`);
});

test("Jupiter does not start with a minimum below one unit of USDC", async () => {
  const { config } = await market();
  const created = createExecutor({
    config: { ...config, BUYBACK_MINIMUM_USD: "0.0000009" },
    clock: createManualClock(),
  });
  await expect(created).rejects.toThrow("BUYBACK_MINIMUM_USD");
});

test("an invalid key is refused by the name of its variable, without its value", async () => {
  const { config } = await market();
  const wrong = { ...config, BUYBACK_WALLET_KEY: "hunter2hunter2" };
  const failed = await createExecutor({ config: wrong, clock: createManualClock() }).catch((error: Error) => error);
  expect(failed).toMatchObject({ name: "ConfigError", message: expect.stringContaining("BUYBACK_WALLET_KEY") });
  expect(String((failed as Error).stack)).not.toContain("hunter2");
});
