import { once } from "node:events";
import type { RequestListener, ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Response } from "express";
import { expect, onTestFinished, test } from "vitest";
import { writeSlices } from "../../api/http/answer.ts";
import { createListener } from "../../api/http/listener.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { createManualClock } from "../support/manual-clock.ts";

/** A connection's requests are served one after the other, long responses in slices, and it is cut if it does not read. */

async function listening(app: RequestListener, clock = systemClock) {
  const { server } = createListener(app, clock);
  let parsed = 0;
  server.prependListener("request", () => parsed++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const open = () => {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  return { server, open, parsed: () => parsed };
}

/** Unlike `once`, does not fail on a reset. */
const closed = (socket: Socket) => new Promise((resolve) => socket.once("close", resolve));
const get = (path: string) => `GET /${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

test("pipelined requests are served one after the other, in order", async () => {
  const served: string[] = [];
  let atOnce = 0;
  const { open } = await listening((req, res) => {
    expect(++atOnce).toBe(1);
    served.push(req.url as string);
    setImmediate(() => {
      atOnce--;
      res.end(req.url);
    });
  });
  const paths = Array.from({ length: 16 }, (_, n) => `/${n}`);
  const socket = open();
  socket.write(paths.map((path) => get(path.slice(1))).join(""));
  let text = "";
  for await (const chunk of socket.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    if (text.endsWith("/15")) break;
  }
  expect(served).toEqual(paths);
  expect(text.match(/\/\d+(?=HTTP|$)/g)).toEqual(paths);
});

test("64 KB of pipelined requests: the connection is cut, and the rest of them is not even parsed", async () => {
  const waiting: ServerResponse[] = [];
  const { open, parsed } = await listening((_, res) => void waiting.push(res));
  const socket = open();
  socket.write(get("x").repeat(1_600));
  await closed(socket);
  expect(waiting).toHaveLength(1);
  expect(waiting[0]?.destroyed).toBe(true);
  expect(parsed()).toBe(16);
});

test("a request that waits is not served once the response before it has ended the connection, or the client has gone", async () => {
  const served: string[] = [];
  const gone = Promise.withResolvers<void>();
  const app: RequestListener = (req, res) => {
    served.push(req.url as string);
    if (req.url === "/held") res.once("close", gone.resolve);
    else res.setHeader("connection", "close").end();
  };
  const { open, parsed } = await listening(app);
  const first = open().resume();
  first.write(get("last") + get("after"));
  await closed(first);
  const second = open();
  second.write(get("held") + get("waits"));
  await expect.poll(parsed).toBe(4);
  second.destroy();
  await gone.promise;
  await new Promise(setImmediate);
  expect(served).toEqual(["/last", "/held"]);
});

test("between two slices of a long response, other connections get their turn", async () => {
  const turns: number[] = [];
  const { open } = await listening((_, res) => {
    let turn = 0;
    const count = () => {
      turn++;
      if (!res.closed) setImmediate(count);
    };
    count();
    const slices = function* () {
      for (let n = 0; n < 16; n++) {
        turns.push(turn);
        yield Buffer.alloc(64 * 1024);
      }
    };
    res.setHeader("connection", "close");
    writeSlices(res as Response, slices());
  });
  const socket = open().resume();
  socket.write(get("long"));
  await closed(socket);
  // The last two are encoded together.
  expect(new Set(turns).size).toBe(15);
});

test("a client who reads nothing for 30 s is cut, whatever it asked for; one who reads slowly is not", async () => {
  const clock = createManualClock();
  const part = Buffer.alloc(1024 * 1024);
  const begun = Promise.withResolvers<ServerResponse>();
  const { open } = await listening((_, res) => {
    for (let n = 0; n < 64; n++) res.write(part);
    begun.resolve(res);
  }, clock);
  const socket = open();
  socket.write(get("x"));
  let bytes = 0;
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length;
    // The whole response would take minutes.
    clock.advance(100);
    if (bytes > 32 * part.length) break;
  }
  socket.pause();
  const res = await begun.promise;
  expect(res.destroyed).toBe(false);
  await expect
    .poll(() => {
      clock.advance(1_000);
      return res.destroyed;
    })
    .toBe(true);
});

test("what clients do not read of their responses takes 64 MiB at most: those who read nothing are cut for others", async () => {
  const clock = createManualClock();
  const body = Buffer.alloc(8_000_000);
  const responses: ServerResponse[] = [];
  const { server, open } = await listening((_, res) => {
    responses.push(res);
    res.end(body);
  }, clock);
  const ask = async () => {
    const socket = open().pause();
    socket.write(get("x"));
    await once(server, "request");
    return socket;
  };
  const unsent = () => [...responses.keys()].filter((n) => responses[n]?.socket?.destroyed === false);
  for (let n = 0; n < 20; n++) await ask();
  expect(unsent()).toEqual([12, 13, 14, 15, 16, 17, 18, 19]);
  // Each second is noted who has read.
  clock.advance(1_000);
  clock.advance(2_001);
  const reader = await ask();
  expect(unsent()).toEqual([20]);
  let bytes = 0;
  for await (const chunk of reader.iterator({ destroyOnReturn: false }))
    if ((bytes += (chunk as Buffer).length) > body.length) break;
  expect(bytes).toBeGreaterThan(body.length);
});
