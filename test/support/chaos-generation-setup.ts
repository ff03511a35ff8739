import { ListMultipartUploadsCommand, ListObjectsV2Command } from "@aws-sdk/client-s3";
import { expect, onTestFinished } from "vitest";
import { createFiles, type Files } from "#files";
import { createMoney, type Money } from "#money";
import { loadConfig } from "#platform/config";
import { createLogger } from "#platform/logger";
import { connectMongo } from "#platform/mongo/connection";
import { connectS3 } from "#platform/s3";
import { callsOf, type ErrorBody, ready, redisOf } from "./chaos-setup.ts";
import { keysOf } from "./jobs-setup.ts";
import { createManualClock, type ManualClock } from "./manual-clock.ts";
import type { MockOpenai, MockRequest } from "./mock-openai.ts";
import { brokenWire, type Command, type Fate } from "./money-proxy.ts";
import type { Stores } from "./servers.ts";
import { type Client, type Customer, eventually } from "./service.ts";

export const imagesPath = "/v1/images/generations";
export const mediaPath = "/v1/media/generations";
/** 0.04 USD per image. */
export const askImage = (more: object = {}) => ({ model: "mock/image", prompt: "A fox", ...more });
/** 0.10 USD per second. */
export const askVideo = (more: object = {}) => ({ model: "mock/video", input: { prompt: "A fox", ...more } });
export const keyed = (key = "once") => ({ headers: { "idempotency-key": key } });
/** A video that is not done at the first poll, but at the second. */
export const slowVideo = { states: ["in_progress", "completed"] };

interface Body extends Partial<ErrorBody> {
  readonly id?: string;
  readonly data?: readonly { readonly url?: string; readonly b64_json?: string }[];
  readonly files?: readonly { readonly url: string; readonly bytes: number }[];
}

/** The outcome of a call that generates files. */
export async function outcomeOf(answer: Promise<Response>) {
  const { status, headers, ...response } = await answer.then(async (response) => ({
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Body,
  }));
  const { body } = response;
  return {
    status,
    body,
    code: body.error?.code,
    requestId: headers.get("x-request-id"),
    retryAfter: headers.get("retry-after"),
    replayed: headers.get("idempotent-replayed") === "true",
    costUsd: headers.get("x-xm-cost-usd"),
    urls: [...(body.data ?? []), ...(body.files ?? [])].flatMap(({ url }) => url ?? []),
  };
}
export type Outcome = Awaited<ReturnType<typeof outcomeOf>>;

/** True for an error after which a caller should retry; nothing was charged for it. */
export function isRefusal({ status, code, retryAfter }: Outcome): boolean {
  return status === 503 && (code === "no_capacity" || code === "generation_in_progress") && Number(retryAfter) > 0;
}

/** Repeats the same request with the same key, as often as the service allows it. */
export async function repeated(ask: () => Promise<Response>): Promise<Outcome> {
  for (;;) {
    const outcome = await outcomeOf(ask());
    if (outcome.status === 200) return outcome;
    if (!isRefusal(outcome)) throw new Error(`${outcome.status}: ${JSON.stringify(outcome.body)}`);
  }
}

/** Expects every file of the response to be complete, at whichever instance. */
export async function expectFiles({ baseUrl }: Client, { urls }: Outcome, bytes: Buffer): Promise<void> {
  expect(urls).toHaveLength(1);
  for (const url of urls) {
    const file = await fetch(`${baseUrl}${new URL(url).pathname}`);
    expect(file.status).toBe(200);
    expect(Buffer.from(await file.arrayBuffer()).equals(bytes)).toBe(true);
  }
}

/** Like the customer's own `post`, at another instance. */
export const postAt =
  ({ baseUrl }: Client, { key }: Customer) =>
  (path: string, body: object, init: { headers?: Record<string, string> } = {}): Promise<Response> =>
    fetch(`${baseUrl}${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${key}`, ...init.headers },
    });

/** The charges for the account's calls, without free ones. */
export async function charges(client: Client, customer: Customer): Promise<string[]> {
  await client.settled();
  const calls = await callsOf(client, customer);
  return calls.filter(({ amount_usd }) => amount_usd !== "0.00").map(({ amount_usd }) => amount_usd);
}

export const posts = ({ requests }: MockOpenai): readonly MockRequest[] =>
  requests.filter(({ method }) => method === "POST");
/** The number of a provider's jobs that have been polled. */
export function jobsPolled({ requests }: MockOpenai): number {
  const polls = requests.filter(({ method, path }) => method === "GET" && /^\/v1\/videos\/[^/]+$/.test(path));
  return new Set(polls.map(({ path }) => path)).size;
}

/**
 * MongoDB behind a proxy that blocks some commands until they are released. `reached` resolves when the first one
 * arrives.
 */
export async function holdCommands(stores: Stores, isHeld: (command: Command) => boolean) {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const uri = await brokenWire(stores.MONGODB_URI, async (command): Promise<Fate> => {
    if (isHeld(command)) {
      resolve();
      await gate.promise;
    }
    return "pass";
  });
  return { stores: { ...stores, MONGODB_URI: uri }, reached, letThrough: gate.resolve };
}

/**
 * MongoDB behind a proxy for an API, and a way to make calls of which all but the first wait for the first hold of
 * their account, so that they are admitted in one turn of the event loop.
 */
export async function gathering(stores: Stores) {
  let isHolding = false;
  const held = await holdCommands(
    stores,
    ({ update, findAndModify }) => isHolding && (findAndModify ?? update) === "accounts",
  );
  const redis = redisOf(stores);
  async function slotsTaken(): Promise<number> {
    const keys = await keysOf(redis, "limits:*:running");
    const counts = await Promise.all(keys.map((key) => redis.zcard(key)));
    return counts.reduce((sum, count) => sum + count, 0);
  }
  async function gather<Made>(client: Client, count: number, make: (index: number) => Made): Promise<readonly Made[]> {
    const before = await slotsTaken();
    isHolding = true;
    const made = Array.from({ length: count }, (_, index) => make(index));
    await held.reached;
    await eventually(async () => (await slotsTaken()) === before + count);
    await ready(client);
    isHolding = false;
    held.letThrough();
    return made;
  }
  return { apiStores: held.stores, gather };
}

export interface Later {
  readonly clock: ManualClock;
  readonly files: Files;
  readonly money: Money;
  /** Keys of all objects in the bucket, and of multipart uploads that are open. */
  objects(): Promise<string[]>;
  /** Moves the clock on, ends overdue holds and removes expired data. */
  pass(ms: number): Promise<void>;
}

/** The service's maintenance at another time: it uses the same stores, and the test's clock. */
export async function maintenance(stores: Stores): Promise<Later> {
  const clock = createManualClock(Date.now());
  const log = createLogger("test", "silent");
  const mongo = await connectMongo(stores.MONGODB_URI, clock, log);
  const s3 = connectS3(stores);
  onTestFinished(async () => {
    s3.destroy();
    await mongo.close();
  });
  const money = createMoney({ mongo, clock, log });
  const files = createFiles({ config: loadConfig({ ...stores }), mongo, money, clock, log });
  const Bucket = stores.S3_BUCKET;
  return {
    clock,
    files,
    money,
    async objects() {
      const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket }));
      const { Uploads = [] } = await s3.send(new ListMultipartUploadsCommand({ Bucket }));
      return [...Contents, ...Uploads].map(({ Key = "" }) => Key);
    },
    async pass(ms) {
      clock.advance(ms);
      await money.sweep((requestId, account) => files.uploads.isPending(account, requestId));
      await files.expire();
    },
  };
}
