import { ListObjectsV2Command } from "@aws-sdk/client-s3";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { loadConfig } from "../../shared/platform/config.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { type Customer, environment, eventually, postWith } from "./service.ts";
import { asking, providerModel, type Running } from "./service-setup.ts";

export const limits = { requests_per_minute: 100_000, tokens_per_minute: 100_000_000, concurrent_requests: 2_000 };
export const on = { "x-xm-cache": "true" };
/** The keys of the account that send it share entries. */
export const shared = { ...on, "x-xm-cache-scope": "account" };
export const chat = "/v1/chat/completions";

export const cacheOf = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith("x-xm-cache") || name === "x-xm-cost-usd"));

/** Without what a hit has anew: ids, times, the cost and the note that it was cached; and without pings. */
export const same = (text: string) =>
  text
    .replaceAll(": ping\n\n", "")
    .replaceAll(/"(id|responseId)": ?"[a-z]*[-_]?[^"]*"/g, '"$1":""')
    .replaceAll(/"(created|created_at|completed_at)": ?\d+/g, '"$1":0')
    .replaceAll(/"cost_usd": ?"[\d.]+"(,"cached_response":true)?/g, '"cost_usd":""');

export const idOf = (text: string) => /"(?:id|responseId)": ?"([^"]*)"/.exec(text)?.[1];

export const askingAs = (customer: Customer, more: object = {}, headers: Record<string, string> = {}) =>
  customer.post(chat, { ...asking(providerModel), ...more }, { headers: { ...on, ...headers } });

/** Another key of the account. */
export const keyOf = async (
  { service }: Pick<Running, "service">,
  customer: Customer,
  fields: object,
): Promise<Customer> => {
  const { key } = await service.admin<{ key: string }>("POST", `/accounts/${customer.id}/keys`, fields);
  return { ...customer, key, post: postWith(service.baseUrl, key) };
};

/** Makes calls one after the other, and returns what the cache had of each. */
export async function inTurn(asked: readonly (() => Promise<Response>)[]): Promise<(string | null)[]> {
  const found: (string | null)[] = [];
  for (const ask of asked) {
    const response = await ask();
    await response.text();
    found.push(response.headers.get("x-xm-cache"));
  }
  return found;
}

/** Resolves when this many requests of the account wait for an equal one. */
export async function following(running: Pick<Running, "stores">, { id }: Customer, count: number): Promise<void> {
  const redis = openCache(running);
  await eventually(async () => {
    const flights = await redis.keys(`cache:{${id}}:*:flight`);
    const followers = await Promise.all(flights.map((flight) => redis.hget(flight, "followers")));
    return followers.reduce((sum, each) => sum + Number(each), 0) === count;
  });
}

/** Reads a stream step by step. */
export function readerOf({ body }: Response) {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  async function until(isEnough: () => boolean): Promise<string> {
    while (!isEnough()) {
      const { value, done } = await reader.read();
      if (done) return text;
      text += decoder.decode(value, { stream: true });
    }
    return text;
  }
  return { until: (part: string) => until(() => text.includes(part)), rest: () => until(() => false) };
}

function openCache({ stores }: Pick<Running, "stores">): Redis {
  const redis = new Redis(stores.CACHE_REDIS_URL ?? "");
  onTestFinished(() => redis.disconnect());
  return redis;
}

/** How many entries of an account there are, or calls whose answers may become some. */
export const keptOf = async (running: Pick<Running, "stores">, { id }: Customer, kind: "entry" | "flight") =>
  (await openCache(running).keys(`cache:{${id}}:*:${kind}`)).length;

/** Ends what no leader renews. */
export async function endFlights(running: Pick<Running, "stores">, { id }: Customer): Promise<void> {
  const redis = openCache(running);
  await redis.del(await redis.keys(`cache:{${id}}:*:flight`));
}

/** The number of an account's answers in object storage. */
export async function storedTextsOf({ stores }: Pick<Running, "stores">, { id }: Customer): Promise<number> {
  const s3 = connectS3(loadConfig(environment(stores)), "commands");
  onTestFinished(() => s3.destroy());
  const list = new ListObjectsV2Command({ Bucket: stores.S3_BUCKET, Prefix: `cached/${id}/` });
  return (await s3.send(list)).KeyCount ?? 0;
}
