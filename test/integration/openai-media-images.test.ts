import { randomBytes } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import { noCapacity } from "../../shared/errors.ts";
import { leave, letGo } from "../support/disconnecting.ts";
import { mockError, startMockOpenai } from "../support/mock-openai.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { startMedia } from "../support/openai-media-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const cat = { prompt: "a cat" };
const image = { headers: { "content-type": "image/png" }, done: false as const };
const base64 = (bytes: Buffer) => ({ b64_json: bytes.toString("base64") });

describe("generations", () => {
  test("the model's parameters are sent unchanged; fields that change the shape of the answer are not", async () => {
    const { mock, provider, stored, call } = await startMedia();
    const input = { ...cat, n: 2, size: "1536x864", quality: "low", output_format: "webp", moderation: "low", x: [1] };
    const extra = { response_format: "b64_json", stream: true, partial_images: 2, model: "another" };
    const made = await provider.generate(call("images", { ...input, ...extra }));
    const [request] = mock.requests;
    expect(request).toMatchObject({ method: "POST", path: "/v1/images/generations" });
    expect(request?.body).toEqual({ ...input, model: "provider-model" });
    expect(request?.headers).toMatchObject({ authorization: "Bearer sk-operator", "content-type": "application/json" });
    expect(stored).toEqual([
      { bytes: mockPng, about: {} },
      { bytes: mockPng, about: {} },
    ]);
    expect(made).toEqual({
      output: {
        created: 1_700_000_000,
        background: "opaque",
        output_format: "png",
        quality: "low",
        size: "1024x1024",
        usage: expect.objectContaining({ total_tokens: 552 }) as unknown,
      },
      usage: { image: 2 },
    });
  });

  test("fewer images than requested are charged by their number; more are not stored", async () => {
    const { mock, provider, stored, call } = await startMedia();
    const data = [base64(mockPng), base64(mockPng), base64(mockPng)];
    mock.respond({ body: { data: data.slice(1) } }, { body: { data } }, { body: { data } });
    expect((await provider.generate(call("images", { ...cat, n: 4 }))).usage).toEqual({ image: 2 });
    expect((await provider.generate(call("images", { ...cat, n: 2 }))).usage).toEqual({ image: 2 });
    expect((await provider.generate(call("images", cat))).usage).toEqual({ image: 1 });
    expect(stored).toHaveLength(5);
  });

  test("a revised prompt is stored with its image", async () => {
    const { mock, provider, stored, call } = await startMedia();
    const revised_prompt = 'eine "Katze" \\ "b64_json": "AAAA" 猫';
    const none = { revised_prompt: "of none", b64_json: null };
    mock.respond({ body: { data: [none, { revised_prompt, ...base64(mockPng) }, base64(mockPng)] } });
    await provider.generate(call("images", { ...cat, n: 3 }));
    expect(stored.map(({ about }) => about)).toEqual([{ revised_prompt }, {}]);
  });

  test.each([
    ["no data", { created: 1 }],
    ["an empty list", { data: [] }],
    ["no images", { data: [{}, null, 7, { b64_json: "" }, { b64_json: null, url: null }, { b64_json: 0 }] }],
    ["no JSON", "<html>"],
    ["half of it", '{"data": [{"b64_json": "AAAA"'],
    ["broken base64", '{"data": [{"b64_json": "AA\\'],
    ["an error in the place of an answer", { error: { message: "oops", type: "server_error" } }],
  ])("%s is refused as an answer", async (_, body) => {
    const { mock, provider, stored, call } = await startMedia();
    mock.respond({ body });
    expect(await errorOf(provider.generate(call("images", { ...cat, n: 4 })))).toMatchObject({
      name: "UpstreamFailure",
      kind: "unavailable",
    });
    expect(stored).toEqual([]);
  });

  test("a moderated prompt is refused, a busy provider gets a cooldown, and an unpaid bill is misconfigured", async () => {
    const { mock, provider, call } = await startMedia();
    const moderated = "Your request was rejected by the safety system.";
    mock.respond(
      mockError(400, moderated, { type: "image_generation_user_error", code: "moderation_blocked" }),
      { body: { error: { message: moderated, type: "image_generation_user_error", code: "moderation_blocked" } } },
      mockError(400, "Invalid size for key sk-operator-1234567.", { param: "size", code: "invalid_value" }),
      mockError(429, "Slow down", { headers: { "retry-after": "7" } }),
      mockError(429, "No money", { code: "insufficient_quota" }),
      mockError(403, "Your organization must be verified"),
    );
    const failures: unknown[] = [];
    for (let i = 0; i < 6; i++) failures.push(await errorOf(provider.generate(call("images", cat))));
    expect(failures).toMatchObject([
      { kind: "refused", message: moderated },
      { kind: "refused", message: moderated },
      { kind: "refused", param: "size", message: "Invalid size for key sk-..." },
      { kind: "busy", retryAfterMs: 7_000 },
      { kind: "misconfigured" },
      { kind: "misconfigured" },
    ]);
  });

  test("large images are stored unchanged", async () => {
    const { mock, provider, stored, call } = await startMedia();
    const images = Array.from({ length: 4 }, (_, i) => randomBytes(3_000_000 + i));
    mock.respond({ body: { created: 1, data: images.map(base64) } });
    await provider.generate(call("images", { ...cat, n: 4 }));
    expect(stored.map(({ bytes }, i) => bytes.equals(images[i] as Buffer))).toEqual([true, true, true, true]);
  });

  test("a caller who disconnects in the middle of the answer frees the connection", async () => {
    const { mock, provider, stored, call } = await startMedia({ concurrency: 1 });
    const half = JSON.stringify({ data: [base64(mockPng)] }).slice(0, 60);
    mock.respond({ events: [half, "rest"], beforeEvent: { 1: new Promise(() => {}) } });
    expect(await leave(mock, (signal) => provider.generate(call("images", cat, { signal })))).toEqual(letGo);
    await provider.generate(call("images", cat));
    expect(stored).toHaveLength(1);
  });

  test("a failure of storage is not the provider's", async () => {
    const { provider, call } = await startMedia();
    const error = noCapacity("Storage is unavailable.");
    let files = 0;
    const store = () => (files++ === 0 ? Promise.resolve() : Promise.reject(error));
    expect(await errorOf(provider.generate(call("images", { ...cat, n: 2 }, { store })))).toBe(error);
  });
});

