import { expect, onTestFinished, test } from "vitest";
import { formatUsd } from "#money";
import { charges, expectFiles, outcomeOf } from "../support/chaos-generation-setup.ts";
import { availableUsd, callsOf, never, startProcesses } from "../support/chaos-setup.ts";
import { mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { asking, costOf, shipped } from "../support/native-media-prices.ts";
import { type ProviderName, type Providers, startProviders } from "../support/native-media-setup.ts";
import { testStores } from "../support/servers.ts";
import { type Client, type Customer, eventually, shortTimeouts, spawnWorker } from "../support/service.ts";

const flux = "black-forest-labs/flux-1-dev";
const veo = "google/veo-3.1";
const omni = "google/gemini-omni-1.2-flash";
const output = { video: { url: "0.mp4" } };

async function startService() {
  const stores = await testStores();
  const { providers, env: reachesProviders } = await startProviders();
  const env = { ...reachesProviders, ...shortTimeouts };
  onTestFinished(async () => {
    for (const provider of [providers.replicate, providers.fal, providers.gemini]) await provider.close();
  });
  const { client, worker } = await startProcesses(stores, env);
  const account = () => client.account("20.00");
  const ask = (customer: Customer, id: string) => {
    const { path, body } = asking(shipped(id), { prompt: "waves" });
    return { customer, answer: outcomeOf(customer.post(path, body)) };
  };
  /** The replacement immediately receives the killed worker's jobs. */
  const replace = async () => {
    worker.kill("SIGKILL");
    await worker.exited;
    await spawnWorker(stores, env);
  };
  return { client, providers, account, ask, replace };
}

type Asked = ReturnType<Awaited<ReturnType<typeof startService>>["ask"]>;

/** The response is delivered whole, for the price of one. */
async function expectPaid(client: Client, { customer, answer }: Asked, costNanoUsd: bigint, file: Buffer) {
  const outcome = await answer;
  const cost = formatUsd(costNanoUsd);
  expect(outcome).toMatchObject({ status: 200, costUsd: cost });
  await expectFiles(client, outcome, file);
  expect(await charges(client, customer)).toEqual([`-${cost}`]);
  expect(await callsOf(client, customer)).toHaveLength(1);
  expect(await availableUsd(client, customer)).toBe(formatUsd(20_000_000_000n - costNanoUsd));
}

const looks: Readonly<Record<ProviderName, RegExp>> = {
  replicate: /\/predictions\/\w+$/,
  fal: /\/status(\?|$)/,
  gemini: /\/interactions\/\w+$/,
};
const looked = (providers: Providers, name: ProviderName) =>
  providers[name].requests.filter(({ method, path }) => method === "GET" && looks[name].test(path)).length;
/** Requests that change state at the provider. */
const changes = (providers: Providers, name: ProviderName) =>
  providers[name].requests.filter(({ method }) => method !== "GET");

test("a worker killed while jobs run at Replicate, fal and Google: the next one continues them, each paid once", async () => {
  const { client, providers, account, ask, replace } = await startService();
  providers.replicate.respond({ states: ["starting", "processing", "succeeded"] });
  providers.fal.respond({ states: ["IN_PROGRESS", "COMPLETED"], output });
  providers.gemini.respond({ states: ["in_progress", "completed"] });
  // Their jobs begin together, so that none is over before the last one runs.
  const customers = await Promise.all([account(), account(), account()]);
  const image = ask(customers[0], flux);
  const film = ask(customers[1], veo);
  const clip = ask(customers[2], omni);
  const names = ["replicate", "fal", "gemini"] as const;
  await eventually(() => names.every((name) => looked(providers, name) > 0));

  await replace();
  await expectPaid(client, image, costOf(shipped(flux), { image: 1 }), mockPng);
  await expectPaid(client, film, costOf(shipped(veo), { second: 8 }), mockMp4);
  await expectPaid(client, clip, costOf(shipped(omni), { second: 8 }), mockMp4);
  // Each is submitted once, polled by each worker, and never canceled.
  for (const name of names) {
    expect([name, changes(providers, name).length]).toEqual([name, 1]);
    expect(looked(providers, name)).toBeGreaterThanOrEqual(2);
  }
});

test("a worker killed while the output arrives: the next one fetches it, for the one price", async () => {
  const { client, providers, account, ask, replace } = await startService();
  // Submission, poll and result succeed; the file then never arrives.
  providers.fal.respond({ output }, {}, {}, { beforeHeaders: never });
  const film = ask(await account(), veo);
  await providers.fal.request(3);

  await replace();
  await expectPaid(client, film, costOf(shipped(veo), { second: 8 }), mockMp4);
  expect([changes(providers, "fal").length, looked(providers, "fal")]).toEqual([1, 2]);
});
