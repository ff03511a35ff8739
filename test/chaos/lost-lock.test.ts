import { expect, test } from "vitest";
import {
  ask,
  availableUsd,
  callsOf,
  never,
  outcomeOf,
  path,
  read,
  startProcesses,
  startProvider,
} from "../support/chaos-setup.ts";
import { testStores } from "../support/servers.ts";
import { shortTimeouts, spawnWorker } from "../support/service.ts";

test("a worker that pauses longer than its locks last: one error, no late answer, nothing charged", async () => {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortTimeouts);
  const { client, worker } = await startProcesses(stores, env);
  const customer = await client.account("1.00");

  const gate = Promise.withResolvers<void>();
  provider.respond(
    { beforeHeaders: gate.promise },
    { beforeEvent: { 4: gate.promise } },
    { beforeEvent: { 4: never } },
  );
  const json = outcomeOf(customer.post(path, ask()));
  await provider.request(0);
  const streams = [
    read(await customer.post(path, ask({ stream: true }))),
    read(await customer.post(path, ask({ stream: true }))),
  ];
  for (const stream of streams) await stream.sees(4);

  worker.kill("SIGSTOP");
  // The answers have arrived by the time the worker resumes.
  gate.resolve();
  await spawnWorker(stores, env);
  expect(await json).toMatchObject({ status: 503, code: "no_capacity", retryAfter: "1" });
  for (const stream of streams) {
    expect(await stream.ended).toBe("closed");
    expect(stream.events).toHaveLength(5);
    expect(stream.events.at(-1)?.error).toMatchObject({ code: "no_capacity" });
    expect(stream.done()).toBe(false);
  }
  await client.settled();

  worker.kill("SIGCONT");
  // The worker aborts its remaining calls, and its other actions have no effect.
  await Promise.all(provider.requests.map(({ closed }) => closed));
  await worker.line(({ msg, code }) => msg === "a call failed" && code === "no_capacity");
  worker.kill("SIGTERM");
  expect(await worker.exited).toBe(0);
  await client.settled();
  const calls = await callsOf(client, customer);
  expect(calls.map(({ amount_usd }) => amount_usd)).toEqual(["0.00", "0.00", "0.00"]);
  expect(await callsOf(client, customer, "refund")).toEqual([]);
  expect(await availableUsd(client, customer)).toBe("1.00");
  expect(provider.requests).toHaveLength(3);
});
