import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { Clock } from "#platform/clock";
import { bodyTimeoutMs } from "../../api/http/body.ts";
import { scrape } from "../support/metrics.ts";
import { movableClock } from "../support/movable-clock.ts";
import { eventually, type Service } from "../support/service.ts";
import {
  asking,
  localModel,
  providerModel,
  refusal,
  refusalOf,
  serviceOfFile,
  startWithProvider,
} from "../support/service-setup.ts";
import { bearer, headOf, patient, piece, stall } from "../support/stalled-bodies.ts";
import { wireTo } from "../support/uploads-callers.ts";
import { drawing, images, post, quoted, startPaid } from "../support/x402-setup.ts";

const running = serviceOfFile();
const mebi = 1024 * 1024;
const chat = "/v1/chat/completions";
const hi = asking(localModel);
const limited = { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded" };

const statusOf = (text: string) => Number(/^HTTP\/1\.1 (\d+) /.exec(text)?.[1] ?? 0);

describe("limits come before the body", () => {
  test("a key over its request limit gets 429 while it sends 24 MB, and before it sends any", async () => {
    const { service } = running;
    const customer = await service.account("1", { limits: { requests_per_minute: 1 } });
    expect((await customer.post(chat, hi)).status).toBe(200);
    const expected = refusal({ ...limited, message: /requests a minute, limit 1/ });
    for (let n = 0; n < 5; n++) {
      const body = ReadableStream.from(Array.from({ length: (24 * mebi) / piece.length }, () => piece));
      const large = { method: "POST", headers: bearer(customer.key), body, duplex: "half" };
      expect(await refusalOf(await fetch(service.baseUrl + chat, large as RequestInit))).toEqual(expected);
    }
    const wire = await wireTo(service);
    const head = { ...bearer(customer.key), "content-length": 24 * mebi, expect: "100-continue" };
    await wire.write(headOf(chat, head));
    const text = await wire.received((all) => all.includes('"request_id"'));
    expect(statusOf(text)).toBe(429);
    expect(text).toContain("x-ratelimit-remaining-requests: 0");
  });

  test("a key whose slots wait for bodies that never come is refused, and served after their timeout", async () => {
    const { service, advance } = running;
    const customer = await service.account("1", { limits: { concurrent_requests: 2 } });
    const wires = await Promise.all([wireTo(service), wireTo(service)]);
    const head = { ...bearer(customer.key), "content-length": 100, expect: "100-continue" };
    for (const wire of wires) {
      await wire.write(headOf(chat, head));
      await wire.received((all) => all.includes("100 Continue"));
    }
    const full = refusal({ ...limited, message: /in flight, limit 2/ });
    expect(await refusalOf(await customer.post(chat, hi))).toEqual(full);
    advance(60_000);
    for (const wire of wires) await wire.received((all) => all.includes("HTTP/1.1 408 "));
    expect((await customer.post(chat, hi)).status).toBe(200);
  });
});

describe("time", () => {
  test("a body that takes more than a minute is 408 in the caller's format, and its connection closes", async () => {
    const { service, advance } = running;
    const customer = await service.account("1");
    const paths = [chat, "/v1/messages", "/v1beta/models/local/chat:generateContent"];
    for (const path of paths) {
      const wire = await wireTo(service);
      await wire.write(headOf(path, { ...bearer(customer.key), "content-length": 1_000 }));
      await wire.write('{"model"');
      advance(30_000);
      await wire.write(":");
      // The time starts when the service begins to read, which the test cannot observe.
      await eventually(() => {
        advance(15_000);
        return wire.text().includes("}");
      });
      expect(statusOf(wire.text())).toBe(408);
      expect(wire.text()).toContain("The body took longer than 60 seconds to arrive.");
      expect(wire.text().toLowerCase()).toContain("connection: close");
      advance(5_000);
      await wire.closed;
    }
  });

  test("the time of a call counts from the end of its body", async () => {
    const { clock, advance } = movableClock();
    // Gives the body as long as it takes.
    const after: Clock["after"] = (ms, fire) => (ms === bodyTimeoutMs ? () => {} : clock.after(ms, fire));
    const { service } = await startWithProvider({}, undefined, { ...clock, after });
    const customer = await service.account("1");
    const wire = await wireTo(service);
    const body = JSON.stringify(asking(providerModel));
    const head = { ...bearer(customer.key), "content-length": body.length, expect: "100-continue" };
    await wire.write(headOf(chat, head));
    await wire.received((all) => all.includes("100 Continue"));
    // More than a call may take.
    advance(1_000_000);
    await wire.write(body);
    expect(await wire.received((all) => /HTTP\/1\.1 [^1]/.test(all))).toContain("HTTP/1.1 200 ");
  });
});

describe("memory", () => {
  // An eighth of what test/timing has: budget and bodies keep their proportions.
  const env = { BODY_BUDGET_BYTES: String(16 * mebi) };
  const heldBytes = async ({ metrics }: Service) =>
    (await scrape(metrics.api)).value("inference_memory_budget_used_bytes", { budget: "body" }) ?? 0;

  test("callers without a key who stall hold up no other call", async () => {
    const { service } = await startPaid({ ...env, X402_REQUESTS_PER_MINUTE: "10000" });
    const customer = await service.account("1");
    const bytes = 128 * 1024;
    const head = headOf(images, { "content-length": bytes });
    // All of them together would take half of the budget, of which they get an eighth.
    await Promise.all(Array.from({ length: 64 }, () => stall(service, head, bytes - piece.length, false)));
    expect((await customer.post(images, drawing())).status).toBe(200);
    // Apart from an eighth of the budget, an owner gets half of the remainder, for the text and its parsed form.
    expect((await customer.post(chat, asking(localModel, "x".repeat(3 * mebi)))).status).not.toBe(503);
  });

  test("a key whose bodies stall does not keep another from being served", async () => {
    const { service } = await startWithProvider(env, undefined, patient);
    const [hog, customer] = [await service.account("1"), await service.account("100")];
    const head = headOf(chat, { ...bearer(hog.key), "content-length": 3 * mebi });
    // Some of them take all that one account may have.
    for (let n = 0; n < 10; n++) await stall(service, head, 3 * mebi - piece.length, false);
    // What the service has not read yet costs nothing.
    await eventually(async () => (await heldBytes(service)) > 5 * mebi);
    expect((await customer.post(chat, asking(providerModel, "x".repeat((5 / 8) * mebi)))).status).toBe(200);
    const refused = await refusalOf(await hog.post(chat, asking(providerModel, "x".repeat(2.5 * mebi))));
    expect(refused).toEqual(refusal({ status: 503, type: "server_error", code: "no_capacity", message: /being read/ }));
  });

  test("the memory of a body is free again, whether its call was made, refused or aborted", async () => {
    const { service } = await startWithProvider(env);
    const customer = await service.account("1000");
    const large = "x".repeat(2.5 * mebi);
    const wrong = JSON.stringify({ ...asking(providerModel, large), temperature: "hot" });
    for (let n = 0; n < 4; n++) {
      expect((await customer.post(chat, asking(providerModel, large))).status).toBe(200);
      expect((await customer.post(chat, wrong)).status).toBe(400);
      expect((await customer.post(chat, large)).status).toBe(400);
      const socket = await stall(
        service,
        headOf(chat, { ...bearer(customer.key), "content-length": 3 * mebi }),
        2.5 * mebi,
        false,
      );
      await eventually(async () => (await heldBytes(service)) > 2 * mebi);
      socket.destroy();
      await eventually(async () => (await heldBytes(service)) === 0);
    }
  });

  test("a body in chunks of one byte is charged its bytes, not the buffers of its chunks", async () => {
    const { service } = await startWithProvider({ BODY_BUDGET_BYTES: String(256 * 1024) });
    const customer = await service.account("1");
    const body = JSON.stringify(asking(localModel, "x".repeat(20_000)));
    const wire = await wireTo(service);
    wire.socket.setNoDelay(true);
    await wire.write(headOf(chat, { ...bearer(customer.key), "transfer-encoding": "chunked" }));
    await wire.write(Array.from(body, (byte) => `1\r\n${byte}\r\n`).join(""));
    await wire.write("0\r\n\r\n");
    expect(statusOf(await wire.received((all) => all.includes("HTTP/1.1 ")))).toBe(200);
  });
});

test("without a key a body is at most 128 KB of 10,000 values and has no encoding", async () => {
  const { service } = await startPaid();
  await quoted(service, drawing());
  const large = drawing({ prompt: "x".repeat(128 * 1024) });
  expect(await refusalOf(await post(service, large))).toEqual(
    refusal({ status: 413, type: "invalid_request_error", code: "request_too_large", message: /131072 bytes/ }),
  );
  const many = drawing({ x: Array(10_001).fill({}) });
  expect(await refusalOf(await post(service, many))).toEqual(
    refusal({ status: 400, type: "invalid_request_error", code: "invalid_value", message: /more than 10000 values/ }),
  );
  const packed = await fetch(service.baseUrl + images, {
    method: "POST",
    headers: { "content-encoding": "gzip" },
    body: new Uint8Array(gzipSync(JSON.stringify(drawing()))),
  });
  expect(await refusalOf(packed)).toEqual(
    refusal({
      status: 415,
      type: "invalid_request_error",
      code: "unsupported_media_type",
      param: "content-encoding",
    }),
  );
});
