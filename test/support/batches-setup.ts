import { ListObjectsV2Command } from "@aws-sdk/client-s3";
import {
  type Batches,
  createBatches,
  isEnded,
  type StoredBatch,
  type StoredProviderBatch,
} from "../../shared/batches/index.ts";
import { createFiles, type Files } from "../../shared/files/index.ts";
import { createMoney, type Money } from "../../shared/money/index.ts";
import { type Clock, systemClock } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo, type Mongo } from "../../shared/platform/mongo/connection.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { createSecrets } from "../../shared/secrets/index.ts";
import { createWebhooks } from "../../shared/webhooks/index.ts";
import { afterTest, type OnEnd } from "./of-file.ts";
import type { Stores } from "./servers.ts";
import { type Environment, environment, eventually } from "./service.ts";

const log = createLogger("test", "silent");

/** The modules of batches on a service's stores, as one of its processes would have them. */
export async function openBatches(
  stores: Stores,
  { env = {}, clock = systemClock, onEnd = afterTest }: { env?: Environment; clock?: Clock; onEnd?: OnEnd } = {},
): Promise<{
  batches: Batches;
  files: Files;
  money: Money;
  mongo: Mongo;
  /** The keys of the objects whose owner's name begins like this. */
  partsOf: (id: string) => Promise<string[]>;
}> {
  const config = loadConfig(environment(stores, env));
  const mongo = await connectMongo(stores.MONGODB_URI, clock, log);
  onEnd(() => mongo.close());
  const money = createMoney({ mongo, clock, log });
  const files = createFiles({ config, mongo, money, clock, log });
  const webhooks = createWebhooks({ mongo, secrets: createSecrets(config), clock });
  const s3 = connectS3(config, "commands");
  return {
    async partsOf(id) {
      const list = new ListObjectsV2Command({ Bucket: stores.S3_BUCKET, Prefix: `batch/${id}` });
      return ((await s3.send(list)).Contents ?? []).map(({ Key = "" }) => Key);
    },
    batches: createBatches({ mongo, files, webhooks, claimMs: config.API_TIMEOUT_MS, clock, log }),
    files,
    money,
    mongo,
  };
}

type Opened = Awaited<ReturnType<typeof openBatches>>;

export interface Line {
  readonly custom_id: string;
  readonly method?: string;
  readonly url?: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export const chatLine = (n: number, content = `Line ${n}.`, more: object = {}): Line => ({
  custom_id: `line-${n}`,
  body: { model: "local/chat", max_tokens: 20, messages: [{ role: "user", content }], ...more },
});

const chat = "/v1/chat/completions";

/** Stores a file of lines, and creates its batch. */
export async function createBatch(
  { batches, files }: Opened,
  { account, keyId }: { readonly account: string; readonly keyId: string },
  lines: readonly (Line | string)[],
  more: Partial<Parameters<Batches["create"]>[0]> = {},
): Promise<StoredBatch> {
  const { endpoint = chat } = more;
  const texts = lines.map((line) =>
    typeof line === "string" ? line : JSON.stringify({ method: "POST", url: endpoint, ...line }),
  );
  const body = Buffer.from(`${texts.join("\n")}\n`);
  const file = await files.batchFiles.store({
    account,
    requestId: "req_test",
    filename: "in.jsonl",
    bytes: body.length,
    body: (async function* () {
      yield body;
    })(),
  });
  return batches.create({
    account,
    key: keyId,
    kind: "openai",
    endpoint,
    inputFile: file.id,
    metadata: {},
    publicUrl: "http://127.0.0.1",
    ...more,
  });
}

type BatchKey = Pick<StoredBatch, "account" | "_id">;

async function ended({ batches }: Opened, { account, _id }: BatchKey): Promise<StoredBatch | undefined> {
  const batch = await batches.find(account, _id);
  return batch && isEnded(batch) ? batch : undefined;
}

export const endOf = (opened: Opened, batch: BatchKey, withinMs?: number): Promise<StoredBatch> =>
  eventually(() => ended(opened, batch), withinMs).catch(async (error: Error) => {
    throw new Error(`${error.message}\n${await stateOf(opened, batch)}`, { cause: error });
  });

/** Who has what of a batch, to explain a failed test. */
async function stateOf(opened: Opened, { account, _id }: BatchKey): Promise<string> {
  const { status, counts, cursor, dueAt, claimedBy, paused } = (await opened.batches.find(account, _id)) ?? {};
  const [atProviders, lines] = await Promise.all([
    providerBatchesOf(opened, { account, _id }),
    opened.batches.lines.open(account, _id),
  ]);
  const batch = { status, counts, cursor, dueAt, claimedBy, paused };
  return JSON.stringify({ now: new Date(), batch, atProviders, lines }, (name, value: unknown) => {
    if (name === "payload") return undefined;
    return typeof value === "bigint" ? String(value) : value;
  });
}

export const providerBatchesOf = ({ mongo }: Opened, { _id }: BatchKey) =>
  mongo.db.collection<StoredProviderBatch>("providerBatches").find({ batch: _id }).toArray();

/** Until when those who work at the batch now have claimed it. */
export async function claimsOf(opened: Opened, batch: BatchKey): Promise<number[]> {
  const { account, _id } = batch;
  const all = [await opened.batches.find(account, _id), ...(await providerBatchesOf(opened, batch))];
  return all.flatMap((each) => (each?.claimedBy === undefined ? [] : [each.dueAt?.getTime() ?? 0]));
}

interface Moved {
  readonly opened: Opened;
  readonly now: () => number;
  readonly advance: (ms: number) => void;
}

/** Moves the time on until there is an answer, but no claim to its end: a slow machine renews it late. */
export const later = <T>(
  { opened, now, advance }: Moved,
  batch: BatchKey,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  stepMs = 5_000,
): Promise<T> =>
  eventually(async () => {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if ((await claimsOf(opened, batch)).every((until) => until - now() > 15_000)) advance(stepMs);
    return undefined;
  });

/** Moves the time on until the batch has ended. */
export const laterEndOf = (moved: Moved, batch: BatchKey): Promise<StoredBatch> =>
  later(moved, batch, () => ended(moved.opened, batch));

export interface Result {
  readonly custom_id: string;
  readonly response: {
    readonly status_code: number;
    readonly request_id: string;
    readonly x_cost_usd: string;
    readonly body: Readonly<Record<string, unknown>>;
  } | null;
  readonly error: { readonly code: string } | null;
}

/** The lines of the output file, or of the error file. */
export async function resultsOf(
  { files }: Opened,
  { _id, outputs, failures }: StoredBatch,
  of: "outputs" | "failures" = "outputs",
): Promise<Result[]> {
  const parts = { outputs, failures }[of];
  const text = Buffer.concat(await Array.fromAsync(files.batchFiles.openParts(_id, parts))).toString();
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Result);
}
