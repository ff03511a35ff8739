import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "#platform/clock";
import { bodyTimeoutMs } from "../../api/http/body.ts";
import { collectGarbage } from "../support/collect-garbage.ts";
import { movableClock } from "../support/movable-clock.ts";
import { migrateDatabase } from "../support/schema.ts";
import { testStores } from "../support/servers.ts";
import { type Client, eventually, startAnotherApi } from "../support/service.ts";
import { asking, localModel, providerModel, refusal, refusalOf, startWithProvider } from "../support/service-setup.ts";
import { curl, wireTo } from "../support/uploads-callers.ts";
import { drawing, images, post, quoted, startPaid } from "../support/x402-setup.ts";

const mebi = 1024 * 1024;
const chat = "/v1/chat/completions";
const hi = asking(localModel);
const limited = { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded" };

const headOf = (path: string, headers: Readonly<Record<string, string | number>>) =>
  [
    `POST ${path} HTTP/1.1`,
    "host: x",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "\r\n",
  ].join("\r\n");
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const statusOf = (text: string) => Number(/^HTTP\/1\.1 (\d+) /.exec(text)?.[1] ?? 0);

describe("limits come before the body", () => {
  test("a key over its request limit gets 429 while it sends 24 MB, and before it sends any", async () => {
    const { service } = await startWithProvider();
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
    const { clock, advance } = movableClock();
    const { service } = await startWithProvider({}, undefined, clock);
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
    const { clock, advance } = movableClock();
    const { service } = await startWithProvider({}, undefined, clock);
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
    const { service } = await startWithProvider({ CALL_TIMEOUT_MS: "40000" }, undefined, clock);
    const customer = await service.account("1");
    const wire = await wireTo(service);
    const body = JSON.stringify(asking(providerModel));
    const head = { ...bearer(customer.key), "content-length": body.length, expect: "100-continue" };
    await wire.write(headOf(chat, head));
    await wire.received((all) => all.includes("100 Continue"));
    advance(50_000);
    await wire.write(body);
    expect(await wire.received((all) => /HTTP\/1\.1 [^1]/.test(all))).toContain("HTTP/1.1 200 ");
  });
});

/** Sends all but the end of a body, or as much as the service reads. */
async function stall(
  { baseUrl }: Pick<Client, "baseUrl">,
  head: string,
  bytes: number,
  chunked: boolean,
): Promise<Socket> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  let answered = false;
  socket.on("error", () => {}).once("data", () => (answered = true));
  socket.write(head);
  const framed = chunked
    ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")])
    : piece;
  for (let sent = 0; sent < bytes && !answered && !socket.destroyed; sent += piece.length) {
    // Detect a refusal between the pieces.
    if (socket.write(framed)) await nextTurn();
    else await new Promise<void>((resolve) => socket.once("drain", resolve).once("close", resolve));
    socket.removeAllListeners("drain").removeAllListeners("close");
  }
  return socket;
}
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));
const piece = Buffer.alloc(64 * 1024, " ");
const buffered = () => process.memoryUsage().arrayBuffers;

/** Bytes in use after a garbage collection. */
const held = () => {
  collectGarbage();
  return buffered();
};

/** The same with strings. */
const used = () => {
  collectGarbage();
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return arrayBuffers + heapUsed;
};

/** The growth in used bytes after the work, while the stalled requests continue. */
async function growth(work: () => Promise<unknown>): Promise<number> {
  const before = held();
  await work();
  return held() - before;
}

