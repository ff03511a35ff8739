import { readdirSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename } from "node:path";
import {
  CreateBucketCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  type S3Client,
} from "@aws-sdk/client-s3";
import { afterEach, beforeAll, expect, onTestFinished } from "vitest";
import { createDetachedCalls } from "../../shared/detached-calls/index.ts";
import { createFiles, type Files } from "../../shared/files/index.ts";
import { createIdempotencyStore, type IdempotencyStore } from "../../shared/idempotency/index.ts";
import { createMoney } from "../../shared/money/index.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { randomBase62 } from "../../shared/platform/ids.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { createSecrets } from "../../shared/secrets/index.ts";
import { createWebhooks } from "../../shared/webhooks/index.ts";
import { movableClock } from "./movable-clock.ts";
import { type Stores, testStores } from "./servers.ts";
import { type Client, type Customer, type Environment, eventually, startService } from "./service.ts";

type Body = NonNullable<RequestInit["body"]>;

/** docs/api/inference.md, "Upload". */
export interface UploadAnswer {
  readonly id: string;
  readonly object: "upload";
  readonly url: string | null;
  readonly mime: string;
  readonly kind: string;
  readonly bytes: number;
  readonly created_at: number;
  readonly expires_at: number;
  readonly status: string;
  readonly cost_usd: string;
  readonly part_size: number;
  readonly links_expire_at: number;
  readonly part_urls: readonly { readonly part_number: number; readonly url: string; readonly bytes: number }[];
  readonly complete_url: string;
}

export interface UploadService {
  readonly stores: Stores;
  readonly service: Client;
  readonly s3: S3Client;
  /** The service's files from the view of a worker. */
  readonly files: Files;
  readonly idempotency: IdempotencyStore;
  /** Moves the time of the service. */
  advance(ms: number): void;
  customer(usd?: string): Promise<Uploader>;
  /** One uploader for all tests in which nothing is created. */
  refused(): Promise<Uploader>;
  /** A second service on the same stores. */
  another(more?: Environment): Promise<{ readonly service: Client; readonly stop: () => Promise<void> }>;
}

export interface Uploader extends Customer {
  readonly headers: { readonly authorization: string };
  raw(body: Body, headers?: Record<string, string>): Promise<Response>;
  form(form: FormData, headers?: Record<string, string>): Promise<Response>;
  start(bytes: unknown, mime: unknown, headers?: Record<string, string>): Promise<Response>;
  get(path: string, method?: string): Promise<Response>;
  /** All uploads, newest first. */
  list(): Promise<readonly UploadAnswer[]>;
}

/** A service, and its files module. */
export interface Running
  extends Pick<UploadService, "stores" | "service" | "s3" | "files" | "idempotency" | "advance"> {
  readonly stop: () => Promise<void>;
}

export async function startOn(given: Stores, env: Environment = {}): Promise<Running> {
  const stores = { ...given, S3_BUCKET: `uploads-${randomBase62(16).toLowerCase()}` };
  const config = loadConfig({ ...stores, ...env });
  const s3 = connectS3(config);
  await s3.send(new CreateBucketCommand({ Bucket: stores.S3_BUCKET }));
  const { clock, advance } = movableClock();
  const log = createLogger("test", "silent");
  const mongo = await connectMongo(config.MONGODB_URI, clock, log);
  const money = createMoney({ mongo, clock, log });
  const files = createFiles({ config, mongo, money, clock, log });
  const webhooks = createWebhooks({ mongo, secrets: createSecrets(config), clock });
  const detachedCalls = createDetachedCalls({ mongo, money, files, webhooks, clock, log });
  const idempotency = createIdempotencyStore({ mongo, money, detachedCalls, clock });
  const stops = [() => mongo.close(), async () => s3.destroy()];
  const service = await startService(stores, { env, clock, onEnd: (stop) => stops.unshift(stop) });
  return {
    stores,
    service,
    s3,
    files,
    idempotency,
    advance,
    async stop() {
      for (const stop of stops) await stop();
    },
  };
}

/**
 * One service for the tests of a file, with a separate bucket. After each test storage has the active uploads and
 * nothing else: no object, no open multipart upload, no spooled form, and no open hold.
 */
