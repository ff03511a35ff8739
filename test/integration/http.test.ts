import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { HeadObjectCommand } from "@aws-sdk/client-s3";
import { describe, expect, test } from "vitest";
import { loadCatalog } from "#catalog";
import { connectS3 } from "../../shared/platform/s3.ts";
import { storesOfRun } from "../support/servers.ts";
import { type Customer, eventually } from "../support/service.ts";
import {
  asking,
  expectUntouched,
  localModel,
  providerModel,
  type Refusal,
  refusal,
  refusalOf,
  serviceOfFile,
} from "../support/service-setup.ts";

const running = serviceOfFile();
const chat = "/v1/chat/completions";
const hi = asking(localModel);
const limitBytes = 25 * 1024 * 1024;
const tooLarge: Refusal = {
  status: 413,
  type: "invalid_request_error",
  code: "request_too_large",
  message: /26214400 bytes/,
};
const ask = (method: string, path: string, headers: Record<string, string> = {}) =>
  fetch(running.service.baseUrl + path, { method, headers });

/** A chat request of exactly this many bytes. */
function requestOf(model: string, bytes: number): string {
  const empty = JSON.stringify(asking(model, "")).length;
  const random = randomBytes(64 * 1024).toString("base64");
  return JSON.stringify(asking(model, random.repeat(Math.ceil(bytes / random.length)).slice(0, bytes - empty)));
}

/** Sends the body in chunks, without a length. */
const postChunked = (customer: Customer, body: Uint8Array<ArrayBuffer>) =>
  fetch(running.service.baseUrl + chat, {
    method: "POST",
    headers: { authorization: `Bearer ${customer.key}` },
    body: new Blob([body]).stream(),
    duplex: "half",
  } as RequestInit);

describe("routes", () => {
  test("HEAD answers as GET does, without a body", async () => {
    for (const path of ["/v1/models", "/v1/models/local/chat", "/healthz", "/openapi.json", "/docs"]) {
      const [head, get] = await Promise.all([ask("HEAD", path), ask("GET", path)]);
      expect([head.status, await head.text()]).toEqual([200, ""]);
      expect(head.headers.get("content-type")).toBe(get.headers.get("content-type"));
      expect(head.headers.get("content-length")).toBe(get.headers.get("content-length"));
      await get.text();
    }
    expect((await ask("HEAD", "/v1/models/no/such")).status).toBe(404);
  });

  test("healthz and readyz", async () => {
    expect(await (await ask("GET", "/healthz")).json()).toEqual({ status: "ok" });
    const readiness = async () => {
      const response = await ask("GET", "/readyz");
      return [response.status, await response.json()];
    };
    const { hash } = loadCatalog(undefined);
    // A store that takes over a second to reply counts as down for the next second.
    await expect.poll(readiness).toEqual([
      200,
      {
        status: "ready",
        mongodb: true,
        redis: true,
        s3: true,
        descriptors: true,
        workers: { chat: 1, embeddings: 1, image: 1, media: 1 },
        catalog: { hash, workers: { [hash]: 1 }, differs: false },
      },
    ]);
  });
});

describe("headers", () => {
  const exposed =
    "x-request-id, request-id, retry-after, x-should-retry, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, x-xm-cost-usd, etag, accept-ranges, content-range, payment-required, payment-response";

  test("web pages may call: CORS headers on answers, errors and preflights", async () => {
    const customer = await running.service.account("1");
    const answers = await Promise.all([
      customer.post(chat, hi, { headers: { origin: "https://page.example" } }),
      customer.post(chat, { ...hi, stream: true }),
      customer.post(chat, {}),
      ask("GET", "/nothing"),
      ask("GET", "/v1/models"),
    ]);
    for (const response of answers) {
      await response.text();
      expect(response.headers.get("access-control-allow-origin")).toBe("*");
      expect(response.headers.get("access-control-allow-credentials")).toBeNull();
      const names = response.headers.get("access-control-expose-headers")?.toLowerCase().split(", ");
      expect(names).toEqual(expect.arrayContaining(exposed.split(", ")));
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      expect(response.headers.get("x-powered-by")).toBeNull();
    }
    const preflight = await ask("OPTIONS", chat, {
      origin: "https://page.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization, content-type, x-stainless-os",
    });
    expect([preflight.status, await preflight.text()]).toEqual([204, ""]);
    expect(preflight.headers.get("access-control-allow-headers")).toBe("authorization, content-type, x-stainless-os");
    expect(preflight.headers.get("access-control-allow-methods")).toContain("POST");
  });

  test("the request id is new for each request, whatever the caller sends", async () => {
    const customer = await running.service.account("1");
    const ids = await Promise.all(
      [1, 2].map(async () => {
        const response = await customer.post(chat, hi, { headers: { "x-request-id": "mine" } });
        await response.text();
        return response.headers.get("x-request-id");
      }),
    );
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^req_[0-9A-Za-z]{20,}$/);
  });

  test("a stream must not be cached, transformed or buffered; JSON has its length", async () => {
    const customer = await running.service.account("1");
    const stream = await customer.post(chat, { ...hi, stream: true }, { headers: { "accept-encoding": "gzip" } });
    await stream.text();
    expect(Object.fromEntries(stream.headers)).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
    });
    expect(stream.headers.get("content-encoding")).toBeNull();
    expect(stream.headers.get("x-xm-cost-usd")).toBeNull();
    const json = await customer.post(chat, hi);
    expect(json.headers.get("content-length")).toBe(String(Buffer.byteLength(await json.text())));
    expect(json.headers.get("x-xm-cost-usd")).toMatch(/^0\.\d+$/);
  });
});

