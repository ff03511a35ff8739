import { expect, test } from "vitest";
import { createManualClock } from "../support/manual-clock.ts";
import { testStores } from "../support/servers.ts";
import { eventually, startService } from "../support/service.ts";
import { asking, localModel } from "../support/service-setup.ts";
import { curl, headOf, send, wireTo } from "../support/uploads-callers.ts";
import { diskFile, fileOf, formType, mebi, partHead, piecesOf, uploadLimit } from "../support/uploads-files.ts";
import { ok, refused, type Uploader, uploaderOf, uploadServiceOfFile } from "../support/uploads-setup.ts";

const there = uploadServiceOfFile({ UPLOAD_USD_PER_GB_DAY: "0.10" });

const png = { "content-type": "image/png" };
/** The first response on a connection that has only sent the head of its request. */
async function answerToHead(customer: Uploader, headers: Readonly<Record<string, string | number>>): Promise<string> {
  const wire = await wireTo(there.service);
  await wire.write(headOf(customer, headers));
  return wire.received((text) => text.includes('"request_id"'));
}

test.each([
  ["a raw body with no length", png, {}, 411, "length_required"],
  ["a raw body in chunks", png, { "transfer-encoding": "chunked" }, 411, "length_required"],
  ["a raw body of no bytes", png, { "content-length": 0 }, 400, "invalid_value"],
  ["a raw body with a byte too many", png, { "content-length": uploadLimit + 1 }, 413, "request_too_large"],
  ["a raw body of 18 digits", png, { "content-length": "9".repeat(18) }, 413, "request_too_large"],
  ["an encoded raw body", png, { "content-length": 100, "content-encoding": "gzip" }, 415, "unsupported_media_type"],
  ["a form that is too large", formType, { "content-length": uploadLimit + mebi + 1 }, 413, "request_too_large"],
  ["an encoded form", formType, { "content-length": 100, "content-encoding": "br" }, 415, "unsupported_media_type"],
] as const)("%s is refused from its head alone", async (_what, type, headers, status, code) => {
  const text = await answerToHead(await there.refused(), { ...type, ...headers });
  expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(text).toContain(`"code":"${code}"`);
});

test("the key and the balance are checked before a byte of the body is read", async () => {
  const nobody = { ...(await there.refused()), headers: { authorization: "Bearer sk-live-nothing" } };
  const customer = await there.customer("0.009");
  const frozen = await there.customer();
  await there.service.admin("PATCH", `/accounts/${frozen.id}`, { frozen: true });
  const head = { ...png, "content-length": uploadLimit };
  const unknown = await answerToHead(nobody, head);
  expect(unknown).toMatch(/^HTTP\/1\.1 401 /);
  expect(unknown.toLowerCase()).toContain("www-authenticate: bearer");
  const refusal = await answerToHead(customer, head);
  expect(refusal).toMatch(/^HTTP\/1\.1 402 /);
  expect(refusal).toContain("x-should-retry: false");
  expect(refusal).toMatch(/0\.00927734\d* USD.*0\.009/);
  expect(await answerToHead(frozen, head)).toMatch(/^HTTP\/1\.1 403 /);
  await there.service.settled();
  expect(await customer.available()).toBe("0.009");
});

test("a form and an upload in parts that cost more than the balance are 402", async () => {
  const customer = await there.customer("0.001");
  const form = new FormData();
  form.set("file", new Blob([fileOf("png", 20 * mebi)]));
  expect(await refused(customer.form(form))).toMatchObject({ status: 402, code: "insufficient_balance" });
  expect(await refused(customer.start(20 * mebi, "image/png"))).toMatchObject({ status: 402 });
});

test("a small file needs only the balance for its own size", async () => {
  const customer = await there.customer("0.001");
  expect(await ok(customer.raw(fileOf("png", mebi)))).toMatchObject({ bytes: mebi });
});