describe("addresses in an answer", () => {
  test("on the provider's own origin they are fetched, with redirects within it, without the operator's key", async () => {
    const { mock, provider, stored, call } = await startMedia();
    const png = { ...image, body: mockPng };
    mock.respond(
      { body: { data: [{ url: `${mock.url}/a.png?sig=1` }, { url: `${mock.url}/b`, revised_prompt: "b" }] } },
      png,
      { status: 302, headers: { location: "/v1/c.png" }, body: "" },
      { ...image, events: [mockPng.subarray(0, 10), "", mockPng.subarray(10)] },
    );
    const { usage } = await provider.generate(call("images", { ...cat, n: 2 }));
    expect(mock.requests.slice(1).map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /v1/a.png?sig=1",
      "GET /v1/b",
      "GET /v1/c.png",
    ]);
    for (const { headers } of mock.requests.slice(1)) expect(headers).not.toHaveProperty("authorization");
    expect(stored).toEqual([
      { bytes: mockPng, about: {} },
      { bytes: mockPng, about: { revised_prompt: "b" } },
    ]);
    expect(usage).toEqual({ image: 2 });
  });

  test("private addresses are not fetched, nor redirects to them", async () => {
    const { mock, provider, stored, call } = await startMedia();
    const inside = await startMockOpenai();
    onTestFinished(() => inside.close());
    const { port } = new URL(inside.url);
    const urls = [
      inside.url,
      `http://localhost:${port}/`,
      `http://[::1]:${port}/`,
      `http://0x7f.1:${port}/`,
      "http://169.254.169.254/latest/meta-data/",
      "ftp://example.com/a.png",
      "data:image/png;base64,AAAA",
    ];
    for (const url of urls) {
      mock.respond({ body: { data: [{ url }] } });
      expect(await errorOf(provider.generate(call("images", cat)))).toMatchObject({ kind: "unavailable" });
    }
    mock.respond(
      { body: { data: [{ url: `${mock.url}/redirect` }] } },
      { status: 302, headers: { location: `${inside.url}/secret` }, body: "" },
    );
    expect(await errorOf(provider.generate(call("images", cat)))).toMatchObject({ kind: "unavailable" });
    expect([inside.connections(), stored]).toEqual([0, []]);
  });

  test("an image that is missing, empty, too large or breaks off is not counted; without any image the call fails", async () => {
    const { mock, provider, stored, call } = await startMedia();
    const megabyte = Buffer.alloc(1024 * 1024);
    mock.respond(
      { body: { data: Array.from({ length: 6 }, (_, i) => ({ url: `${mock.url}/${i}` })) } },
      { status: 404, body: "gone" },
      { ...image, body: "" },
      { body: "<html>gone</html>", headers: { "content-type": "text/html" } },
      { ...image, events: Array.from({ length: 65 }, () => megabyte) },
      { ...image, body: mockPng, cutAfter: 1 },
      { ...image, body: mockPng },
      { body: { data: [{ url: `${mock.url}/gone` }] } },
      { status: 404, body: "gone" },
    );
    expect((await provider.generate(call("images", { ...cat, n: 6 }))).usage).toEqual({ image: 1 });
    expect(stored).toEqual([{ bytes: mockPng, about: {} }]);
    expect(await errorOf(provider.generate(call("images", cat)))).toMatchObject({
      kind: "unavailable",
      message: expect.not.stringContaining("/gone") as unknown,
    });
  });

  test("a caller who disconnects while an image is fetched frees the connection", async () => {
    const { mock, provider, call } = await startMedia();
    mock.respond(
      { body: { data: [{ url: `${mock.url}/a` }] } },
      { ...image, events: [mockPng, mockPng], beforeEvent: { 1: new Promise(() => {}) } },
    );
    const caller = new AbortController();
    const answer = errorOf(provider.generate(call("images", cat, { signal: caller.signal })));
    const request = await mock.request(1);
    const reason = new Error("disconnected");
    caller.abort(reason);
    expect(await answer).toBe(reason);
    await request.closed;
    expect(request.aborted).toBe(true);
  });
});