describe("memory", () => {
  const budget = 128 * mebi;
  const env = { BODY_BUDGET_BYTES: String(budget) };

  test.each([
    ["declared", { "content-length": 24 * mebi }, 200],
    ["in chunks", { "transfer-encoding": "chunked" }, 200],
    ["as far as 128 KB", { "content-length": 128 * 1024 }, 500],
  ])(
    "callers without a key who stall with 24 MB, %s, stay within the budget and hold up no other call",
    async (_, how, callers) => {
      const { service } = await startPaid({ ...env, X402_REQUESTS_PER_MINUTE: "10000" });
      const customer = await service.account("1");
      const chunked = "transfer-encoding" in how;
      const bytes = chunked ? 24 * mebi : how["content-length"] - piece.length;
      const grown = await growth(async () => {
        for (let at = 0; at < callers; at += 50)
          await Promise.all(Array.from({ length: 50 }, () => stall(service, headOf(images, how), bytes, chunked)));
        expect((await customer.post(images, drawing())).status).toBe(200);
        // Apart from an eighth of the budget, an owner gets half of the remainder, for the text and its parsed form.
        expect((await customer.post(chat, asking(localModel, "x".repeat(24 * mebi)))).status).not.toBe(503);
      });
      expect(grown).toBeLessThan(budget);
    },
  );

  test("a key whose bodies stall does not keep another from being served", async () => {
    const { service } = await startWithProvider(env);
    const [hog, customer] = [await service.account("1"), await service.account("100")];
    const head = headOf(chat, { ...bearer(hog.key), "content-length": 24 * mebi });
    const grown = await growth(async () => {
      for (let at = 0; at < 100; at += 20)
        await Promise.all(Array.from({ length: 20 }, () => stall(service, head, 24 * mebi - piece.length, false)));
      expect((await customer.post(chat, asking(providerModel, "x".repeat(5 * mebi)))).status).toBe(200);
    });
    expect(grown).toBeLessThan(budget);
    const refused = await refusalOf(await hog.post(chat, asking(providerModel, "x".repeat(20 * mebi))));
    expect(refused).toEqual(refusal({ status: 503, type: "server_error", code: "no_capacity", message: /being read/ }));
  });

  /** Gives a body as long as it takes, because a busy machine may need more than a minute for 192 MB. */
  const patient: Clock = {
    ...systemClock,
    after: (ms, fire) => (ms === bodyTimeoutMs ? () => {} : systemClock.after(ms, fire)),
  };

  test("inline batches of 24 MB, many at once, take little more than the budget, and those that do not fit are 503", async () => {
    const stores = await testStores();
    await migrateDatabase(stores.MONGODB_URI);
    // Without a worker, which would read the files.
    const service = await startAnotherApi(stores, { env: { BODY_BUDGET_BYTES: String(200 * mebi) }, clock: patient });
    const customers = await Promise.all(Array.from({ length: 6 }, () => service.account("1")));
    const line = { custom_id: "1", body: { ...hi, messages: [{ role: "user", content: "x".repeat(24 * mebi) }] } };
    const batch = { endpoint: chat, completion_window: "24h", requests: [line] };
    const file = join(await mkdtemp(join(tmpdir(), "batch-")), "body.json");
    onTestFinished(() => rm(dirname(file), { recursive: true }));
    await writeFile(file, JSON.stringify(batch));
    // Another process sends, so that only the service's memory counts.
    const post = async ({ key }: { readonly key: string }) =>
      (await curl({ headers: bearer(key) }, "--data-binary", `@${file}`, `${service.baseUrl}/v1/batches`)).status;
    const [before, statuses] = [used(), new Map<number, number>()];
    let most = 0;
    const sampling = setInterval(() => {
      most = Math.max(most, used() - before);
    }, 100);
    try {
      for (const status of await Promise.all([...customers, ...customers.slice(0, 2)].map(post)))
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
    } finally {
      clearInterval(sampling);
    }
    expect(new Set(statuses.keys())).toEqual(new Set([200, 503]));
    // Four bodies fit at most. Each may have a line in addition that is being written.
    expect(most).toBeLessThan((200 + 4 * 24) * mebi);
    // All of it is free again.
    for (const customer of customers) expect(await post(customer)).toBe(200);
  });

  test("the memory of a body is free again, whether its call was made, refused or aborted", async () => {
    const { service } = await startWithProvider(env);
    const customer = await service.account("1000");
    const large = "x".repeat(20 * mebi);
    const wrong = JSON.stringify({ ...asking(providerModel, large), temperature: "hot" });
    for (let n = 0; n < 4; n++) {
      expect((await customer.post(chat, asking(providerModel, large))).status).toBe(200);
      expect((await customer.post(chat, wrong)).status).toBe(400);
      expect((await customer.post(chat, large)).status).toBe(400);
      const socket = await stall(
        service,
        headOf(chat, { ...bearer(customer.key), "content-length": 24 * mebi }),
        20 * mebi,
        false,
      );
      socket.destroy();
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
