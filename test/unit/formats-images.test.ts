import { expect, test } from "vitest";
import { imagesCodec, mediaCodec } from "#formats";
import { imageResponse, mediaResponse } from "../../workers/handlers/generate.ts";

const image = (fields: object = {}) => ({ model: "local/image", prompt: "a lighthouse", ...fields });
const media = (fields: object = {}) => ({ model: "local/video", input: { prompt: "waves" }, ...fields });
const upload = "upl_abcdefghijklmnopqrstuvwx";

test.each([
  ["images", imagesCodec, (deep: unknown) => image({ more: deep })],
  ["media", mediaCodec, (deep: unknown) => media({ input: { more: deep } })],
])("%s: deep nesting is refused", (_what, codec, body) => {
  const deep: unknown = JSON.parse("[".repeat(200_000) + "]".repeat(200_000));
  expect(() => codec.parse(body(deep), 100)).toThrow(
    expect.objectContaining({ code: "invalid_value", param: expect.stringMatching(/^(input\.)?more(\[0\])+$/) }),
  );
});

test.each([
  ["images", imagesCodec, undefined, (more: object) => ({ ...image(), ...more })],
  ["images in a field", imagesCodec, undefined, (more: object) => image({ more })],
  ["media", mediaCodec, "input", (more: object) => media({ input: { prompt: "waves", ...more } })],
  ["media in a field", mediaCodec, "input", (more: object) => media({ input: { prompt: "waves", more } })],
])("%s: too many values are refused", (_what, codec, param, body) => {
  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]));
  expect(codec.parse(body(fields(1_000)), 100).model).toMatch(/^local/);
  expect(() => codec.parse(body(fields(100_001)), 100)).toThrow(
    expect.objectContaining({ code: "invalid_value", param, message: expect.stringContaining("100000 values") }),
  );
});

test("names of JavaScript's own properties are ordinary fields", () => {
  const body: unknown = JSON.parse(
    `{"model": "local/video", "input": {"__proto__": {"x": 1}, "constructor": "${upload}", "toString": null}}`,
  );
  const { input, uploads } = mediaCodec.parse(body, 100);
  expect(Object.getPrototypeOf(input?.value)).toBe(Object.prototype);
  expect(input?.value["x"]).toBeUndefined();
  expect(uploads).toMatchObject([{ param: "input.constructor" }]);
});

const at = Date.UTC(2026, 5, 1);
const seconds = at / 1000;

test("an image response has times in seconds, and each image its own", () => {
  const about = { revised_prompt: "A lighthouse at dusk" };
  const images = [
    { url: "http://localhost/media/file_1", expiresAt: at + 86_403_999, about },
    { b64_json: "AAAA", about: {} },
  ];
  expect(imageResponse({ createdAt: at + 999, expiresAt: at + 86_400_999 }, images)).toEqual({
    created: seconds,
    expires_at: seconds + 86_400,
    data: [
      { url: "http://localhost/media/file_1", ...about, expires_at: seconds + 86_403 },
      { b64_json: "AAAA", expires_at: seconds + 86_400 },
    ],
  });
});

test("fields of the provider do not replace those of the service", () => {
  const about = { url: "http://evil", b64_json: "x", expires_at: 1, content_type: "text/html", bytes: 1, seed: 3 };
  const life = { createdAt: at, expiresAt: at };
  const image = imageResponse(life, [
    { url: "http://ours", expiresAt: at, about: { url: "http://evil", expires_at: 1, seed: 3 } },
  ]);
  expect(image.data).toEqual([{ url: "http://ours", expires_at: seconds, seed: 3 }]);
  const file = { url: "http://ours", contentType: "video/mp4", bytes: 9, expiresAt: at, about };
  const answer = mediaResponse({ id: "gen_1", model: "local/video", ...life }, {}, [file]);
  expect(answer.files).toEqual([
    { url: "http://ours", content_type: "video/mp4", bytes: 9, expires_at: seconds, seed: 3, b64_json: "x" },
  ]);
});

test("a media response", () => {
  const ours = { id: "gen_1", model: "local/video", createdAt: at + 500, expiresAt: at + 86_400_500 };
  const file = { contentType: "video/mp4", bytes: 9, expiresAt: at + 86_400_500, about: {} };
  expect(mediaResponse(ours, { seed: 7 }, [{ ...file, url: "http://ours/1" }])).toEqual({
    id: "gen_1",
    object: "media.generation",
    created: seconds,
    model: "local/video",
    expires_at: seconds + 86_400,
    output: { seed: 7 },
    files: [{ url: "http://ours/1", content_type: "video/mp4", bytes: 9, expires_at: seconds + 86_400 }],
  });
});
