import { describe, expect, test } from "vitest";
import { asking, expectUntouched, localModel, serviceOfFile } from "../support/service-setup.ts";
import { wireTo } from "../support/uploads-callers.ts";

const running = serviceOfFile({ PING_INTERVAL_MS: "100" });
const mebi = 1024 * 1024;
const chat = "/v1/chat/completions";

/** Writes on a connection, and returns everything received until the service closes it. */
async function answerTo(...written: readonly (string | Buffer)[]) {
  const wire = await wireTo(running.service);
  for (const bytes of written) await wire.write(bytes);
  await wire.received((text) => text.includes('"request_id"') || /"status":"\w+"/.test(text));
  // The caller has read its response; data that it sends later is dropped.
  wire.socket.end();
  await wire.closed;
  return wire.text();
}

const headOf = (method: string, path: string, headers: Readonly<Record<string, string | number>>) =>
  [
    `${method} ${path} HTTP/1.1`,
    ...Object.entries({ host: "x", ...headers }).map(([name, value]) => `${name}: ${value}`),
    "\r\n",
  ].join("\r\n");

/** Status, headers and body of the single response. */
function parsed(text: string) {
  const [head = "", body = "", ...rest] = text.split("\r\n\r\n");
  expect(rest).toEqual([]);
  const [line = "", ...lines] = head.split("\r\n");
  const headers = Object.fromEntries(
    lines.map((each) => {
      const [name = "", ...value] = each.split(": ");
      return [name.toLowerCase(), value.join(": ")] as const;
    }),
  );
  expect(headers).toMatchObject({
    connection: "close",
    "content-type": "application/json; charset=utf-8",
    "content-length": String(body.length),
  });
  return { status: Number(line.split(" ")[1]), headers, body: JSON.parse(body) as Record<string, never> };
}

describe("a declared length over the limit", () => {
  const json = 25 * mebi;
  const routes: readonly (readonly [
    method: string,
    path: string,
    type: string,
    limitBytes: number,
    shape: "chat" | "messages" | "gemini",
  ])[] = [
    ["POST", chat, "application/json", json, "chat"],
    ["POST", "/v1/embeddings", "application/json", json, "chat"],
    ["POST", "/v1/responses", "application/json", json, "chat"],
    ["POST", "/v1/images/generations", "application/json", json, "chat"],
    ["POST", "/v1/media/generations", "application/json", json, "chat"],
    ["POST", "/v1/messages", "application/json", json, "messages"],
    ["POST", "/v1/messages/count_tokens", "application/json", json, "messages"],
    ["POST", "/v1beta/models/local/chat:generateContent", "application/json", json, "gemini"],
    ["POST", "/v1/models/local/chat:streamGenerateContent", "application/json", json, "gemini"],
    ["POST", "/v1/uploads", "image/png", 95 * mebi, "chat"],
    ["POST", "/v1/uploads", "multipart/form-data; boundary=x", 96 * mebi, "chat"],
    ["POST", "/v1/uploads", "application/json", 16 * 1024, "chat"],
    ["POST", "/v1/uploads/upl_1/complete", "application/json", 16 * 1024, "chat"],
  ];

  test.each(routes)(
    "%s %s as %s is 413 before the body, and no 100 is sent",
    async (method, path, type, limit, shape) => {
      const customer = await running.service.account("1");
      const head = { authorization: `Bearer ${customer.key}`, "content-type": type, "content-length": limit + 1 };
      for (const more of [{}, { expect: "100-continue" }, { expect: "100-Continue" }]) {
        const wire = await wireTo(running.service);
        await wire.write(headOf(method, path, { ...head, ...more }));
        const text = await wire.received((all) => all.endsWith("}"));
        const { status, headers, body } = parsed(text);
        const error = {
          chat: { code: "request_too_large" },
          messages: { type: "invalid_request_error" },
          gemini: { code: 413 },
        };
        expect({ status, body }).toMatchObject({ status: 413, body: { error: error[shape] } });
        expect(headers["x-request-id"]).toMatch(/^req_/);
        // After the response a caller closes the connection; otherwise the service still reads from it for some
        // seconds.
        wire.socket.end();
        await wire.closed;
        expect(wire.text()).toBe(text);
      }
      await expectUntouched(running.service, customer, "1.00");
    },
  );
});

