import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { newRequestId } from "../../shared/platform/ids.ts";
import { ownServers, testStores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";
import { fileOf, type Kind, mebi, piecesOf } from "../support/uploads-files.ts";
import { type Running, refused, startOn } from "../support/uploads-setup.ts";
import { openWire } from "../support/wire.ts";

let there: Running;
beforeAll(async () => {
  there = await startOn(await testStores());
});
afterAll(() => there.stop());

const bytes = 100_000;
const file = fileOf("png", bytes).fill("some bytes ", 1_000);

/** A generated file, and its address. */
async function made({ files, service }: Running, body: Buffer | AsyncIterable<Buffer> = file) {
  const { signal } = new AbortController();
  const ask = { account: "acct_of_the_test", requestId: newRequestId(), body, limitBytes: 200 * mebi, signal };
  const file = await files.generated.store(ask);
  return { ...file, url: `${service.baseUrl}/media/${file.id}` };
}

const bodyOf = async (response: Response) => Buffer.from(await response.arrayBuffer());
const gone = { status: 410, code: "file_expired" };
const unknown = { status: 404, code: "not_found" };

test("a file is served by its id alone, and caches may not store it beyond its lifetime", async () => {
  const begunAt = Date.now();
  const { id, url, contentType, expiresAt } = await made(there);
  const response = await fetch(url);
  const elapsedSeconds = Math.ceil((Date.now() - begunAt) / 1_000);
  expect(response.status).toBe(200);
  expect(contentType).toBe("image/png");
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-type": "image/png",
    "content-length": String(bytes),
    "content-disposition": `inline; filename="${id}.png"`,
    "accept-ranges": "bytes",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "cross-origin",
    "access-control-allow-origin": "*",
    etag: expect.stringMatching(/^"[^"]+"$/) as string,
    "last-modified": new Date(expiresAt - 86_400_000).toUTCString(),
  });
  const [, age] = /^private, max-age=(\d+), immutable$/.exec(response.headers.get("cache-control") ?? "") ?? [];
  expect(Number(age)).toBeGreaterThanOrEqual(86_400 - 1 - elapsedSeconds);
  expect(Number(age)).toBeLessThanOrEqual(86_400);
  expect((await bodyOf(response)).equals(file)).toBe(true);
});

test("HEAD has the same headers and no body", async () => {
  const { url } = await made(there);
  const [head, whole] = await Promise.all([
    fetch(url, { method: "HEAD", headers: { range: "bytes=0-9" } }),
    fetch(url),
  ]);
  expect(head.status).toBe(200);
  const stable = (response: Response) =>
    Object.fromEntries(
      [...response.headers].filter(([name]) => !/date|request-id|cache-control|connection|keep-alive/.test(name)),
    );
  expect(stable(head)).toEqual(stable(whole));
  expect((await bodyOf(head)).length).toBe(0);
  await whole.arrayBuffer();
});

test.for<readonly [range: string, status: 200 | 206 | 416, start?: number, end?: number]>([
  ["bytes=0-0", 206, 0, 0],
  ["bytes=100-199", 206, 100, 199],
  ["bytes=99990-", 206, 99_990, 99_999],
  ["bytes=99990-200000", 206, 99_990, 99_999],
  ["bytes=-10", 206, 99_990, 99_999],
  ["bytes=0-", 206, 0, 99_999],
  ["bytes=100000-", 416],
  ["bytes=100000-100001", 416],
  ["bytes=-0", 416],
  ["bytes=0-1,5-6", 200, 0, 99_999],
  ["lines=0-1", 200, 0, 99_999],
  ["bytes", 200, 0, 99_999],
  ["bytes=one-two", 200, 0, 99_999],
])("Range: %s is %i, with that part, all of it or only its length", async ([range, status, start = 0, end = -1]) => {
  const { url } = await made(there);
  const response = await fetch(url, { headers: { range } });
  const { headers } = response;
  expect(response.status).toBe(status);
  const shown = { 200: null, 206: `bytes ${start}-${end}/${bytes}`, 416: `bytes */${bytes}` }[status];
  expect(headers.get("content-range")).toBe(shown);
  expect(headers.get("content-length")).toBe(String(end - start + 1));
  expect(headers.get("content-type")).toBe(status === 416 ? null : "image/png");
  expect(headers.has("cache-control")).toBe(status !== 416);
  expect((await bodyOf(response)).equals(file.subarray(start, end + 1))).toBe(true);
});

