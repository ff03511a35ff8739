import { setTimeout } from "node:timers/promises";
import OpenAI from "openai";
import { expect, test } from "vitest";
import { formatUsd } from "#money";
import { startBalancer } from "../support/balancer.ts";
import { ask, availableUsd, startProvider } from "../support/chaos-setup.ts";
import { startDripProvider } from "../support/drip-provider.ts";
import { testStores } from "../support/servers.ts";
import { eventually, type ServiceProcess, shortApiTimeout, spawnApi, spawnWorker } from "../support/service.ts";

const streams = 50;
/** The minimum number of chunks, 300 ms apart. */
const leastChunks = 100;
/**
 * Milliseconds between a caller's short calls: some connections are always in use, some are idle for longer than the
 * delay.
 */
const pauses = [20, 50, 100, 200, 400, 800, 1_600, 3_200, 6_400];

/** Reads a whole stream with the official client, and counts its numbered chunks. */
async function readStream(openai: OpenAI, onFirst: () => void): Promise<number> {
  const stream = await openai.chat.completions.create({
    ...ask({ max_tokens: 1_000 }),
    stream: true,
    stream_options: { include_usage: true },
  } as never);
  const chunks: string[] = [];
  let usage: number | undefined;
  for await (const part of stream as never as AsyncIterable<OpenAI.ChatCompletionChunk>) {
    const content = part.choices[0]?.delta.content;
    if (content && chunks.push(content) === 1) onFirst();
    usage = part.usage?.completion_tokens ?? usage;
  }
  expect(chunks).toEqual(chunks.map((_, i) => `${i} `));
  expect(usage).toBe(chunks.length);
  return chunks.length;
}

test("every process is replaced twice: 50 streams of 30 s continue to their end, and no short call fails", async () => {
  const stores = await testStores();
  const { env: catalog } = await startProvider();
  const provider = await startDripProvider({ leastChunks });
  const env = {
    ...catalog,
    MOCK_BASE_URL: provider.url,
    DRAIN_DELAY: "6",
    DRAIN_GRACE: "120",
    ...shortApiTimeout,
    LOG_LEVEL: "warn",
  };
  const balancer = await startBalancer();
  const startApi = async () => {
    const api = await spawnApi(stores, { ...env, LOG_LEVEL: "info" });
    await balancer.add(api.client.baseUrl);
    return api;
  };
  const startWorker = () => spawnWorker(stores, { ...env, LOG_LEVEL: "info" });
  const workers = await Promise.all([startWorker(), startWorker()]);
  const apis = await Promise.all([startApi(), startApi()]);
  const customer = await apis[0].client.account("10.00");
  const clientOf = () => new OpenAI({ apiKey: customer.key, baseURL: `${balancer.url}/v1`, maxRetries: 0 });

  const longClient = clientOf();
  let begun = 0;
  const reading = Array.from({ length: streams }, () => readStream(longClient, () => begun++));
  // Failures are checked at the end.
  const read = Promise.allSettled(reading);
  await eventually(() => begun >= streams);

  let isOver = false;
  let answered = 0;
  const failures: unknown[] = [];
  const callers = pauses.map(async (pauseMs) => {
    const client = clientOf();
    while (!isOver) {
      const answer = client.chat.completions.create(ask() as never) as Promise<OpenAI.ChatCompletion>;
      await answer.then(
        ({ usage }) => {
          expect(usage?.completion_tokens).toBe(8);
          answered++;
        },
        (error: unknown) => failures.push([`after ${pauseMs} ms`, error, (error as Error).cause]),
      );
      await setTimeout(pauseMs);
    }
  });

  const replaced: ServiceProcess[] = [];
  async function replace<Started extends ServiceProcess>(all: Started[], at: number, start: () => Promise<Started>) {
    const old = all[at] as Started;
    all[at] = await start();
    old.kill("SIGTERM");
    await old.line(({ msg }) => msg === "shutting down");
    replaced.push(old);
  }
  for (let round = 0; round < 2; round++)
    for (const at of [0, 1]) {
      await replace(apis, at, startApi);
      await replace(workers, at, startWorker);
    }
  expect(provider.streams()).toBe(streams);
  provider.release();

  const ended = await read;
  const counts = ended.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const exits = await Promise.all(replaced.map(({ exited }) => exited));
  isOver = true;
  await Promise.all(callers);
  expect(failures).toEqual([]);
  expect(ended.flatMap((each) => (each.status === "rejected" ? [String(each.reason)] : []))).toEqual([]);
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(leastChunks);
  expect([provider.aborted(), provider.streams()]).toEqual([0, streams]);
  expect(exits).toEqual(replaced.map(() => 0));
  expect(answered).toBeGreaterThan(100);

  const { client } = apis[0];
  expect(await client.settled()).toMatchObject({ ok: true, difference_usd: "0.00", undecided: 0 });
  const chunks = counts.reduce((sum, each) => sum + each, 0);
  const spent = BigInt(answered) * 25_000n + BigInt(streams) * 9_000n + BigInt(chunks) * 2_000n;
  expect(await availableUsd(client, customer)).toBe(formatUsd(10_000_000_000n - spent));
}, 480_000);
