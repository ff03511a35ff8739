import { expect, test } from "vitest";
import { mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";
import {
  askImage,
  askVideo,
  charges,
  expectFiles,
  imagesPath,
  keyed,
  looks,
  mediaPath,
  posts,
  repeated,
  slowVideo,
} from "./generation-setup.ts";
import { availableUsd, callsOf, lost, never, onlyCall, startMaker, startProcesses } from "./setup.ts";

async function startOne() {
  const stores = await testStores();
  const { maker, env } = await startMaker();
  const { client } = await startProcesses(stores, env);
  // A slot that an ended call still held would refuse the next one.
  const customer = await client.account("1.00", { limits: { concurrent_requests: 1 } });
  return { maker, client, customer };
}

test("the caller of images leaves: the maker is aborted, nothing is charged", async () => {
  const { maker, client, customer } = await startOne();
  maker.respond({ beforeHeaders: never });
  const leaving = new AbortController();
  const left = lost(customer.post(imagesPath, askImage(), { signal: leaving.signal }));
  const request = await maker.request(0);
  leaving.abort();
  expect(await left).toBe(true);
  await request.closed;
  expect(request.aborted).toBe(true);
  expect(await onlyCall(client, customer)).toMatchObject({
    amount_usd: "0.00",
    request: { status: "cancelled", attempts: 1 },
  });
  await repeated(() => customer.post(imagesPath, askImage()));
  expect(await charges(client, customer)).toEqual(["-0.04"]);
});

test("the caller of a video leaves: the maker's job is cancelled, nothing is charged", async () => {
  const { maker, client, customer } = await startOne();
  maker.always({ states: ["in_progress"] });
  const leaving = new AbortController();
  const left = lost(customer.post(mediaPath, askVideo(), { signal: leaving.signal }));
  await eventually(() => looks(maker) === 1);
  leaving.abort();
  expect(await left).toBe(true);
  await eventually(() => maker.requests.at(-1)?.method === "DELETE");
  expect(await onlyCall(client, customer)).toMatchObject({
    amount_usd: "0.00",
    request: { status: "cancelled", attempts: 1 },
  });
  expect(await availableUsd(client, customer)).toBe("1.00");
  expect(posts(maker)).toHaveLength(1);
});

test.for([
  ["images", imagesPath, askImage(), mockPng, "-0.04"],
  ["a video", mediaPath, askVideo(), mockMp4, "-0.40"],
] as const)(
  "the caller of %s leaves a call with a key: it goes on, is paid, and its answer can be had",
  async ([, path, body, file, paid]) => {
    const { maker, client, customer } = await startOne();
    const gate = Promise.withResolvers<void>();
    maker.always(slowVideo);
    maker.respond({ beforeHeaders: gate.promise });
    const leaving = new AbortController();
    const left = lost(customer.post(path, body, { ...keyed(), signal: leaving.signal }));
    await maker.request(0);
    leaving.abort();
    expect(await left).toBe(true);
    gate.resolve();
    expect(await charges(client, customer)).toEqual([paid]);
    const answer = await repeated(() => customer.post(path, body, keyed()));
    expect(answer).toMatchObject({ replayed: true, costUsd: paid.slice(1) });
    await expectFiles(client, answer, file);
    expect(posts(maker)).toHaveLength(1);
    expect(maker.requests.filter(({ method }) => method === "DELETE")).toEqual([]);
    expect(await callsOf(client, customer, "refund")).toEqual([]);
    expect(await charges(client, customer)).toEqual([paid]);
  },
);