test("a caller with a current copy gets 304; another tag or an older date gets the file", async () => {
  const { url } = await made(there);
  const { headers } = await fetch(url, { method: "HEAD" });
  const [etag, modified] = [headers.get("etag") ?? "", headers.get("last-modified") ?? ""];
  const status = async (asked: Record<string, string>) => {
    const response = await fetch(url, { headers: asked });
    expect(response.headers.get("etag")).toBe(etag);
    await response.arrayBuffer();
    return response.status;
  };
  expect(await status({ "if-none-match": etag })).toBe(304);
  expect(await status({ "if-none-match": `"another", W/${etag}` })).toBe(304);
  expect(await status({ "if-none-match": "*" })).toBe(304);
  expect(await status({ "if-none-match": '"another"' })).toBe(200);
  expect(await status({ "if-modified-since": modified })).toBe(304);
  expect(await status({ "if-modified-since": new Date(0).toUTCString() })).toBe(200);
});

test("If-Range returns the part if the validator matches, else the whole file", async () => {
  const { url } = await made(there);
  const { headers } = await fetch(url, { method: "HEAD" });
  const status = async (ifRange: string) => {
    const response = await fetch(url, { headers: { range: "bytes=0-9", "if-range": ifRange } });
    await response.arrayBuffer();
    return response.status;
  };
  expect(await status(headers.get("etag") ?? "")).toBe(206);
  expect(await status(headers.get("last-modified") ?? "")).toBe(206);
  expect(await status(`W/${headers.get("etag")}`)).toBe(200);
  expect(await status('"another"')).toBe(200);
  expect(await status(new Date(0).toUTCString())).toBe(200);
});

test("an unknown id is 404, whatever it looks like", async () => {
  const { service } = there;
  const ids = [`file_${"0".repeat(40)}`, "file_1", "x", "%00", "..%2f..%2fbodies", `file_${"0".repeat(40)}.png`];
  for (const id of ids) expect(await refused(fetch(`${service.baseUrl}/media/${id}`))).toMatchObject(unknown);
  expect(await refused(fetch(`${service.baseUrl}/media/`))).toMatchObject({ status: 404, code: "unknown_url" });
});

test.each([
  ["mp4", "video/mp4", "mp4"],
  ["wav", "audio/wav", "wav"],
] as const)("a %s has its type and a name that fits", async (kind: Kind, type, extension) => {
  const { id, url } = await made(there, fileOf(kind, 10_000));
  const { headers } = await fetch(url, { method: "HEAD" });
  expect(headers.get("content-type")).toBe(type);
  expect(headers.get("content-disposition")).toBe(`inline; filename="${id}.${extension}"`);
});

test.each(["POST", "PUT", "DELETE"])("%s is 405", async (method) => {
  const { url } = await made(there);
  const response = await fetch(url, { method });
  expect(response.headers.get("allow")).toBe("GET, HEAD");
  expect(await refused(response)).toMatchObject({ status: 405 });
});

test("a file is 410 after its lifetime, also once its object is deleted", async () => {
  const own = await startOn(await testStores());
  onTestFinished(own.stop);
  const { url } = await made(own);
  own.advance(86_400_000 - 60_000);
  const late = await fetch(url, { method: "HEAD" });
  expect(late.status).toBe(200);
  expect(Number(/max-age=(\d+)/.exec(late.headers.get("cache-control") ?? "")?.[1])).toBeLessThanOrEqual(60);
  own.advance(60_001);
  const refusal = await fetch(url);
  expect(refusal.headers.get("etag")).toBeNull();
  expect(refusal.headers.get("cache-control")).toBeNull();
  expect(await refused(refusal)).toMatchObject(gone);
  await own.files.expire();
  expect(await refused(fetch(url, { headers: { range: "bytes=0-9" } }))).toMatchObject(gone);
  own.advance(400 * 86_400_000);
  await own.files.expire();
  expect(await refused(fetch(url))).toMatchObject(gone);
});

