import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Response } from "express";
import { expect, onTestFinished, test } from "vitest";
import { createAnswering } from "../../api/open-calls/answering.ts";
import { type OpenCall, type Opening, openCall } from "../../api/open-calls/open-call.ts";
import { chatCodec } from "../../shared/formats/index.ts";
import type { Frame } from "../../shared/jobs/index.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { eventually } from "../support/service.ts";

/** One open call whose caller is a bare socket, and what writes to it. */
async function openOne(stream: boolean) {
  const clock = createManualClock();
  const ended: number[] = [];
  const answering = createAnswering({ clock, end: (_, status) => ended.push(status) });
  const arrived = Promise.withResolvers<OpenCall>();
  const server = createServer((_: IncomingMessage, raw: ServerResponse) => {
    // What express adds that is used here.
    const res = Object.assign(raw, {
      status: (code: number) => Object.assign(raw, { statusCode: code }),
      set: (headers: object | string, value?: string) => {
        const all = typeof headers === "string" ? { [headers]: value } : headers;
        for (const [name, each] of Object.entries(all)) raw.setHeader(name, each as string);
      },
    }) as unknown as Response;
    const opening = { payload: { stream, requestId: "req_1" }, codec: chatCodec, res } as Opening;
    arrived.resolve(openCall(opening, clock.now()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
  const call = await arrived.promise;
  /** What the kernel still took counts as progress: then another 30 s have to pass. */
  const givenUp = () =>
    eventually(() => {
      answering.checkProgress(call);
      clock.advance(30_000);
      return call.res.destroyed;
    });
  return { clock, answering, call, socket, ended, givenUp };
}

const frame = (kind: Frame["kind"], data: string): Frame => ({ requestId: "req_1", seq: 0, kind, data });
const part = "€".repeat(80_000);
const parts = 100;

test("a large answer that nobody reads is not copied to the socket, and is given up after 30 s without progress", async () => {
  const { clock, answering, call, socket, givenUp } = await openOne(false);
  socket.pause();
  call.parts = Array.from({ length: parts - 1 }, () => part);
  const closed = once(call.res, "close");
  answering.deliver(call, frame("final", part));
  await eventually(() => call.res.writableNeedDrain);
  // The part whose turn it is, of 24 MB.
  expect(call.res.writableLength).toBeLessThan(Buffer.byteLength(part));
  answering.checkProgress(call);
  clock.advance(29_999);
  answering.checkProgress(call);
  expect(call.res.destroyed).toBe(false);
  clock.advance(1);
  await givenUp();
  await closed;
  expect(call.res.writableFinished).toBe(false);
});

test("a large answer arrives whole, however slowly it is read", async () => {
  const { clock, answering, call, socket } = await openOne(false);
  call.parts = Array.from({ length: parts - 1 }, () => part);
  answering.deliver(call, frame("final", part));
  let bytes = 0;
  const whole = parts * Buffer.byteLength(part);
  for await (const chunk of socket) {
    bytes += (chunk as Buffer).length;
    // Two minutes for the answer, and always some progress.
    clock.advance(100);
    answering.checkProgress(call);
    if (bytes >= whole) break;
  }
  expect(bytes).toBeGreaterThan(whole);
  expect(call.res.writableFinished).toBe(true);
});

test("a stream whose caller takes nothing for 30 s counts as disconnected, one that is read does not", async () => {
  const { clock, answering, call, socket, givenUp } = await openOne(true);
  socket.pause();
  // More than the kernel takes, less than the limit of what may be unsent.
  for (let turns = 0; turns < 20; turns = call.res.writableLength > 0 ? turns + 1 : 0) {
    if (call.res.writableLength === 0) answering.writeEvents(call, part);
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (let second = 0; second < 30; second++) {
    answering.checkProgress(call);
    clock.advance(1_000);
  }
  expect(call.res.destroyed).toBe(false);
  await givenUp();

  const other = await openOne(true);
  other.socket.resume();
  for (let second = 0; second < 60; second++) {
    other.answering.writeEvents(other.call, "data: {}\n\n");
    await eventually(() => other.call.res.writableLength === 0);
    other.answering.checkProgress(other.call);
    other.clock.advance(1_000);
  }
  expect(other.call.res.destroyed).toBe(false);
});
