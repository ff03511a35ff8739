import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as endOfTurn } from "node:timers/promises";
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { createReceiverAddresses, type ReceiverAddresses } from "../../shared/platform/receiver-addresses.ts";
import { createSafePost } from "../../workers/providers/http/safe-fetch.ts";
import { createManualClock, type ManualClock } from "../support/manual-clock.ts";
import { errorOf } from "../support/upstreams-setup.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function listen(server: Server, host: string): Promise<number> {
  // The sender keeps an idle connection as long as the receiver says.
  server.keepAliveTimeout = 120_000;
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** `authority.pem` signed the certificate of hooks.example.com, which is valid until 2120; its key was deleted. */
const pem = (name: string) => readFileSync(new URL(`../fixtures/certificates/${name}.pem`, import.meta.url), "utf8");

/** With the certificate of a name it is a TLS server. */
async function serve(host: string, answer: Answer, certificateOf?: string) {
  const requests: { url: string; headers: IncomingMessage["headers"]; body: string; serverName: unknown }[] = [];
  let connections = 0;
  const respond: Answer = (request, response) => {
    const { method, headers, url } = request;
    const { servername } = request.socket as TLSSocket & { servername?: string };
    void text(request).then((body) => {
      requests.push({ url: `${method} ${headers.host}${url}`, headers, body, serverName: servername });
      answer(request, response);
    });
  };
  const identity = certificateOf && pem(certificateOf);
  const server = identity ? createTlsServer({ key: identity, cert: identity }, respond) : createServer(respond);
  server.on("connection", () => connections++);
  return { port: await listen(server, host), requests, connections: () => connections };
}

/** Trusts the authority as NODE_EXTRA_CA_CERTS does, until the test ends. */
function trustAuthority(): void {
  const before = getCACertificates("default");
  setDefaultCACertificates([...before, pem("authority")]);
  onTestFinished(() => setDefaultCACertificates(before));
}

/** 127.0.0.2 is the network that may be reached. `names` has the answers of each name, one for each question. */
function start(names: Readonly<Record<string, string[][]>> = {}) {
  const clock = createManualClock();
  const receivers = createReceiverAddresses({ WEBHOOK_ALLOWED_NETWORKS: "127.0.0.2/31" }, (host) =>
    Promise.resolve(names[host]?.shift() ?? []),
  );
  return { clock, send: sender(receivers, clock) };
}

function sender(receivers: ReceiverAddresses, clock: ManualClock, proxyUrl?: string) {
  const safePost = createSafePost({ clock, receivers, proxyUrl });
  onTestFinished(() => safePost.close());
  return (url: string) =>
    safePost.post({ url, headers: { "x-a": "b" }, body: "{}", timeoutMs: 15_000, limitBytes: 4_096 });
}

const ok: Answer = (_, response) => response.end("thanks");

test("the body is posted with its headers, and over one connection while the receiver keeps it", async () => {
  const server = await serve("127.0.0.2", ok);
  const { send } = start({ "hooks.example.com": [["127.0.0.2"]] });
  const url = `http://hooks.example.com:${server.port}/a?b=c`;
  for (const _ of [1, 2]) {
    const { status, start } = await send(url);
    expect([status, start.toString()]).toEqual([200, "thanks"]);
    // undici offers the connection again at the end of the turn.
    await endOfTurn();
  }
  expect(server.requests[0]).toMatchObject({ url: `POST hooks.example.com:${server.port}/a?b=c`, body: "{}" });
  expect(Object.keys(server.requests[0]?.headers ?? {}).toSorted()).toEqual([
    "connection",
    "content-length",
    "host",
    "x-a",
  ]);
  expect(server.connections()).toBe(1);
});

