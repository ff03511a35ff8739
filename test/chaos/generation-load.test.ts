import { expect, test } from "vitest";
import {
  askImage,
  imagesPath,
  isRefusal,
  keyed,
  maintenance,
  outcomeOf,
  postAt,
} from "../support/chaos-generation-setup.ts";
import { availableUsd, callsOf, ready, startProcesses, startProvider } from "../support/chaos-setup.ts";
import { testStores } from "../support/servers.ts";
import { eventually, shortTimeouts, spawnApi, spawnWorker } from "../support/service.ts";

test("workers and APIs killed and stopped under the load of callers with keys: each key is answered, and charged once", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortTimeouts);
  const { api: killed, worker: killedWorker } = await startProcesses(stores, env);
  const [stopped, stoppedWorker] = await Promise.all([spawnApi(stores, env), spawnWorker(stores, env)]);
  await ready(stopped.client);
  const customer = await stopped.client.account("100.00");

  const clients = [killed.client, stopped.client];
  const answered = new Map<string, string>();
  let over = false;
  let turn = 0;
  /** Repeats the call at every API until one answers it. */
  async function untilAnswered(key: string): Promise<string> {
    for (;;) {
      const client = clients[turn++ % clients.length] as (typeof clients)[0];
      const outcome = await outcomeOf(postAt(client, customer)(imagesPath, askImage(), keyed(key))).catch(
        () => undefined,
      );
      if (outcome?.status === 200) return outcome.requestId as string;
      if (outcome && !isRefusal(outcome)) throw new Error(`${outcome.status}: ${JSON.stringify(outcome.body)}`);
    }
  }
  const load = Array.from({ length: 16 }, async (_, caller) => {
    for (let call = 0; !over; call++) {
      const key = `${caller}-${call}`;
      answered.set(key, await untilAnswered(key));
    }
  });
  const more = (count: number) => {
    const enough = answered.size + count;
    return eventually(() => answered.size > enough);
  };

  await more(40);
  killedWorker.kill("SIGKILL");
  await more(40);
  await spawnWorker(stores, env);
  killed.kill("SIGKILL");
  const { client } = await spawnApi(stores, env);
  await ready(client);
  clients[0] = client;
  await more(40);
  stoppedWorker.kill("SIGTERM");
  expect(await stoppedWorker.exited).toBe(0);
  await more(40);
  stopped.kill("SIGTERM");
  clients.pop();
  expect(await stopped.exited).toBe(0);
  await more(40);
  over = true;
  await Promise.all(load);

  // An API that died between hold and queue leaves its hold to the sweeper.
  await (await maintenance(stores)).pass(3_600_000);
  await client.settled();
  for (const [key, requestId] of [...answered].slice(-20)) expect(await untilAnswered(key)).toBe(requestId);
  expect(new Set(answered.values()).size).toBe(answered.size);
  expect(await callsOf(client, customer, "refund")).toEqual([]);
  expect(await availableUsd(client, customer)).toBe((100 - 0.04 * answered.size).toFixed(2));
  expect(provider.requests.length).toBeGreaterThanOrEqual(answered.size);
});
