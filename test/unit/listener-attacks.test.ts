import { once } from "node:events";
import type { ServerOptions } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createListener } from "../../api/http/listener.ts";
import { systemClock } from "../../shared/platform/clock.ts";

/** Requests that proxies and servers have parsed differently, and endless headers. None of them reaches the app. */

const chunked = "Transfer-Encoding: chunked";
const end = "0\r\n\r\n";
const post = (...lines: readonly string[]) => ["POST /v1/responses HTTP/1.1", "Host: a", ...lines, "", ""].join("\r\n");

const shapes: readonly (readonly [name: string, status: number, text: string])[] = [
  ["two lengths", 400, `${post("Content-Length: 1", "Content-Length: 2")}{}`],
  ["the same length twice", 400, `${post("Content-Length: 2", "Content-Length: 2")}{}`],
  ["a list of lengths", 400, `${post("Content-Length: 2, 2")}{}`],
  ["a negative length", 400, post("Content-Length: -1")],
  ["a length with a sign", 400, `${post("Content-Length: +2")}{}`],
  ["a length past 64 bits", 400, post("Content-Length: 99999999999999999999999")],
  ["chunks and a length", 400, post(chunked, "Content-Length: 3") + end],
  ["a space before the colon", 400, post("Transfer-Encoding : chunked") + end],
  ["chunked, but not last", 400, post("Transfer-Encoding: chunked, identity") + end],
  ["an unknown encoding", 400, post("Transfer-Encoding: xchunked") + end],
  ["chunked twice", 400, post(chunked, chunked) + end],
  ["a folded header", 400, post("Transfer-Encoding:\r\n chunked") + end],
  ["a control character before the value", 400, post("Transfer-Encoding: \x0bchunked") + end],
  ["lines without a carriage return", 400, "POST / HTTP/1.1\nHost: a\nContent-Length: 2\n\n{}"],
  ["a carriage return in a value", 400, post("x-a: a\rb")],
  ["a zero byte in a value", 400, post("x-a: a\0b")],
  ["a 65-bit chunk", 400, `${post(chunked)}fffffffffffffffff\r\n`],
  ["a header of 100 KB", 431, post(`x-a: ${"x".repeat(100_000)}`)],
  ["2,000 headers", 431, post(...Array.from({ length: 2_000 }, (_, n) => `x-${n}: 12345678`))],
];

async function listening(limits: ServerOptions = {}) {
  const seen: string[] = [];
  const { server } = createListener(
    (req, res) => {
      seen.push(`${req.method} ${req.url}`);
      req.resume().on("end", () => res.end());
    },
    systemClock,
    limits,
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, seen, port: (server.address() as AddressInfo).port };
}

test("a request that may hide a second one is refused once, and the connection ends", async () => {
  const { seen, port } = await listening();
  for (const [name, status, text] of shapes) {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    let answer = "";
    socket.on("data", (bytes) => {
      answer += bytes.toString("latin1");
    });
    socket.write(Buffer.from(`${text}GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n`, "latin1"));
    await once(socket, "close");
    expect([name, answer.match(/HTTP\/1\.1 (\d+)/g)]).toEqual([name, [`HTTP/1.1 ${status}`]]);
  }
  expect(seen.filter((each) => each.includes("hidden"))).toEqual([]);
});

test("a request must arrive in bounded time, and its headers within a minute", async () => {
  const { server } = await listening();
  expect(server).toMatchObject({ headersTimeout: 60_000, requestTimeout: 1_200_000, keepAliveTimeout: 65_000 });
});

test("500 connections that never finish their headers do not keep a caller waiting, and all end by a 408", async () => {
  const { port } = await listening({ headersTimeout: 10_000, connectionsCheckingInterval: 100 });
  const starts = ["", "G", "GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\r\nHost: a\r\nx-drip: "];
  const slow = Array.from({ length: 500 }, async (_, at) => {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    await once(socket, "connect");
    const start = starts[at % starts.length] ?? "";
    if (start !== "") socket.write(start);
    const drip = start.endsWith("x-drip: ") ? setInterval(() => socket.write("x"), 100) : undefined;
    let answer = "";
    socket.on("data", (bytes) => {
      answer += bytes.toString("latin1");
    });
    return { ended: once(socket, "close").then(() => answer), stop: () => clearInterval(drip) };
  });
  const sockets = await Promise.all(slow);
  expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200);
  const answers = await Promise.all(sockets.map(({ ended }) => ended));
  for (const { stop } of sockets) stop();
  // Bytes after the end may reset the connection before the response is read.
  const dripping = starts.length - 1;
  const isExpected = (answer: string, at: number) =>
    answer.startsWith("HTTP/1.1 408 ") || (answer === "" && at % starts.length === dripping);
  expect(answers.filter((answer, at) => !isExpected(answer, at))).toEqual([]);
});
