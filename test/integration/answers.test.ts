import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { Response } from "express";
import { describe, expect, onTestFinished, test } from "vitest";
import { noCapacity } from "#errors";
import { createListener } from "../../api/http/listener.ts";
import { sendStored } from "../../api/http/read-stored.ts";
import {
  keepPart,
  type OpenCall,
  openCall,
  type Submission,
  startOrContinueAttempt,
} from "../../api/open-calls/open-call.ts";
import { checkPause, writeError, writeEvents, writeFinal } from "../../api/open-calls/write-answer.ts";
import { chatCodec } from "../../shared/formats/index.ts";
import type { Frame } from "../../shared/jobs/index.ts";
import { createByteBudget } from "../../shared/platform/byte-budget.ts";
import type { Clock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { eventually } from "../support/service.ts";

/** A caller that is a bare socket. */
async function callerOf(clock: Clock, answer: (res: ServerResponse) => void) {
  const { server } = createListener((_, res) => answer(res), clock);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  return socket;
}

/** One open call. */
async function openOne(stream: boolean, { limitBytes = 0, isBinary = false, payload = {} } = {}) {
  const clock = createManualClock();
  const budget = createByteBudget(limitBytes);
  const arrived = Promise.withResolvers<OpenCall>();
  const socket = await callerOf(clock, (raw) => {
    // The parts of express that these tests use.
    const res = Object.assign(raw, {
      locals: { requestId: "req_1" },
      status: (code: number) => Object.assign(raw, { statusCode: code }),
      set: (headers: object | string, value?: string) => {
        const all = typeof headers === "string" ? { [headers]: value } : headers;
        for (const [name, each] of Object.entries(all)) raw.setHeader(name, each as string);
      },
    }) as unknown as Response;
    const submission = {
      payload: { stream, requestId: "req_1", account: "acct_1", ...payload },
      codec: chatCodec,
      res,
      ...(isBinary && { isBinary }),
    } as Submission;
    arrived.resolve(openCall(submission, budget, clock.now()));
  });
  const call = await arrived.promise;
  /** Bytes accepted by the kernel count as progress, which starts another 30 s. */
  const isCut = () =>
    eventually(() => {
      clock.advance(30_000);
      return call.res.destroyed;
    });
  return { clock, call, socket, budget, isCut };
}

const frame = (kind: Frame["kind"], data: string): Frame => ({ requestId: "req_1", seq: 0, kind, data });
const silent = createLogger("test", "silent");
const part = "€".repeat(80_000);
const parts = 100;

test("frames of a second attempt do not continue the first; under a key they replace it, from their beginning", async () => {
  const plain = (await openOne(false)).call;
  const keyed = (await openOne(false, { payload: { idempotencyKeyId: "key" } })).call;
  const next = (call: OpenCall, attempt: string, seq: number) =>
    startOrContinueAttempt(call, { ...frame("chunk", "x"), attempt, seq });
  for (const call of [plain, keyed]) {
    expect([next(call, "one", 0), next(call, "one", 1)]).toEqual([true, true]);
    call.parts.push("of the first");
    expect(next(call, "two", 1)).toBe(false);
  }
  expect([next(plain, "two", 0), plain.parts]).toEqual([false, ["of the first"]]);
  expect([next(keyed, "two", 0), keyed.parts]).toEqual([true, []]);
});

test("a large answer that is not read is not copied to the socket, and its connection is cut after 30 s without progress", async () => {
  const { clock, call, socket, isCut } = await openOne(false);
  socket.pause();
  call.parts = Array.from({ length: parts - 1 }, () => part);
  const closed = once(call.res, "close");
  writeFinal(call, frame("final", part), clock.now());
  await eventually(() => call.res.writableNeedDrain);
  // At most one part of the 24 MB.
  expect(call.res.writableLength).toBeLessThan(Buffer.byteLength(part));
  clock.advance(29_999);
  expect(call.res.destroyed).toBe(false);
  clock.advance(1);
  await isCut();
  await closed;
  expect(call.res.writableFinished).toBe(false);
});

test("a large answer arrives whole, however slowly it is read", async () => {
  const { clock, call, socket } = await openOne(false);
  for (let n = 0; n < parts; n++) keepPart(call, part);
  writeFinal(call, frame("final", part), clock.now());
  let bytes = 0;
  const whole = parts * Buffer.byteLength(part);
  // The connection ends with the response.
  for await (const chunk of socket) {
    bytes += (chunk as Buffer).length;
    // The response takes two minutes, with constant progress.
    clock.advance(100);
  }
  expect(bytes).toBeGreaterThan(whole);
  expect(call.res.writableFinished).toBe(true);
});

test("a stored file is sent at the pace of its reader, who is cut after ten minutes without progress", async () => {
  const clock = createManualClock();
  const begun = Promise.withResolvers<ServerResponse>();
  const ended = Promise.withResolvers<void>();
  const piece = Buffer.alloc(1024 * 1024, "x");
  const count = 64;
  let read = 0;
  async function* pieces() {
    for (; read < count; read++) yield piece;
  }
  const socket = await callerOf(clock, (raw) => {
    begun.resolve(raw);
    const sending = { res: raw as Response, file: "file-1", arrive: () => ended.resolve, clock, log: silent };
    void sendStored(sending, () => pipeline(pieces(), raw));
  });
  const res = await begun.promise;
  let bytes = 0;
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    const { length } = chunk as Buffer;
    // 32 bytes per millisecond: half an hour for the whole file.
    clock.advance(length / 32);
    bytes += length;
    if (bytes > (count / 2) * piece.length) break;
  }
  socket.pause();
  expect(res.destroyed).toBe(false);
  let minutes = 0;
  await eventually(() => {
    clock.advance(60_000);
    minutes++;
    return res.destroyed;
  });
  await ended.promise;
  // The kernel still had space, or had none for some minutes.
  expect(minutes).toBeGreaterThan(5);
  expect(read).toBeLessThan(count);
});