test("curl gets a refusal, or else the 100, before it sends a large body", async () => {
  const customer = await there.customer("0.001");
  const file = await diskFile("png", 20 * mebi);
  const url = `${there.service.baseUrl}/v1/uploads`;
  // Longer than the second after which curl would send without the 100.
  const patient = ["--expect100-timeout", "120"];
  expect(await curl(customer, ...patient, "--data-binary", `@${file}`, url)).toMatchObject({
    code: 0,
    status: 402,
    sent: 0,
  });
  const rich = await there.customer();
  const sent = await curl(rich, ...patient, "--data-binary", `@${file}`, url);
  expect(sent).toMatchObject({ code: 0, status: 200, sent: 20 * mebi });
});

test("another type is 415, whatever its declared type and kind of upload", async () => {
  const customer = await there.refused();
  const page = "<!doctype html><html><script>alert(1)</script></html>";
  const unsupported = { status: 415, code: "unsupported_media_type" };
  expect(await refused(customer.raw(page, png))).toMatchObject(unsupported);
  const form = new FormData();
  form.set("file", new Blob([page], { type: "image/png" }), "image.png");
  expect(await refused(customer.form(form))).toMatchObject(unsupported);
  await there.service.settled();
  expect(await customer.available()).toBe("10.00");
});

test("a large file of another type is refused while it arrives, and the caller can read the error", async () => {
  const customer = await there.refused();
  const text = Buffer.alloc(64 * 1024, "text ");
  const body = Array.from({ length: 800 }, () => text);
  const headers = { "content-type": "image/png", "content-length": 800 * text.length };
  expect(await refused(send(there, customer, body, headers))).toMatchObject({ status: 415 });
});

/** A service whose time only the test moves. It needs no worker. */
async function startStill(usd: string) {
  const clock = createManualClock(Date.now());
  const service = await startService(await testStores(), { env: { UPLOAD_USD_PER_GB_DAY: "0.10" }, clock });
  return { clock, service, customer: uploaderOf(service, await service.account(usd)) };
}

test("a refused caller who continues to send is read for five seconds, then disconnected", async () => {
  const { clock, service, customer } = await startStill("10.00");
  const wire = await wireTo(service);
  await wire.write(headOf(customer, { ...png, "content-length": 2 * uploadLimit }));
  await wire.received((text) => text.startsWith("HTTP/1.1 413 ") && text.includes('"request_id"'));
  clock.advance(4_999);
  // Larger than the buffers on the path, so the service reads it.
  for (const piece of piecesOf("png", 30 * mebi)) await wire.write(piece);
  expect(wire.socket.closed).toBe(false);
  clock.advance(1);
  await wire.closed;
});

test("a caller who sends nothing for a minute is refused, not sooner, and nothing is charged", async () => {
  const { clock, service, customer } = await startStill("10.00");
  const heads = [
    { ...png, "content-length": mebi },
    { ...formType, "content-length": mebi },
  ];
  for (const head of heads) {
    const wire = await wireTo(service);
    await wire.write(headOf(customer, head));
    await wire.write(Buffer.concat([partHead("file"), fileOf("png", 1_000)]));
    await eventually(async () => (await service.check()).open_holds === 1);
    // Only the service knows when it began to wait.
    let steps = 0;
    await eventually(() => {
      if (wire.text().startsWith("HTTP/1.1 400 ")) return true;
      clock.advance(15_000);
      steps++;
      return false;
    });
    expect(steps).toBeGreaterThanOrEqual(4);
    clock.advance(5_000);
    await wire.closed;
  }
  await service.settled();
  expect(await customer.available()).toBe("10.00");
});

test("a refused caller who sends everything gets the answer, and the connection ends normally", async () => {
  const { service, customer } = await startStill("0.00");
  const bytes = 30 * mebi;
  const wire = await wireTo(service);
  await wire.write(headOf(customer, { ...png, "content-length": bytes }));
  await wire.received((text) => text.startsWith("HTTP/1.1 402 "));
  for (const piece of piecesOf("png", bytes)) await wire.write(piece);
  await wire.closed;
  expect(wire.socket.errored).toBeNull();
});

