import { expect, onTestFinished, test } from "vitest";
import { formatUsd } from "#money";
import { asking, costOf, shipped } from "../integration/native-media-prices.ts";
import { type MakerName, type Makers, startMakers } from "../integration/native-media-setup.ts";
import { mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { testStores } from "../support/servers.ts";
import { type Client, eventually, spawnWorker } from "../support/service.ts";
import { charges, endLocks, expectFiles, outcomeOf } from "./generation-setup.ts";
import { availableUsd, callsOf, never, redisOf, startProcesses } from "./setup.ts";

const flux = "black-forest-labs/flux-1-dev";
const veo = "google/veo-3.1";
const omni = "google/gemini-omni-1.2-flash";
const output = { video: { url: "0.mp4" } };

async function startService() {
  const stores = await testStores();
  const { makers, env } = await startMakers();
  onTestFinished(async () => {
    for (const maker of [makers.replicate, makers.fal, makers.gemini]) await maker.close();
  });
  const { client, worker } = await startProcesses(stores, env);
  const ask = async (id: string) => {
    const customer = await client.account("20.00");
    const { path, body } = asking(shipped(id), { prompt: "waves" });
    return { customer, answer: outcomeOf(customer.post(path, body)) };
  };
  /** The next worker gets at once what the killed one had. */
  const replace = async () => {
    worker.kill("SIGKILL");
    await worker.exited;
    await endLocks(redisOf(stores));
    await spawnWorker(stores, env);
  };
  return { client, makers, ask, replace };
}

type Asked = Awaited<ReturnType<Awaited<ReturnType<typeof startService>>["ask"]>>;

/** Delivered whole, for the price of one. */
async function expectPaid(client: Client, { customer, answer }: Asked, costNanoUsd: bigint, file: Buffer) {
  const outcome = await answer;
  const cost = formatUsd(costNanoUsd);
  expect(outcome).toMatchObject({ status: 200, costUsd: cost });
  await expectFiles(client, outcome, file);
  expect(await charges(client, customer)).toEqual([`-${cost}`]);
  expect(await callsOf(client, customer)).toHaveLength(1);
  expect(await availableUsd(client, customer)).toBe(formatUsd(20_000_000_000n - costNanoUsd));
}

const looks: Readonly<Record<MakerName, RegExp>> = {
  replicate: /\/predictions\/\w+$/,
  fal: /\/status(\?|$)/,
  gemini: /\/interactions\/\w+$/,
};
const looked = (makers: Makers, name: MakerName) =>
  makers[name].requests.filter(({ method, path }) => method === "GET" && looks[name].test(path)).length;
/** What changes anything at the maker. */
const changes = (makers: Makers, name: MakerName) => makers[name].requests.filter(({ method }) => method !== "GET");

test("a worker killed while jobs run at Replicate, fal and Google: the next one goes on with them, each paid once", async () => {
  const { client, makers, ask, replace } = await startService();
  makers.replicate.respond({ states: ["starting", "processing", "succeeded"] });
  makers.fal.respond({ states: ["IN_PROGRESS", "COMPLETED"], output });
  makers.gemini.respond({ states: ["in_progress", "completed"] });
  const image = await ask(flux);
  const film = await ask(veo);
  const clip = await ask(omni);
  const names = ["replicate", "fal", "gemini"] as const;
  await eventually(() => names.every((name) => looked(makers, name) === 1));

  await replace();
  await expectPaid(client, image, costOf(shipped(flux), { image: 1 }), mockPng);
  await expectPaid(client, film, costOf(shipped(veo), { second: 8 }), mockMp4);
  await expectPaid(client, clip, costOf(shipped(omni), { second: 8, character: 5 }), mockMp4);
  // Submitted once, looked at once by each worker, and never taken back.
  for (const name of names) expect([changes(makers, name).length, looked(makers, name)]).toEqual([1, 2]);
});

test("a worker killed while what was made comes: the next one fetches it, for the one price", async () => {
  const { client, makers, ask, replace } = await startService();
  // Submission, look, result; the file then never comes.
  makers.fal.respond({ output }, {}, {}, { beforeHeaders: never });
  const film = await ask(veo);
  await makers.fal.request(3);

  await replace();
  await expectPaid(client, film, costOf(shipped(veo), { second: 8 }), mockMp4);
  expect([changes(makers, "fal").length, looked(makers, "fal")]).toEqual([1, 2]);
});