/** A proxy to storage that counts received bytes, and can be cut. */
async function wireToStorage(endpoint: string) {
  const open = new Set<Socket>();
  const waiting = new Set<Socket>();
  let received = 0;
  let cutAfter = Number.POSITIVE_INFINITY;
  let silent = false;
  const { url, cut } = await openWire(endpoint, (client, storage) => {
    open.add(storage);
    let here = 0;
    storage.on("close", () => {
      open.delete(storage);
      waiting.delete(storage);
    });
    client.on("data", (data: Buffer) => {
      if (silent && data.includes("x-id=GetObject")) waiting.add(storage);
    });
    client.pipe(storage);
    storage.on("data", (data: Buffer) => {
      if (silent) return;
      here += data.length;
      received += data.length;
      if (here > cutAfter) client.destroy();
      if (client.destroyed || client.write(data)) return;
      storage.pause();
      client.once("drain", () => storage.resume());
    });
  });
  return {
    endpoint: url.href,
    received: () => received,
    open: () => open.size,
    /** Stops all data. */
    silence() {
      silent = true;
    },
    /** Lets new connections speak; the requests on the others are sent again. */
    restore() {
      silent = false;
      cut();
    },
    /** Connections with a request for an object since then; scheduled jobs request only lists. */
    waiting: () => waiting.size,
    /** Breaks every connection after this many bytes. */
    cutAfter(limit: number) {
      cutAfter = limit;
    },
  };
}

async function behindWire() {
  const stores = await testStores();
  const wire = await wireToStorage(stores.S3_ENDPOINT);
  const own = await startOn({ ...stores, S3_ENDPOINT: wire.endpoint });
  onTestFinished(own.stop);
  return { own, wire };
}

async function* streamed(kind: Kind, length: number) {
  yield* piecesOf(kind, length);
}

test("a caller who does not read costs little memory, and one who disconnects ends the reading", async () => {
  const { own, wire } = await behindWire();
  const large = 64 * mebi;
  const { url } = await made(own, streamed("mp4", large));
  const before = wire.received();
  const asked = get(url);
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  await once(response, "readable");
  // Wait until the buffers on the path are full and no more data arrives.
  let last = 0;
  let same = 0;
  const stalled = await eventually(() => {
    const now = wire.received() - before;
    same = now === last ? same + 1 : 0;
    last = now;
    return same >= 10 && now > mebi && now;
  });
  expect(stalled).toBeLessThan(large / 2);
  const connections = wire.open();
  response.destroy();
  await eventually(() => wire.open() < connections);
  expect(wire.received() - before).toBeLessThan(large);
});

test("a caller who disconnects while storage hangs frees the connection at once", async () => {
  const { own, wire } = await behindWire();
  const { url } = await made(own);
  wire.silence();
  const asked = [get(url), get(url), get(url)].map((each) => each.on("error", () => {}));
  await eventually(() => wire.waiting() === asked.length);
  for (const each of asked) each.destroy();
  // This is sooner than the detection of silence itself, which takes 15 s.
  await expect.poll(() => wire.waiting()).toBe(0);
  // The worker's jobs that wait for storage would hold up the end of the service.
  wire.restore();
});

test("when storage closes a connection the download resumes and completes", async () => {
  const { own, wire } = await behindWire();
  const large = 8 * mebi;
  const { url } = await made(own, streamed("mp4", large));
  wire.cutAfter(3 * mebi);
  const response = await fetch(url);
  const whole = await bodyOf(response);
  expect(whole.equals(Buffer.concat([...piecesOf("mp4", large)]))).toBe(true);
});

test("storage that is unavailable is 503 without the file's headers; in the middle of a file the connection is cut", async () => {
  const { s3, stores } = await ownServers({ s3: true });
  const own = await startOn(stores);
  onTestFinished(own.stop);
  const { url } = await made(own, streamed("mp4", 64 * mebi));
  const response = await fetch(url);
  expect(response.status).toBe(200);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  await s3.kill("SIGKILL");
  const reading = (async () => {
    for (;;) if ((await reader.read()).done) return "ended well";
  })();
  await expect(reading).rejects.toThrow("terminated");
  const unavailable = await fetch(url);
  expect(Number(unavailable.headers.get("retry-after"))).toBeGreaterThan(0);
  for (const name of ["etag", "cache-control", "content-disposition", "last-modified"])
    expect(unavailable.headers.get(name)).toBeNull();
  expect(await refused(unavailable)).toMatchObject({ status: 503, code: "no_capacity" });
});

test("at shutdown a running download is finished", async () => {
  const own = await startOn(await testStores(), { DRAIN_GRACE: "60" });
  const { url } = await made(own, streamed("mp4", 32 * mebi));
  const response = await fetch(url);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let received = (await reader.read()).value?.length ?? 0;
  const stopped = own.stop();
  for (let next = await reader.read(); !next.done; next = await reader.read()) received += next.value.length;
  expect(received).toBe(32 * mebi);
  await stopped;
});
