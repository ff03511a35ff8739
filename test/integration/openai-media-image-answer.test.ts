import { randomBytes } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import { readImages } from "../../workers/providers/openai/read-images.ts";
import { startMockOpenai } from "../support/mock-openai.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { startOpenai } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

async function* pieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const read = async (text: string, size = text.length) => {
  const { answer, images } = await readImages(pieces(Buffer.from(text), size), () => {});
  return { answer, images: images.map((parts) => Buffer.concat(parts)) };
};

test("images and their surroundings are the same wherever the answer is split", async () => {
  const [first, second] = [Buffer.from("fb+/~~ÿÿ>>??", "latin1"), randomBytes(31)];
  // Encode base64 as .NET, PHP and MIME encoders do.
  const escaped = first.toString("base64").replaceAll("+", "\\u002B").replaceAll("/", "\\/").replace(/^..../, "$&\\n");
  const revised_prompt = 'grüße "b64_json": "AAAA" \\" 猫';
  const text = `{"created": 1, "data": [{"b64_json" :\n "${escaped}", "revised_prompt": ${JSON.stringify(revised_prompt)}},
    {"b64_json":null},{"b64_json":""},{"b64_json":"${second.toString("base64")}"}], "usage": {"b64_json": 7}}`;
  for (let size = 1; size <= text.length; size++) {
    const { answer, images } = await read(text, size);
    expect({ size, answer, images }).toEqual({
      size,
      answer: {
        created: 1,
        data: [{ b64_json: "0", revised_prompt }, { b64_json: null }, { b64_json: "1" }, { b64_json: "2" }],
        usage: { b64_json: 7 },
      },
      images: [first, Buffer.alloc(0), second],
    });
  }
});

async function* endless(part: string) {
  for (;;) yield Buffer.from(part);
}

test.each([
  ["an image", '{"data": [{"b64_json": "', "A".repeat(1024 * 1024)],
  ["anything else", '{"data": "', "A".repeat(64 * 1024)],
])("an endless answer is refused: %s", async (_, head, part) => {
  let bytes = 0;
  const body = async function* () {
    yield Buffer.from(head);
    for await (const each of endless(part)) {
      bytes += each.length;
      yield each;
    }
  };
  expect(await errorOf(readImages(body(), () => {}))).toMatchObject({
    kind: "unavailable",
    message: expect.stringMatching(/too large/) as string,
  });
  expect(bytes).toBeLessThanOrEqual(130 * 1024 * 1024);
});

test.each(["[]", "7", "", '{"b64_json": "AA', '{"b64_json": "AA\\x"}', '{"b64_json": "AA" "b"}'])(
  "%j is no answer",
  async (text) => {
    expect(await errorOf(read(text, 1))).toMatchObject({ kind: "unavailable" });
  },
);

const cat = { prompt: "a cat" };
const image = { headers: { "content-type": "image/png" }, done: false as const };
const never = new Promise<never>(() => {});

describe("addresses in an answer", () => {
  test("on the provider's own origin they are fetched, with redirects within it, without the operator's key", async () => {
    const { mock, provider, stored, call } = await startOpenai();
    mock.respond(
      { body: { data: [{ url: `${mock.url}/a.png?sig=1` }, { url: `${mock.url}/b`, revised_prompt: "b" }] } },
      { ...image, body: mockPng },
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
    const { mock, provider, stored, call } = await startOpenai();
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
      `${mock.url}/redirect`,
    ];
    for (const url of urls) {
      mock.respond({ body: { data: [{ url }] } });
      if (url.endsWith("/redirect"))
        mock.respond({ status: 302, headers: { location: `${inside.url}/secret` }, body: "" });
      expect(await errorOf(provider.generate(call("images", cat)))).toMatchObject({ kind: "unavailable" });
    }
    expect([inside.connections(), stored]).toEqual([0, []]);
  });

  test("an image that is missing, empty, too large or breaks off is not counted; without any image the call fails", async () => {
    const { mock, provider, stored, call } = await startOpenai();
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
    const { mock, provider, call } = await startOpenai();
    const file = { ...image, events: [mockPng, mockPng], beforeEvent: { 1: never } };
    mock.respond({ body: { data: [{ url: `${mock.url}/a` }] } }, file);
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
