import { expect, test } from "vitest";
import {
  askImage,
  askVideo,
  charges,
  expectFiles,
  imagesPath,
  keyed,
  mediaPath,
  posts,
  repeated,
  slowVideo,
} from "../support/chaos-generation-setup.ts";
import { callsOf, lost, onlyCall, startProcesses, startProvider } from "../support/chaos-setup.ts";
import { mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { testStores } from "../support/servers.ts";
import { shortApiTimeout } from "../support/service.ts";

async function startOne() {
  const stores = await testStores();
  const { provider, env } = await startProvider(shortApiTimeout);
  const { client } = await startProcesses(stores, env);
  // An ended call that still held its slot would make the service refuse the next one.
  const customer = await client.account("1.00", { limits: { concurrent_requests: 1 } });
  return { provider, client, customer };
}

test.for([
  ["images", imagesPath, askImage(), "-0.04"],
  ["a video", mediaPath, askVideo(), "-0.40"],
] as const)(
  "the caller of %s disconnects: what the provider cannot cancel for free goes on, and is charged as delivered",
  async ([, path, body, paid]) => {
    const { provider, client, customer } = await startOne();
    const gate = Promise.withResolvers<void>();
    provider.always(slowVideo);
    provider.respond({ beforeHeaders: gate.promise });
    const leaving = new AbortController();
    const disconnected = lost(customer.post(path, body, { signal: leaving.signal }));
    const request = await provider.request(0);
    leaving.abort();
    expect(await disconnected).toBe(true);
    gate.resolve();
    expect(await onlyCall(client, customer)).toMatchObject({
      amount_usd: paid,
      request: { status: "succeeded", attempts: { length: 1 } },
    });
    expect([request.aborted, posts(provider).length]).toEqual([false, 1]);
    expect(provider.requests.filter(({ method }) => method === "DELETE")).toEqual([]);
    // Its slot is free again.
    await repeated(() => customer.post(path, body));
    expect(await charges(client, customer)).toEqual([paid, paid]);
  },
);

test.for([
  ["images", imagesPath, askImage(), mockPng, "-0.04"],
  ["a video", mediaPath, askVideo(), mockMp4, "-0.40"],
] as const)(
  "the caller of %s leaves a call with a key: it goes on, is paid, and its answer can be had",
  async ([, path, body, file, paid]) => {
    const { provider, client, customer } = await startOne();
    const gate = Promise.withResolvers<void>();
    provider.always(slowVideo);
    provider.respond({ beforeHeaders: gate.promise });
    const leaving = new AbortController();
    const disconnected = lost(customer.post(path, body, { ...keyed(), signal: leaving.signal }));
    await provider.request(0);
    leaving.abort();
    expect(await disconnected).toBe(true);
    gate.resolve();
    expect(await charges(client, customer)).toEqual([paid]);
    const answer = await repeated(() => customer.post(path, body, keyed()));
    expect(answer).toMatchObject({ replayed: true, costUsd: paid.slice(1) });
    await expectFiles(client, answer, file);
    expect(posts(provider)).toHaveLength(1);
    expect(provider.requests.filter(({ method }) => method === "DELETE")).toEqual([]);
    expect(await callsOf(client, customer, "refund")).toEqual([]);
    expect(await charges(client, customer)).toEqual([paid]);
  },
);
