import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { Response } from "express";
import { expect, onTestFinished, test } from "vitest";
import { answerParts, slicesOf } from "../../api/http/answer.ts";
import { hasReadNothingSince } from "../../api/http/connections.ts";
import { createListener } from "../../api/http/listener.ts";
import { createUnread } from "../../api/http/unread.ts";
import { createByteBudget } from "../../shared/platform/byte-budget.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createManualClock } from "../support/manual-clock.ts";

/** Larger than the buffers of both ends of a connection. */
const bytes = 16 * 1024 * 1024;

test("a long response without room takes that of one which nobody reads, then that of the oldest of its account", async () => {
  const clock = createManualClock();
  const budget = createByteBudget(4.5 * bytes);
  const unread = createUnread({ budget, clock, log: createLogger("test", "silent") });
  const responses: ServerResponse[] = [];
  const { server } = createListener((req, res) => {
    responses.push(res);
    const parts = ["x".repeat(bytes)];
    if (unread.keep(res, req.url as string, parts, bytes)) answerParts(res as Response, parts, bytes);
    else res.writeHead(503).end();
  }, clock);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const ask = async (account: string): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
    onTestFinished(() => void socket.destroy());
    socket.pause().write(`GET ${account} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await once(server, "request");
    return socket;
  };
  const open = () => [...responses.keys()].filter((n) => responses[n]?.destroyed === false);

  const first = await ask("/a");
  await ask("/a");
  const socketOf = (n: number) => responses[n]?.socket ?? null;
  await expect
    .poll(() => {
      clock.advance(1_000);
      return [0, 1].every((n) => hasReadNothingSince(socketOf(n), clock.now() - 2_000));
    })
    .toBe(true);
  let read = 0;
  for await (const chunk of first.iterator({ destroyOnReturn: false }))
    if ((read += (chunk as Buffer).length) > bytes - 1024 * 1024) break;
  first.pause();
  // Each second is noted who has read.
  clock.advance(1_000);
  await ask("/a");
  expect(open()).toEqual([0, 2]);
  await ask("/a");
  expect(open()).toEqual([2, 3]);
  expect(budget.heldBytes).toBe(2 * bytes);

  // Others get what remains, and nobody of theirs is cut off for it.
  await ask("/b");
  await ask("/c");
  expect(responses[5]?.statusCode).toBe(503);
  const reserve = () => unread.reserve(responses[4] as ServerResponse, "/b", bytes);
  expect(reserve).toThrow(expect.objectContaining({ status: 503, retryAfterSeconds: 2 }));
  expect(open()).toEqual([2, 3, 4]);
  for (const n of open()) socketOf(n)?.destroy();
  await expect.poll(() => budget.heldBytes).toBe(0);
});

test("text in slices is the text, whatever it consists of", () => {
  const text = `${"é".repeat(70_000)}${"🦊".repeat(50_000)}x${"🦊".repeat(50_000)}`;
  const slices = [...slicesOf([text, Buffer.from("end")])];
  expect(Buffer.concat(slices).toString()).toBe(`${text}end`);
  expect(Math.max(...slices.map(({ length }) => length))).toBe(64 * 1024);
  const audio = Buffer.from(text).toString("base64");
  expect(Buffer.concat([...slicesOf([audio], "base64")]).toString()).toBe(text);
});