describe("requests that Node's server refuses get our error body", () => {
  const get = (...lines: readonly string[]) => ["GET /v1/models HTTP/1.1", ...lines, "", ""].join("\r\n");
  const webSocketOn = (path: string) =>
    headOf("GET", path, { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": 13 });
  const chunked = headOf("POST", chat, { "transfer-encoding": "chunked" });
  const rows: readonly (readonly [name: string, status: number, code: string, param: string | null, text: string])[] = [
    ["two Host headers", 400, "invalid_value", "host", get("Host: a", "Host: b")],
    ["the same Host twice", 400, "invalid_value", "host", get("Host: a", "host: a")],
    ["no Host header", 400, "invalid_value", "host", get("accept: */*")],
    ["an Expect that no server knows", 417, "expectation_failed", "expect", get("Host: a", "Expect: the-best")],
    ["an Expect of two things", 417, "expectation_failed", "expect", get("Host: a", "Expect: 100-continue, more")],
    ["a WebSocket for Responses", 426, "upgrade_required", null, webSocketOn("/v1/responses")],
    ["a WebSocket on any other path", 426, "upgrade_required", null, webSocketOn("/nowhere")],
    ["headers of 17 KB", 431, "headers_too_large", null, get("Host: a", `x-large: ${"x".repeat(17 * 1024)}`)],
    ["headers of 4 MB", 431, "headers_too_large", null, get("Host: a", `x-large: ${"x".repeat(4 * mebi)}`)],
    [
      "an address of 17 KB",
      431,
      "headers_too_large",
      null,
      `GET /${"x".repeat(17 * 1024)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    ],
    ["no HTTP", 400, "invalid_value", null, "\x16\x03\x01 what is this\r\n\r\n"],
    ["an unknown method", 400, "invalid_value", null, "BREW /v1/models HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a length that is no number", 400, "invalid_value", null, get("Host: a", "Content-Length: many")],
    [
      "a length and chunks",
      400,
      "invalid_value",
      null,
      get("Host: a", "Content-Length: 1", "Transfer-Encoding: chunked"),
    ],
    ["a chunk without a length", 400, "invalid_value", null, `${chunked}nonsense\r\n`],
  ];

  test.each(rows)("%s: %i %s", async (_, expected, code, param, text) => {
    const { status, headers, body } = parsed(await answerTo(text));
    expect({ status, body }).toEqual({
      status: expected,
      body: {
        error: { message: expect.any(String) as string, type: "invalid_request_error", code, param },
        request_id: headers["x-request-id"],
      },
    });
    expect(headers["x-request-id"]).toMatch(/^req_/);
  });

  test("the answer to a WebSocket names the protocol to use; other upgrades are ignored", async () => {
    const { headers } = parsed(await answerTo(webSocketOn("/v1/responses")));
    expect(headers["upgrade"]).toBe("HTTP/1.1");
    const wire = await wireTo(running.service);
    await wire.write(headOf("GET", "/healthz", { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c" }));
    expect(await wire.received((text) => text.includes('"status"'))).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("in the format of the path, where there is one", async () => {
    const { status, body } = parsed(
      await answerTo(headOf("POST", "/v1/messages", { expect: "the-best", "content-length": 2 })),
    );
    expect({ status, body }).toMatchObject({
      status: 417,
      body: { type: "error", error: { type: "invalid_request_error" } },
    });
  });

  test("HTTP/1.0 needs neither Host nor Expect", async () => {
    expect(await answerTo("GET /healthz HTTP/1.0\r\nExpect: the-best\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 /);
  });

  test.each([
    ["", ""],
    [", also if another request follows it", headOf("GET", "/healthz", {})],
  ])("an answer that has begun is cut, never continued with an error%s", async (_, next) => {
    const customer = await running.service.account("1");
    const request = JSON.stringify({ ...asking(localModel, "slow:60000"), stream: true });
    const wire = await wireTo(running.service);
    const head = { authorization: `Bearer ${customer.key}`, "content-length": request.length };
    await wire.write(headOf("POST", chat, head) + request);
    await wire.received((text) => text.includes("text/event-stream"));
    await wire.write(`${next}nonsense\r\n\r\n`);
    await wire.closed;
    expect(wire.text()).not.toContain("HTTP/1.1 400");
    await running.service.settled();
  });
});
