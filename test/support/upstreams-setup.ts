import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { loadCatalog } from "../../shared/catalog/index.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createCounting } from "../../workers/counting/index.ts";
import { type AttemptRecord, createUpstreams } from "../../workers/upstreams/index.ts";
import { createManualClock } from "./manual-clock.ts";
import { type MockOpenai, startMockOpenai } from "./mock-openai.ts";

export const log = createLogger("test", "silent");
const counting = createCounting({ clock: createManualClock(), log });
const undisturbedSignal = new AbortController().signal;
/** The context of an undisturbed call for files: there is enough memory, and the caller stays. */
export const undisturbed = {
  reserveMemory: () => {},
  disconnected: undisturbedSignal,
  secondsOf: (bytes: Buffer, mime: string, id?: string) =>
    counting.secondsOf({ bytes, mime, id, account: "test" }, undisturbedSignal),
};
const question = { messages: [{ role: "user", content: "Hi" }] };

/** No call of these tests names a provider key of its account. */
export const noOwnKeys = {
  providerKeys: { find: async () => undefined, noteState: async () => false, noteUsed: async () => {} },
  secrets: { open: () => Promise.reject(new Error("there is no key")) },
};

interface Options {
  readonly concurrency?: number;
  /** Uses only `test/model`: an open breaker then applies to everything that its upstreams serve. */
  readonly oneModel?: true;
  /** Environment variables for the catalog's upstreams; `PROVIDER_0_API_KEY` and so on are set by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** This many mock providers, in this order behind the model `test/model` and (each alone) `test/model-<i>`. */
export async function startUpstreams(count: number, { concurrency = 10, oneModel, env = {} }: Options = {}) {
  const mocks: MockOpenai[] = [];
  for (let index = 0; index < count; index++) mocks.push(await startMockOpenai());
  const clock = createManualClock();
  const entries = mocks.map((mock, index) => [
    `provider-${index}`,
    {
      provider: "openai",
      base_url: mock.url,
      base_url_env: `PROVIDER_${index}_BASE_URL`,
      key_env: `PROVIDER_${index}_API_KEY`,
      concurrency,
      first_byte_timeout_ms: 60_000,
      silence_timeout_ms: 20_000,
      total_timeout_ms: 300_000,
    },
  ]);
  const at = (index: number, model: string) => ({ upstream: `provider-${index}`, model });
  const modelOf = (id: string, upstreams: object[]) => ({
    id,
    name: id,
    owned_by: "test",
    type: "text",
    released: "2026-01-01",
    context_length: 1000,
    max_output_tokens: 100,
    pricing: { input: "1", output: "1" },
    upstreams,
  });
  const models = [
    modelOf(
      "test/model",
      mocks.map((_, index) => at(index, `own-name-${index}`)),
    ),
    ...(oneModel ? [] : mocks).map((_, index) => modelOf(`test/model-${index}`, [at(index, "other-name")])),
  ];
  const folder = mkdtempSync(join(tmpdir(), "catalog-"));
  const file = join(folder, "catalog.json");
  writeFileSync(file, JSON.stringify({ elite_discount_bps: 0, upstreams: Object.fromEntries(entries), models }));
  const catalog = loadCatalog(file);
  rmSync(folder, { recursive: true });

  const keys = Object.fromEntries(mocks.map((_, index) => [`PROVIDER_${index}_API_KEY`, `sk-operator-${index}`]));
  const counting = createCounting({ clock, log });
  const upstreams = createUpstreams({ ...noOwnKeys, catalog, env: { ...keys, ...env }, clock, counting, log });
  onTestFinished(async () => {
    await upstreams.close();
    await Promise.all(mocks.map((mock) => mock.close()));
  });

  let accounts = 0;
  /** Uses a new account for each call by default. */
  const call = (id = "test/model", signal = new AbortController().signal, account = `acct_${++accounts}`) => {
    const model = catalog.find(id);
    if (!model) throw new Error(`no ${id}`);
    const made: AttemptRecord = { attempts: [] };
    const targets = [{ model, outputCap: 100 }];
    const request = { targets, account, signal, record: made, log };
    return {
      made,
      record: {
        get upstream() {
          return made.candidate?.upstream.id;
        },
        get attempts() {
          return made.attempts.length;
        },
      },
      request,
      json: () =>
        upstreams.once(request, ({ upstream, model }, signal) =>
          upstream.provider.answer({ ...asChat, model, body: { ...question, model }, signal }),
        ),
      stream: () =>
        upstreams.stream(request, async ({ upstream, model }, signal) =>
          oneByOne(upstream.provider.stream({ ...asChat, model, body: { ...question, model }, signal })),
        ),
    };
  };
  return { mocks: mocks as [MockOpenai, ...MockOpenai[]], clock, upstreams, catalog, call };
}

const asChat = { format: "chat", headers: {}, reserveMemory: undisturbed.reserveMemory, log } as const;

/** The chunks of a stream, regardless of batches. */
export async function* oneByOne<T>(lists: AsyncIterable<readonly T[]>): AsyncGenerator<T, void, undefined> {
  for await (const list of lists) yield* list;
}

/** The error that a promise rejects with. */
export const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => {
      throw new Error("it did not fail");
    },
    (error: unknown) => error,
  );

/** A promise and its resolver. */
export const gate = () => Promise.withResolvers<void>();
