import {
  CreateBucketCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  type S3Client,
} from "@aws-sdk/client-s3";
import { expect, onTestFinished } from "vitest";
import { createFiles, type Files, filesSchema, type Upload } from "../../shared/files/index.ts";
import type { Money } from "../../shared/money/index.ts";
import type { Clock } from "../../shared/platform/clock.ts";
import { newRequestId, randomBase62 } from "../../shared/platform/ids.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import type { Mongo } from "../../shared/platform/mongo/connection.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { balance, createMovableClock, type MovableClock, openAccount, startMoney } from "./money-setup.ts";
import { migrated } from "./schema.ts";
import { type Stores, testStores } from "./servers.ts";

export const minutesMs = 60_000;
export const hourMs = 60 * minutesMs;
export const dayMs = 24 * hourMs;
export const mib = 1024 * 1024;
export const partSize = 16 * mib;
export const forever = new AbortController().signal;
/** 0.10 USD per 2^30 bytes, rounded half up. */
export const priceOf = (bytes: number) => (BigInt(bytes) * 100_000_000n + 2n ** 29n) / 2n ** 30n;
export const filesConfig = { UPLOAD_USD_PER_GB_DAY: "0.10", BATCH_FILE_QUOTA_BYTES: 10 * 2 ** 30 };
const openingNanoUsd = 1_000_000_000n;

export interface Archive {
  readonly stores: Stores;
  readonly clock: MovableClock;
  readonly money: Money;
  readonly mongo: Mongo;
  readonly s3: S3Client;
  readonly files: Files;
  readonly account: string;
  /** Another process on the same stores. */
  another(more?: { clock?: Clock; money?: Money; env?: Partial<FilesConfig> }): Files;
  readonly ask: () => { account: string; keyId: string; requestId: string };
  readonly objects: () => Promise<string[]>;
  readonly multiparts: () => Promise<string[]>;
  /** Storage's own id of an upload in parts. */
  uploadIdOf(id: string): Promise<string>;
  records(collection?: "uploads" | "files" | "batchFiles"): Promise<Record<string, unknown>[]>;
  /** Expects no object, no open multipart upload, no hold, a correct ledger, and this much paid. */
  expectNothing(paidNanoUsd?: bigint): Promise<void>;
  /** Like `expectNothing`, and no record. */
  expectNoTrace(): Promise<void>;
  expectMoney(paidNanoUsd: bigint): Promise<void>;
}

type FilesConfig = Parameters<typeof createFiles>[0]["config"];

/** A separate bucket and database, one process on them, an account with a balance. */
export async function startArchive(options: { stores?: Stores; env?: Partial<FilesConfig> } = {}): Promise<Archive> {
  const given = options.stores ?? (await testStores());
  const stores = { ...given, S3_BUCKET: `t-${randomBase62(16).toLowerCase()}` };
  const clock = createMovableClock();
  const { money, mongo } = await startMoney(stores.MONGODB_URI, clock);
  const s3 = connectS3(stores);
  onTestFinished(() => s3.destroy());
  await s3.send(new CreateBucketCommand({ Bucket: stores.S3_BUCKET }));
  const log = createLogger("test", "silent");
  const another: Archive["another"] = (more = {}) =>
    createFiles({
      config: { ...stores, ...filesConfig, ...options.env, ...more.env },
      mongo,
      money: more.money ?? money,
      clock: more.clock ?? clock,
      log,
    });
  const files = another();
  await migrated(mongo, [filesSchema]);
  const account = await openAccount(money, openingNanoUsd);
  const Bucket = stores.S3_BUCKET;

  const archive: Archive = {
    stores,
    clock,
    money,
    mongo,
    s3,
    files,
    account,
    another,
    ask: () => ({ account, keyId: "key_test", requestId: newRequestId() }),
    async objects() {
      const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket }));
      return Contents.map(({ Key = "" }) => Key);
    },
    async multiparts() {
      const { Uploads = [] } = await s3.send(new ListMultipartUploadsCommand({ Bucket }));
      return Uploads.map(({ Key = "" }) => Key);
    },
    async uploadIdOf(id) {
      const records = mongo.connection.collection<{ _id: string; multipart: { uploadId: string } }>("uploads");
      const { multipart } = (await records.findOne({ _id: id })) ?? {};
      if (!multipart) throw new Error(`${id} has no parts`);
      return multipart.uploadId;
    },
    records: (collection = "uploads") =>
      mongo.connection.collection(collection).find({}).sort({ createdAt: 1 }).toArray(),
    async expectMoney(paidNanoUsd) {
      const availableNanoUsd = openingNanoUsd - paidNanoUsd;
      expect(await balance(money, account)).toEqual({ availableNanoUsd, heldNanoUsd: 0n, openHolds: 0 });
      expect(await money.check()).toMatchObject({ ok: true, differenceNanoUsd: 0n, openHolds: 0 });
    },
    async expectNothing(paidNanoUsd = 0n) {
      expect(await archive.objects()).toEqual([]);
      expect(await archive.multiparts()).toEqual([]);
      await archive.expectMoney(paidNanoUsd);
    },
    async expectNoTrace() {
      expect(await archive.records()).toEqual([]);
      await archive.expectNothing();
    },
  };
  return archive;
}

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAACXBIWXMAAAABAAAAAQBPJcTWAAAAF0lEQVR4nGP4y8BAEiJN9aiGUQ1DSgMAfsz9ATa/hGgAAAAASUVORK5CYII=",
  "base64",
);
/** A real PNG; bytes after its end are ignored. */
export const pngOf = (bytes = png.length) => Buffer.concat([png, Buffer.alloc(Math.max(0, bytes - png.length), 7)]);
/** A WAV of any length; no two parts of it are alike. */
export function wavOf(bytes: number): Buffer {
  const head = Buffer.from(
    "RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0",
    "latin1",
  );
  head.writeUInt32LE(bytes - 8, 4);
  head.writeUInt32LE(bytes - head.length, 40);
  return Buffer.concat([head, Buffer.alloc(bytes - head.length, samples)]);
}
/** A prime number of samples. */
const samples = Buffer.from(Array.from({ length: 65_521 }, (_, at) => (at * 2_654_435_761) >>> 24));