test.each([
  [{ mime: "image/png" }, "bytes"],
  [{ bytes: 100 }, "mime"],
  [{ bytes: "100", mime: "image/png" }, "bytes"],
  [{ bytes: -1, mime: "image/png" }, "bytes"],
  [{ bytes: 100, mime: 5 }, "mime"],
  [{ bytes: 100, mime: "" }, "mime"],
  [[], undefined],
  ["text", undefined],
] as const)("an upload in parts asked for as %j is 400", async (body, param) => {
  const customer = await there.refused();
  const answer = await refused(customer.post("/v1/uploads", JSON.stringify(body)));
  expect(answer).toMatchObject({ status: 400, code: "invalid_value", param: param ?? null });
});

test("malformed JSON is 400, and more than 16 KB of it 413", async () => {
  const customer = await there.refused();
  expect(await refused(customer.post("/v1/uploads", "{bytes: 1}"))).toMatchObject({ status: 400 });
  const long = JSON.stringify({ bytes: 1, mime: "image/png", note: "x".repeat(20_000) });
  expect(await refused(customer.post("/v1/uploads", long))).toMatchObject({ status: 413 });
});

test.each([
  ["PUT", "", "GET, HEAD, POST"],
  ["POST", "/upl_1", "GET, HEAD, DELETE"],
  ["GET", "/upl_1/complete", "POST"],
])("%s /v1/uploads%s is 405, with the allowed methods", async (method, path, allowed) => {
  const customer = await there.refused();
  const response = await customer.get(path, method);
  expect(response.headers.get("allow")).toBe(allowed);
  expect(await refused(response)).toMatchObject({ status: 405, code: "method_not_allowed" });
});

test("a key over its slots or rate of uploads is refused before the body is read; its calls are unaffected", async () => {
  const env = { RATE_LIMIT_CONCURRENT_UPLOADS: "2", RATE_LIMIT_UPLOADS_PER_MINUTE: "3" };
  const { service } = await there.another(env);
  const customer = uploaderOf(service, await service.account("10.00"));
  const head = headOf(customer, { ...png, "content-length": mebi, expect: "100-continue" });
  const answers = async () => {
    const wire = await wireTo(service);
    await wire.write(head);
    await wire.received((text) => /HTTP\/1\.1 (100|4\d\d) /.test(text));
    return wire;
  };
  const running = [await answers(), await answers()];
  for (const wire of running) expect(wire.text()).toMatch(/^HTTP\/1\.1 100 /);
  expect((await answers()).text()).toMatch(/^HTTP\/1\.1 429 [^]*uploads at once, limit 2/);
  expect((await customer.get("")).status).toBe(200);
  expect((await customer.post("/v1/chat/completions", asking(localModel))).status).toBe(200);
  for (const wire of running) {
    await wire.write(fileOf("png", mebi));
    await wire.received((text) => text.includes("HTTP/1.1 200 "));
  }
  expect(await refused(customer.raw("text"))).toMatchObject({ status: 415 });
  // Every twenty seconds one more is allowed.
  const over = await eventually(async () => {
    const answer = await refused(customer.raw("text"));
    return answer.status !== 415 && answer;
  });
  expect(over).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
  expect(over.message).toContain("uploads a minute, limit 3");
  for (const { id } of await customer.list()) await customer.get(`/${id}`, "DELETE");
});

test("a form that needs more temporary bytes than one account may hold is 503 and frees them", async () => {
  const { service } = await there.another({ UPLOAD_BUDGET_BYTES: String(4 * mebi) });
  const customer = uploaderOf(service, await service.account("10.00"));
  const form = (bytes: number) => {
    const data = new FormData();
    data.set("file", new Blob([fileOf("png", bytes)]));
    return customer.form(data);
  };
  for (let n = 0; n < 3; n++) {
    expect(await refused(form(3 * mebi))).toMatchObject({ status: 503, code: "no_capacity" });
    expect(await ok(form(mebi))).toMatchObject({ bytes: mebi });
  }
  // An upload that is forwarded as it arrives needs none.
  expect(await ok(customer.raw(fileOf("png", 5 * mebi)))).toMatchObject({ bytes: 5 * mebi });
  await service.settled();
  for (const { id } of await customer.list()) await customer.get(`/${id}`, "DELETE");
});
