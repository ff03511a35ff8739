import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createSafeFetch } from "../../workers/providers/http/safe-fetch.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { errorOf } from "../support/upstreams-setup.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(host: string, answer: Answer) {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.headers.host} ${request.url}`);
    answer(request, response);
  });
  let connections = 0;
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, requests, connections: () => connections };
}

/** 127.0.0.2 acts as the internet, and every name resolves to the addresses given. */
function start({
  names = {},
  trusted,
  isPublic = (ip: string) => ip === "127.0.0.2",
}: {
  names?: Readonly<Record<string, string[]>>;
  trusted?: string;
  isPublic?: (ip: string) => boolean;
} = {}) {
  const safeFetch = createSafeFetch({
    clock: createManualClock(),
    ...(trusted !== undefined && { trusted }),
    isPublic,
    resolve: (host) => Promise.resolve((names[host] ?? []).map((address) => ({ address, family: 4 }))),
  });
  onTestFinished(() => safeFetch.close());
  const get = async (url: string, limitBytes = 1_000, signal = new AbortController().signal) =>
    Buffer.concat(await Array.fromAsync((await safeFetch.get({ url, limitBytes, signal })).body)).toString();
  return { safeFetch, get };
}

const hello: Answer = (_, response) => response.end("hello");
const redirectTo =
  (location: string, status = 302): Answer =>
  (_, response) =>
    response.writeHead(status, { location }).end("elsewhere");

test("a public URL is fetched without credentials", async () => {
  let headers: IncomingMessage["headers"] = {};
  const server = await serve("127.0.0.2", (request, response) => {
    headers = request.headers;
    response.end("hello");
  });
  const { get } = start({ names: { "cdn.example.com": ["127.0.0.2"] } });
  expect(await get(`http://cdn.example.com:${server.port}/a/b.png?sig=1`)).toBe("hello");
  expect(server.requests).toEqual([`cdn.example.com:${server.port} /a/b.png?sig=1`]);
  expect(Object.keys(headers).toSorted()).toEqual(["accept", "accept-encoding", "connection", "host", "user-agent"]);
});

test.each([
  ["an address", "http://127.0.0.1:PORT/", /127\.0\.0\.1 is not a public/],
  ["an address in another notation", "http://2130706433:PORT/", /127\.0\.0\.1 is not a public/],
  ["an IPv6 address", "http://[::ffff:127.0.0.1]:PORT/", /not a public/],
  ["a name", "http://inside.example.com:PORT/", /inside\.example\.com is not a public/],
  ["another scheme", "file:///etc/passwd", /not an http/],
  ["no address at all", "image.png", /not an http/],
])("%s that leads to a private address is refused before connecting", async (_, url, message) => {
  const server = await serve("127.0.0.1", hello);
  const { get } = start({ names: { "inside.example.com": ["127.0.0.1"] } });
  await expect(get(url.replace("PORT", String(server.port)))).rejects.toThrow(message);
  expect(server.connections()).toBe(0);
});

test("only public addresses of a name are connected to", async () => {
  const server = await serve("127.0.0.2", hello);
  const { get } = start({ names: { "both.example.com": ["127.0.0.1", "127.0.0.2"] } });
  expect(await get(`http://both.example.com:${server.port}/`)).toBe("hello");
});

test("the remote address is checked again after connecting, and no request is sent to a private one", async () => {
  const server = await serve("127.0.0.2", hello);
  const judged: string[] = [];
  const { get } = start({ isPublic: (ip) => judged.push(ip) === 1 });
  await expect(get(`http://127.0.0.2:${server.port}/`)).rejects.toThrow(/not a public/);
  expect([judged, server.requests]).toEqual([["127.0.0.2", "127.0.0.2"], []]);
});

test.each([301, 302, 303, 307, 308])("a redirect (%i) is followed, and checked like every address", async (status) => {
  const inside = await serve("127.0.0.1", hello);
  const end = await serve("127.0.0.2", hello);
  const { get } = start({ names: { "inside.example.com": ["127.0.0.1"] } });
  const good = await serve("127.0.0.2", redirectTo(`http://127.0.0.2:${end.port}/end`, status));
  expect(await get(`http://127.0.0.2:${good.port}/`)).toBe("hello");
  for (const host of ["127.0.0.1", "inside.example.com"]) {
    const bad = await serve("127.0.0.2", redirectTo(`http://${host}:${inside.port}/`, status));
    await expect(get(`http://127.0.0.2:${bad.port}/`)).rejects.toThrow(/not a public/);
  }
  expect(inside.connections()).toBe(0);
});