describe("bodies", () => {
  test("any content type, and none, is read as JSON", async () => {
    const customer = await running.service.account("1");
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8"])
      expect((await customer.post(chat, hi, { headers: { "content-type": type } })).status).toBe(200);
    const bytes = new TextEncoder().encode(JSON.stringify(hi));
    expect((await postChunked(customer, bytes)).status).toBe(200);
  });

  test.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
  ])("%s is inflated", async (encoding, compress) => {
    const customer = await running.service.account("1");
    const send = (bytes: Buffer) =>
      fetch(running.service.baseUrl + chat, {
        method: "POST",
        headers: { authorization: `Bearer ${customer.key}`, "content-encoding": encoding },
        body: new Uint8Array(bytes),
      });
    const request = asking(providerModel, "ü".repeat(40_000));
    expect((await send(compress(JSON.stringify(request)))).status).toBe(200);
    expect(running.provider.requests[0]?.body["messages"]).toEqual(request.messages);
    await running.service.settled();
    const before = await customer.available();
    expect(await refusalOf(await send(compress(Buffer.alloc(limitBytes + 1, " "))))).toEqual(refusal(tooLarge));
    expect(await refusalOf(await send(Buffer.from("this is not compressed")))).toEqual(
      refusal({
        status: 400,
        type: "invalid_request_error",
        code: "invalid_value",
      }),
    );
    await expectUntouched(running.service, customer, before);
  });

  test("over 25 MB, declared and not: 413, and the connection can be reused", async () => {
    const customer = await running.service.account("1");
    const body = requestOf(localModel, limitBytes + 1);
    expect(await refusalOf(await customer.post(chat, body))).toEqual(refusal(tooLarge));
    expect(await refusalOf(await postChunked(customer, new TextEncoder().encode(body)))).toEqual(refusal(tooLarge));
    await expectUntouched(running.service, customer, "1.00");
    expect((await customer.post(chat, hi)).status).toBe(200);
  });

  test("a body that breaks off holds and charges nothing", async () => {
    const customer = await running.service.account("1");
    const { hostname, port } = new URL(running.service.baseUrl);
    const socket = connect(Number(port), hostname);
    socket.write(
      `POST ${chat} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${customer.key}\r\ncontent-length: 1000\r\n\r\n{"model"`,
    );
    await once(socket, "connect");
    socket.end();
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 400 /);
    await expectUntouched(running.service, customer, "1.00");
    expect(await customer.ledger("usage")).toEqual([]);
  });

  test.each([
    ["64 KB, in the job", 64 * 1024],
    ["a byte more, in storage", 64 * 1024 + 1],
    ["1 MB", 1024 * 1024],
    ["24 MB", 24 * 1024 * 1024],
  ])("%s passes through unchanged and leaves nothing in storage", async (_, bytes) => {
    const customer = await running.service.account("100");
    const body = requestOf(providerModel, bytes);
    const response = await customer.post(chat, body);
    expect([response.status, Buffer.byteLength(body)]).toEqual([200, bytes]);
    const received = running.provider.requests[0]?.body["messages"] as { content: string }[];
    const sent = (JSON.parse(body) as { messages: { content: string }[] }).messages;
    // Compare by hand: a failure must not print 24 MB.
    expect(received[0]?.content === sent[0]?.content).toBe(true);
    await running.service.settled();
    const stores = await storesOfRun();
    const s3 = connectS3(stores);
    const Key = `bodies/${response.headers.get("x-request-id")}`;
    await eventually(() =>
      s3.send(new HeadObjectCommand({ Bucket: stores.S3_BUCKET, Key })).then(
        () => false,
        (error: Error) => error.name === "NotFound",
      ),
    );
    s3.destroy();
  });
});