/** Splits the body into chunks, as a socket does. */
export async function* pieces(body: Buffer, size = 64 * 1024): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += size) yield body.subarray(at, at + size);
}

/** A complete raw upload. */
export async function upload({ files, ask }: Pick<Archive, "files" | "ask">, body: Buffer): Promise<Upload> {
  const receiving = await files.uploads.begin({ ...ask(), maxBytes: body.length });
  return receiving.store({ bytes: body.length, body: pieces(body) });
}

/** Stores a file of a model, of 10 MiB at most. */
export function storeGenerated(
  { files, ask }: Pick<Archive, "files" | "ask">,
  body: Buffer | AsyncIterable<Buffer>,
  more: { readonly limitBytes?: number; readonly signal?: AbortSignal } = {},
) {
  const { account, requestId } = ask();
  return files.generated.store({ account, requestId, body, limitBytes: 10 * mib, signal: forever, ...more });
}

/** Sends all parts, or the named ones, by their links. */
export async function sendParts({ multipart }: Upload, body: Buffer, which?: readonly number[]): Promise<void> {
  if (!multipart) throw new Error("no parts");
  const some = multipart.parts.filter(({ partNumber }) => !which || which.includes(partNumber));
  const sent = some.map(async ({ partNumber, url, bytes }) => {
    const from = (partNumber - 1) * multipart.partSize;
    const answer = await fetch(url, { method: "PUT", body: new Uint8Array(body.subarray(from, from + bytes)) });
    if (!answer.ok) throw new Error(`part ${partNumber}: ${answer.status} ${await answer.text()}`);
  });
  await Promise.all(sent);
}

/** A multipart upload whose parts are all sent. */
export async function sent(archive: Pick<Archive, "files" | "ask">, body: Buffer, mime = "audio/wav") {
  const started = await archive.files.uploads.start({ ...archive.ask(), bytes: body.length, mime });
  await sendParts(started, body);
  return started;
}

/** The charge of an upload as an API instance makes it. */
export const storageCharge = ({ account }: Pick<Archive, "account">, { requestId, bytes }: Upload) => ({
  kind: "storage" as const,
  account,
  requestId,
  key: "key_test",
  endpoint: "/v1/uploads",
  heldNanoUsd: priceOf(bytes),
  costNanoUsd: priceOf(bytes),
  status: "succeeded" as const,
  attempts: [],
  usage: {},
  estimated: false,
  totalMs: 1,
});

export const outcomeOf = (each: PromiseSettledResult<unknown>): unknown =>
  each.status === "fulfilled" ? "done" : (each.reason as { code?: string }).code;

export const refused = (code: string, param?: string) =>
  expect.objectContaining({ code, ...(param !== undefined && { param }) });