test("a stream whose caller reads nothing for 30 s is cut, one that is read is not", async () => {
  const { clock, call, socket, isCut } = await openOne(true);
  socket.pause();
  // More than the kernel takes, however late it does.
  for (let each = 0; each < parts; each++) writeEvents(call, part, clock.now());
  await eventually(() => call.res.writableNeedDrain);
  for (let second = 0; second < 30; second++) clock.advance(1_000);
  expect(call.res.destroyed).toBe(false);
  await isCut();

  const other = await openOne(true);
  other.socket.resume();
  for (let second = 0; second < 60; second++) {
    writeEvents(other.call, "data: {}\n\n", other.clock.now());
    await eventually(() => other.call.res.writableLength === 0);
    other.clock.advance(1_000);
  }
  expect(other.call.res.destroyed).toBe(false);
});

test.each(["final", "error"] as const)(
  "events that come together are one write, before the %s that comes with them",
  async (end) => {
    const { clock, call, socket } = await openOne(true);
    for (const event of ["data: 1\n\n", "data: 2\n\n"]) writeEvents(call, event, clock.now());
    if (end === "final") writeFinal(call, frame("final", "data: 3\n\n"), clock.now());
    else writeError(call, noCapacity("unavailable"), "data: 3\n\n");
    const [head = "", ...chunks] = (await text(socket)).split("\r\n");
    expect(head).toBe("HTTP/1.1 200 OK");
    const sent = chunks.filter((line) => line.startsWith("data:"));
    expect(sent.join("")).toBe("data: 1\n\ndata: 2\n\ndata: 3\n\n");
    expect(sent[0]).toContain("data: 2");
  },
);

test("while a caller does not read, its worker must wait, notified once a second; then it continues", async () => {
  const { clock, call, socket } = await openOne(true);
  const paces: string[] = [];
  call.pace = (pace) => void paces.push(pace);
  socket.pause();
  // More than the kernel takes, however late it does.
  for (let each = 0; each < parts; each++) writeEvents(call, part, clock.now());
  await eventually(() => paces.length > 0);
  for (let second = 0; second < 3; second++) checkPause(call);
  expect(paces).toEqual(["pause", "pause", "pause", "pause"]);
  socket.resume();
  await eventually(() => paces.includes("resume"));
  expect(paces).toEqual(["pause", "pause", "pause", "pause", "resume"]);
});

describe.each([false, true])("binary: %s", (isBinary) => {
  const limitBytes = 8 * 1024 * 1024;
  const text = isBinary ? Buffer.alloc(240_000, 1).toString("base64") : "x".repeat(240_000);
  const open = () => openOne(true, { limitBytes, isBinary });

  test("however much comes together, its caller has 2 s to read; without memory it is disconnected then", async () => {
    const { clock, call, socket } = await open();
    socket.pause();
    for (let each = 0; each < parts; each++) writeEvents(call, text, clock.now());
    expect(call.res.destroyed).toBe(false);
    // Bytes accepted by the kernel count as progress.
    await eventually(() => {
      clock.advance(2_000);
      writeEvents(call, text, clock.now());
      return call.res.destroyed;
    });
  });

  test("a caller who reads nothing is not cut while there is memory", async () => {
    const { clock, call, socket, budget } = await open();
    socket.pause();
    while (budget.heldBytes < limitBytes / 4) {
      clock.advance(2_000);
      writeEvents(call, text, clock.now());
    }
    expect(call.res.destroyed).toBe(false);
    expect(budget.heldBytes).toBeLessThan(limitBytes);
    socket.resume();
    await eventually(() => call.res.writableLength === 0);
    writeEvents(call, text, clock.now());
    expect(budget.heldBytes).toBe(0);
  });

  test("a caller who reads is not cut, although there is no memory", async () => {
    const { clock, call, socket, budget } = await open();
    budget.share("others").resize(limitBytes / 2);
    budget.share().resize(limitBytes / 2);
    for (let second = 0; second < 5; second++) {
      for (let each = 0; each < parts / 5; each++) writeEvents(call, text, clock.now());
      socket.resume();
      await eventually(() => call.res.writableLength === 0);
      clock.advance(1_000);
    }
    expect(call.res.destroyed).toBe(false);
  });
});
