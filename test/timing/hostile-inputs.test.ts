import { expect, test } from "vitest";
import type { Target } from "../hostile/input.ts";
import { inputs } from "../hostile/inputs.ts";
import { startProviders } from "../hostile/providers.ts";
import { judge, measure, startWatch } from "../hostile/watch.ts";
import { testStores } from "../support/servers.ts";
import { ready, spawnApi, spawnWorker } from "../support/service.ts";

/** `npm run test:hostile` measures all inputs, with a limit of 100 ms. */
const limitMs = 250;
const rounds = 3;
const limits = { requests_per_minute: 1e9, tokens_per_minute: 1e12, concurrent_requests: 1_000 };

async function startTarget(
  onEnd: (stop: () => Promise<void>) => void,
): Promise<Target & { watch: Awaited<ReturnType<typeof startWatch>> }> {
  const watch = await startWatch();
  onEnd(watch.stop);
  const { providers, env: providerEnv } = await startProviders(onEnd);
  const env = { ...watch.env, ...providerEnv };
  const stores = await testStores();
  const [{ client }] = await Promise.all([spawnApi(stores, env), spawnWorker(stores, env)]);
  await ready(client);
  const { key } = await client.account("1000", { limits });
  return { url: client.baseUrl, key, ...providers, watch };
}

test("no hostile input holds an event loop of an API or worker process for 250 ms", async ({ onTestFinished }) => {
  const { watch, ...target } = await startTarget(onTestFinished);
  const held: string[] = [];
  for (const input of inputs.filter(({ isShort }) => isShort))
    for (const figures of await measure(input, target, watch, rounds, limitMs)) {
      const { process, name, heldMs } = figures;
      if (judge(figures, limitMs) === "held") held.push(`${process}, ${name}: ${heldMs.toFixed(0)} ms`);
    }
  expect(held).toEqual([]);
});