export function uploadServiceOfFile(env: Environment = {}): UploadService {
  let running: Running | undefined;
  const customers: Uploader[] = [];
  let refused: Promise<Uploader> | undefined;
  const before = spoolNames();
  beforeAll(async () => {
    running = await startOn(await testStores(), env);
    return running.stop;
  });
  const there = () => {
    if (!running) throw new Error("only inside a test");
    return running;
  };
  const another = async (more: Environment = {}) => {
    let stop = () => Promise.resolve();
    const service = await startService(there().stores, {
      env: { ...env, ...more },
      onEnd: (end) => {
        let ended: Promise<void> | undefined;
        stop = () => (ended ??= end());
        onTestFinished(stop);
      },
    });
    return { service, stop };
  };
  afterEach(async () => {
    const { stores, service, s3 } = there();
    const mine = customers.splice(0);
    const lists = await Promise.all(mine.map((uploader) => uploader.list()));
    const active = lists.map((list) => list.filter(({ status }) => status === "active"));
    const expected = active.flat().map(({ id }) => `uploads/${id}`);
    await eventually(async () => (await keysOf(s3, stores.S3_BUCKET)).length === expected.length);
    expect(await keysOf(s3, stores.S3_BUCKET)).toEqual(expected.toSorted());
    for (const [at, uploader] of mine.entries())
      await Promise.all((active[at] ?? []).map(({ id }) => uploader.get(`/${id}`, "DELETE")));
    const parts = await s3.send(new ListMultipartUploadsCommand({ Bucket: stores.S3_BUCKET }));
    expect(parts.Uploads ?? []).toEqual([]);
    expect(openSpools()).toEqual([]);
    await eventually(() => spoolNames().every((name) => before.includes(name)));
    await service.settled();
  });
  return {
    get stores() {
      return there().stores;
    },
    get service() {
      return there().service;
    },
    get s3() {
      return there().s3;
    },
    get files() {
      return there().files;
    },
    get idempotency() {
      return there().idempotency;
    },
    advance: (ms) => there().advance(ms),
    another,
    async customer(usd = "10.00") {
      const uploader = uploaderOf(there().service, await there().service.account(usd));
      customers.push(uploader);
      return uploader;
    },
    refused: () =>
      (refused ??= there()
        .service.account("10.00")
        .then((account) => uploaderOf(there().service, account))),
  };
}

async function keysOf(s3: S3Client, bucket: string): Promise<string[]> {
  const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: bucket }));
  return Contents.map(({ Key }) => Key as string).toSorted();
}

const spoolName = /^inference-\w{24}$/;
const spoolNames = (): string[] => readdirSync(tmpdir()).filter((name) => spoolName.test(name));

/** Form files that this process, which runs the service, still has open. Their names are already removed. */
export const openSpools = (): string[] =>
  readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return spoolName.test(basename(path).replace(" (deleted)", "")) ? [path] : [];
    } catch {
      return [];
    }
  });

export function uploaderOf(service: Client, customer: Customer): Uploader {
  const url = `${service.baseUrl}/v1/uploads`;
  const headers = { authorization: `Bearer ${customer.key}` };
  return {
    ...customer,
    headers,
    raw: (body, more) =>
      fetch(url, {
        method: "POST",
        body,
        headers: { ...headers, "content-type": "application/octet-stream", ...more },
      }),
    form: (body, more) => fetch(url, { method: "POST", body, headers: { ...headers, ...more } }),
    start: (bytes, mime, more) => customer.post("/v1/uploads", { bytes, mime }, { ...(more && { headers: more }) }),
    get: (path, method = "GET") => fetch(`${url}${path}`, { method, headers }),
    async list() {
      const data: UploadAnswer[] = [];
      for (let after: string | null = ""; after !== null; ) {
        const query: string = after && `&after=${after}`;
        const page = await fetch(`${url}?limit=200${query}`, { headers });
        const { data: more, next } = (await page.json()) as { data: UploadAnswer[]; next: string | null };
        data.push(...more);
        after = next;
      }
      return data;
    },
  };
}

/** The response, which must be 200. */
export async function ok(answer: Response | Promise<Response>): Promise<UploadAnswer> {
  const response = await answer;
  const text = await response.text();
  expect({ status: response.status, text }).toMatchObject({ status: 200 });
  return JSON.parse(text) as UploadAnswer;
}

/** Status and code of a refusal, and its field. */
export async function refused(answer: Response | Promise<Response>) {
  const response = await answer;
  const { error } = (await response.json()) as { error: { code: string; param: string | null; message: string } };
  return { status: response.status, code: error.code, param: error.param, message: error.message };
}
