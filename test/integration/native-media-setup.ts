import { HeadObjectCommand } from "@aws-sdk/client-s3";
import { expect } from "vitest";
import { type Clock, systemClock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { type MockFal, startMockFal } from "../support/mock-fal.ts";
import { type MockGemini, startMockGemini } from "../support/mock-gemini.ts";
import type { MockMaker } from "../support/mock-maker.ts";
import { type MockReplicate, startMockReplicate } from "../support/mock-replicate.ts";
import { type Stores, testStores } from "../support/servers.ts";
import { type Client, type Customer, type Environment, eventually, startService } from "../support/service.ts";
import { charges } from "./generation-setup.ts";
import { ofFile } from "./of-file.ts";
import { expectUntouched } from "./service-setup.ts";

/** Stand-ins of the makers that these tests are about. */
export interface Makers {
  readonly replicate: MockReplicate;
  readonly fal: MockFal;
  readonly gemini: MockGemini;
}
export type MakerName = keyof Makers;

export async function startMakers(): Promise<{ makers: Makers; env: Environment }> {
  const [replicate, fal, gemini] = await Promise.all([startMockReplicate(), startMockFal(), startMockGemini()]);
  return {
    makers: { replicate, fal, gemini },
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

/** Nobody waits here for the time between two looks at a job. */
const quickClock: Clock = {
  ...systemClock,
  after: (ms, fire) => systemClock.after(ms === 2_000 || ms === 3_000 ? 10 : ms, fire),
};

export interface MediaService extends Makers {
  readonly service: Client;
  /** How many files of the account there are, whoever knows their address. */
  readonly filesOf: (customer: Customer) => Promise<number>;
}

/** One service for all tests of a file, with the three makers; they have forgotten everything before each. */
export const mediaServiceOfFile = (env: Environment = {}): MediaService =>
  ofFile(
    async (onEnd) => {
      const stores = await testStores();
      const { makers, env: found } = await startMakers();
      const service = await startService(stores, { env: { ...found, ...env }, clock: quickClock, onEnd });
      const files = await openFiles(stores);
      onEnd(() => files.close());
      for (const maker of Object.values(makers) as MockMaker[]) onEnd(() => maker.close());
      return { ...makers, service, filesOf: files.filesOf };
    },
    ({ replicate, fal, gemini }) => {
      for (const maker of [replicate, fal, gemini]) maker.reset();
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

/** Nothing was charged, nothing is held, no file is left. */
export async function expectNothing({ service, filesOf }: MediaService, customer: Customer, usd: string) {
  await expectUntouched(service, customer, usd);
  expect(await charges(customer)).toEqual([]);
  await eventually(async () => (await filesOf(customer)) === 0);
}

/** What was asked of a maker but for looks and downloads. */
export const posted = ({ requests }: MockMaker) => requests.filter(({ method }) => method === "POST");
