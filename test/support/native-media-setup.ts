import { HeadObjectCommand } from "@aws-sdk/client-s3";
import { expect } from "vitest";
import { type Clock, systemClock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { charges } from "./generation-setup.ts";
import { type MockFal, startMockFal } from "./mock-fal.ts";
import { type MockGemini, startMockGemini } from "./mock-gemini.ts";
import type { MockProvider } from "./mock-provider.ts";
import { type MockReplicate, startMockReplicate } from "./mock-replicate.ts";
import { movableClock } from "./movable-clock.ts";
import { ofFile } from "./of-file.ts";
import { type Stores, testStores } from "./servers.ts";
import { type Client, type Customer, type Environment, eventually, startService } from "./service.ts";
import { expectUntouched } from "./service-setup.ts";

/** Mocks of the providers under test. */
export interface Providers {
  readonly replicate: MockReplicate;
  readonly fal: MockFal;
  readonly gemini: MockGemini;
}
export type ProviderName = keyof Providers;

export async function startProviders(): Promise<{ providers: Providers; env: Environment }> {
  const [replicate, fal, gemini] = await Promise.all([startMockReplicate(), startMockFal(), startMockGemini()]);
  return {
    providers: { replicate, fal, gemini },
    env: {
      REPLICATE_BASE_URL: replicate.url,
      REPLICATE_API_TOKEN: "r8-operator",
      FAL_BASE_URL: fal.url,
      FAL_KEY: "fal-operator",
      GEMINI_BASE_URL: gemini.url,
      GEMINI_API_KEY: "gemini-operator",
    },
  };
}

/** The pauses between the first polls of a provider's job. */
const pollPausesMs = [2_000, 3_000, 4_500, 6_750];

/** A clock that skips the pauses between polls of a job. */
function pollingClock() {
  const { clock, advance } = movableClock();
  const after: Clock["after"] = (ms, fire) => clock.after(pollPausesMs.includes(ms) ? 10 : ms, fire);
  return { clock: { ...clock, after }, advance };
}

export interface MediaService extends Providers {
  readonly service: Client;
  /** Moves the service's time forward. */
  readonly advance: (ms: number) => void;
  /** The number of the account's files, even if nobody knows their address. */
  readonly filesOf: (customer: Customer) => Promise<number>;
}

/** One service for all tests of a file, with the three providers, which are reset before each. */
export const mediaServiceOfFile = (env: Environment = {}): MediaService =>
  ofFile(
    async (onEnd) => {
      const stores = await testStores();
      const { providers, env: found } = await startProviders();
      const { clock, advance } = pollingClock();
      const service = await startService(stores, { env: { ...found, ...env }, clock, onEnd });
      const files = await openFiles(stores);
      onEnd(() => files.close());
      for (const provider of Object.values(providers) as MockProvider[]) onEnd(() => provider.close());
      return { ...providers, service, advance, filesOf: files.filesOf };
    },
    ({ replicate, fal, gemini }) => {
      for (const provider of [replicate, fal, gemini]) provider.reset();
    },
  );

async function openFiles(stores: Stores) {
  const mongo = await connectMongo(stores.MONGODB_URI, systemClock, createLogger("test", "silent"));
  const s3 = connectS3(stores);
  const isThere = (Key: string) =>
    s3.send(new HeadObjectCommand({ Bucket: stores.S3_BUCKET, Key })).then(
      () => true,
      () => false,
    );
  return {
    filesOf: async ({ id }: Customer) => {
      const records = mongo.connection.collection<{ _id: string; account: string }>("files");
      const known = await records.find({ account: id }).toArray();
      const there = await Promise.all(known.map(({ _id }) => isThere(`files/${_id}`)));
      return there.filter(Boolean).length;
    },
    async close() {
      s3.destroy();
      await mongo.close();
    },
  };
}

/** Expects that nothing was charged, nothing is held, and no file remains. */
export async function expectNothing({ service, filesOf }: MediaService, customer: Customer, usd: string) {
  await expectUntouched(service, customer, usd);
  expect(await charges(customer)).toEqual([]);
  await eventually(async () => (await filesOf(customer)) === 0);
}

/** A provider's requests other than polls and downloads. */
export const posted = ({ requests }: MockProvider) => requests.filter(({ method }) => method === "POST");