test("a redirect may be relative; a loop ends", async () => {
  const server = await serve("127.0.0.2", (request, response) =>
    request.url === "/a" ? redirectTo("b")(request, response) : redirectTo("/a")(request, response),
  );
  const { get } = start();
  await expect(get(`http://127.0.0.2:${server.port}/a`)).rejects.toThrow(/more than 5 redirects/);
  expect(server.requests.map((each) => each.split(" ")[1])).toEqual(["/a", "/b", "/a", "/b", "/a", "/b"]);
});

test("the operator's own origin is trusted, but not its redirects, nor a redirect back to it", async () => {
  const inside = await serve("127.0.0.1", hello);
  const own = await serve("127.0.0.1", (request, response) => {
    if (request.url === "/out") redirectTo(`http://127.0.0.1:${inside.port}/`)(request, response);
    else if (request.url === "/within") redirectTo("/file")(request, response);
    else response.end("own");
  });
  const origin = `http://127.0.0.1:${own.port}`;
  const back = await serve("127.0.0.2", redirectTo(`${origin}/file`));
  const { get } = start({ trusted: origin });
  expect(await get(`${origin}/file`)).toBe("own");
  expect(await get(`${origin}/within`)).toBe("own");
  for (const url of [`${origin}/out`, `http://127.0.0.2:${back.port}/`])
    await expect(get(url)).rejects.toThrow(/not a public/);
  expect(inside.connections()).toBe(0);
});

test("no more than the limit is read, with or without a declared length", async () => {
  let closed = Promise.withResolvers<void>();
  const endless = await serve("127.0.0.2", (request, response) => {
    if (request.url === "/declared") response.setHeader("content-length", 1_001);
    const write = () => {
      while (!response.destroyed && response.write(Buffer.alloc(300)));
    };
    response.on("drain", write).on("error", () => {});
    response.once("close", () => closed.resolve());
    // A declared length over the limit is refused before the first byte.
    if (request.url === "/declared") response.flushHeaders();
    else if (request.url === "/exact") response.end(Buffer.alloc(1_000, "a"));
    else write();
  });
  const { get } = start();
  const url = `http://127.0.0.2:${endless.port}`;
  expect(await get(`${url}/exact`)).toBe("a".repeat(1_000));
  closed = Promise.withResolvers();
  await expect(get(`${url}/endless`)).rejects.toThrow(/over 1000 bytes/);
  await closed.promise;
  await expect(get(`${url}/declared`)).rejects.toThrow(/over 1000 bytes/);
});

test.each([
  ["a status that is no success", { status: 403, headers: {} }, /status 403/],
  ["a redirect to nowhere", { status: 302, headers: {} }, /status 302/],
  ["nothing new", { status: 304, headers: {} }, /status 304/],
  ["a compression that was not asked for", { status: 200, headers: { "content-encoding": "gzip" } }, /compressed/],
])("%s is refused", async (_, { status, headers }, message) => {
  const server = await serve("127.0.0.2", (_, response) => response.writeHead(status, headers).end());
  const { get } = start();
  await expect(get(`http://127.0.0.2:${server.port}/secret?sig=abc`)).rejects.toThrow(message);
});

test("a reader who aborts, stops early or never reads frees the connection", async () => {
  const open = new Set<ServerResponse>();
  let arrived = Promise.withResolvers<void>();
  let empty = Promise.withResolvers<void>();
  const server = await serve("127.0.0.2", (request, response) => {
    open.add(response);
    response.once("close", () => {
      open.delete(response);
      empty.resolve();
    });
    if (request.url !== "/silent") response.write(Buffer.alloc(100_000));
    arrived.resolve();
  });
  const { safeFetch, get } = start();
  const url = `http://127.0.0.2:${server.port}`;
  const reason = new Error("disconnected");
  for (const path of ["/silent", "/slow"]) {
    [arrived, empty] = [Promise.withResolvers(), Promise.withResolvers()];
    const caller = new AbortController();
    const answer = errorOf(get(url + path, 1e6, caller.signal));
    await arrived.promise;
    caller.abort(reason);
    expect(await answer).toBe(reason);
    await empty.promise;
  }
  empty = Promise.withResolvers();
  const { body } = await safeFetch.get({ url: `${url}/slow`, limitBytes: 1e6, signal: new AbortController().signal });
  await body.return?.();
  await empty.promise;
  expect(open.size).toBe(0);
});