test("over TLS the certificate, the server name and the Host are those of the name, not of its address", async () => {
  const server = await serve("127.0.0.2", ok, "hooks.example.com");
  const { send } = start({
    "hooks.example.com": [["127.0.0.2"], ["127.0.0.2"]],
    "other.example.com": [["127.0.0.2"]],
  });
  const url = `https://hooks.example.com:${server.port}/a`;
  expect(await errorOf(send(url))).toMatchObject({ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" });
  trustAuthority();
  const { status, start: begun } = await send(url);
  expect([status, begun.toString()]).toEqual([200, "thanks"]);
  expect(await errorOf(send(`https://other.example.com:${server.port}/`))).toMatchObject({
    code: "ERR_TLS_CERT_ALTNAME_INVALID",
  });
  expect(await errorOf(send(`https://127.0.0.2:${server.port}/`))).toMatchObject({
    code: "ERR_TLS_CERT_ALTNAME_INVALID",
  });
  expect(server.requests).toEqual([
    expect.objectContaining({ url: `POST hooks.example.com:${server.port}/a`, serverName: "hooks.example.com" }),
  ]);
});

describe("through a proxy", () => {
  /** A proxy to which every name but one is 127.0.0.2, and a sender that cannot resolve names. */
  async function startProxy() {
    const asked: unknown[][] = [];
    const proxy = createServer().on("connect", ({ url = "", headers }, socket) => {
      asked.push([url, headers["proxy-authorization"]]);
      const [host, port] = url.split(":");
      if (host === "inside.example.com") return socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
      const receiver = connect(Number(port), "127.0.0.2", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        socket.pipe(receiver).pipe(socket);
      });
      onTestFinished(() => void receiver.destroy());
    });
    const port = await listen(proxy, "127.0.0.1");
    const WEBHOOK_PROXY_URL = `http://us%40er:secret@127.0.0.1:${port}`;
    const unresolvable = () => Promise.reject(new Error("a name was resolved"));
    const receivers = createReceiverAddresses({ WEBHOOK_PROXY_URL }, unresolvable);
    return { asked, send: sender(receivers, createManualClock(), WEBHOOK_PROXY_URL) };
  }
  const authorization = `Basic ${Buffer.from("us@er:secret").toString("base64")}`;

  test("the proxy gets the receiver's name and its own password, and the receiver its TLS connection", async () => {
    const server = await serve("127.0.0.2", ok, "hooks.example.com");
    const { asked, send } = await startProxy();
    trustAuthority();
    const { status, start: begun } = await send(`https://hooks.example.com:${server.port}/a`);
    expect([status, begun.toString()]).toEqual([200, "thanks"]);
    expect(asked).toEqual([[`hooks.example.com:${server.port}`, authorization]]);
    expect(server.requests).toEqual([
      expect.objectContaining({ url: `POST hooks.example.com:${server.port}/a`, serverName: "hooks.example.com" }),
    ]);
    expect(server.requests[0]?.headers).not.toHaveProperty("proxy-authorization");
  });

  test("a certificate for another name is refused", async () => {
    const server = await serve("127.0.0.2", ok, "hooks.example.com");
    const { send } = await startProxy();
    trustAuthority();
    const refused = await errorOf(send(`https://other.example.com:${server.port}/`));
    expect(refused).toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    expect(server.requests).toEqual([]);
  });

  test("the proxy judges the addresses of a name, after our checks of the URL", async () => {
    const { asked, send } = await startProxy();
    expect(await errorOf(send("https://inside.example.com/"))).toMatchObject({ code: "UND_ERR_ABORTED" });
    expect(asked).toEqual([["inside.example.com:443", authorization]]);
    for (const url of ["http://hooks.example.com/", "https://10.0.0.1/", "https://localhost/"])
      expect(String(await errorOf(send(url)))).toMatch(/AddressRefused/);
    expect(asked).toHaveLength(1);
  });
});

test("a name with one private address is refused, whatever its other addresses are", async () => {
  const server = await serve("127.0.0.2", ok);
  const { send } = start({ "both.example.com": [["127.0.0.2", "10.0.0.1"]] });
  const refused = await errorOf(send(`https://both.example.com:${server.port}/`));
  expect(String(refused)).toBe("AddressRefused: leads to an address that is not public");
  expect(server.connections()).toBe(0);
});

test("a name that turns private is refused for the next connection, and no request reaches the address", async () => {
  const outside = await serve("127.0.0.2", (_, response) => response.setHeader("connection", "close").end());
  const { send } = start({ "rebinding.example.com": [["127.0.0.2"], ["127.0.0.1"]] });
  const url = `http://rebinding.example.com:${outside.port}/`;
  expect((await send(url)).status).toBe(200);
  expect(String(await errorOf(send(url)))).toMatch(/AddressRefused/);
  expect(outside.requests).toHaveLength(1);
});

test.each([301, 302, 303, 307, 308])(
  "a redirect (%i) to a cloud's metadata is an answer like any other",
  async (status) => {
    const server = await serve("127.0.0.2", (_, response) =>
      response.writeHead(status, { location: "http://169.254.169.254/latest/meta-data" }).end(),
    );
    const { send } = start();
    expect((await send(`http://127.0.0.2:${server.port}/`)).status).toBe(status);
  },
);

test.each([
  ["of 1 GB", (response: ServerResponse) => void response.setHeader("content-length", 2 ** 30)],
  ["that never ends", () => {}],
])("of an answer %s only the start is read, and the connection is closed", async (_, begin) => {
  const closed = Promise.withResolvers<void>();
  const server = await serve("127.0.0.2", (_, response) => {
    begin(response);
    const write = () => {
      while (!response.destroyed && response.write(Buffer.alloc(1_000, "a")));
    };
    response.on("drain", write).on("error", () => {});
    response.once("close", closed.resolve);
    write();
  });
  const { send } = start();
  const { status, start: begun } = await send(`http://127.0.0.2:${server.port}/`);
  expect([status, begun.toString()]).toEqual([200, "a".repeat(4_096)]);
  await closed.promise;
});

test("an answer that begins and then stalls counts as it began", async () => {
  const stalled = Promise.withResolvers<void>();
  const server = await serve("127.0.0.2", (_, response) => response.write("a", () => stalled.resolve()));
  const { clock, send } = start();
  const answer = send(`http://127.0.0.2:${server.port}/`);
  await stalled.promise;
  // The timer of the status is replaced by that of the body once the headers have arrived.
  await expect
    .poll(() => {
      clock.advance(1_999);
      return clock.pending();
    })
    .toBe(0);
  const { status, start: begun } = await answer;
  expect([status, begun.toString()]).toEqual([200, "a"]);
});

test("an answer after the timeout is a failure, even if it succeeds then", async () => {
  const waiting: ServerResponse[] = [];
  const arrived = Promise.withResolvers<void>();
  const server = await serve("127.0.0.2", (_, response) => {
    waiting.push(response);
    arrived.resolve();
  });
  const { clock, send } = start();
  const answer = errorOf(send(`http://127.0.0.2:${server.port}/`));
  await arrived.promise;
  clock.advance(14_999);
  expect(waiting[0]?.destroyed).toBe(false);
  clock.advance(1);
  expect(String(await answer)).toBe("TimedOut: timed out");
});

test("a receiver that is not there is told from one that is not allowed", async () => {
  const { send } = start({ "gone.example.com": [[]] });
  expect(await errorOf(send("http://127.0.0.2:1/"))).toMatchObject({ code: "ECONNREFUSED" });
  expect(String(await errorOf(send("https://gone.example.com/")))).toMatch(/cannot be resolved/);
});
