import { expect, test } from "vitest";
import { type Codec, imagesCodec, mediaCodec } from "#formats";
import { imageResponse, mediaResponse } from "../../workers/handlers/generate.ts";

const image = (fields: object = {}) => ({ model: "local/image", prompt: "a lighthouse", ...fields });
const media = (fields: object = {}) => ({ model: "local/video", input: { prompt: "waves" }, ...fields });
const upload = "upl_abcdefghijklmnopqrstuvwx";

const refused: readonly (readonly [what: string, codec: Codec, body: unknown, param: string | undefined])[] = [
  ["no object", imagesCodec, "a lighthouse", undefined],
  ["null", imagesCodec, null, undefined],
  ["a list", imagesCodec, [image()], undefined],
  ["no model", imagesCodec, { prompt: "x" }, "model"],
  ["an empty model", imagesCodec, image({ model: "" }), "model"],
  ["no prompt", imagesCodec, { model: "local/image" }, "prompt"],
  ["an empty prompt", imagesCodec, image({ prompt: "" }), "prompt"],
  ["a prompt that is a list", imagesCodec, image({ prompt: ["x"] }), "prompt"],
  ["n of 0", imagesCodec, image({ n: 0 }), "n"],
  ["n of 5", imagesCodec, image({ n: 5 }), "n"],
  ["n of -1", imagesCodec, image({ n: -1 }), "n"],
  ["n with a fraction", imagesCodec, image({ n: 1.5 }), "n"],
  ["n that is a text", imagesCodec, image({ n: "2" }), "n"],
  ["a size of one side", imagesCodec, image({ size: "512" }), "size"],
  ["a size of nothing", imagesCodec, image({ size: "0x0" }), "size"],
  ["a size with a sign", imagesCodec, image({ size: "-512x512" }), "size"],
  ["a size in capitals", imagesCodec, image({ size: "512X512" }), "size"],
  ["a size with spaces", imagesCodec, image({ size: "512 x 512" }), "size"],
  ["a size with a line end", imagesCodec, image({ size: "512x512\n" }), "size"],
  ["a size that is a number", imagesCodec, image({ size: 512 }), "size"],
  ["a size without end", imagesCodec, image({ size: `${"9".repeat(9)}x1` }), "size"],
  ["another response_format", imagesCodec, image({ response_format: "png" }), "response_format"],
  ["a stream", imagesCodec, image({ stream: true }), "stream"],
  ["a buyback token that is a number", imagesCodec, image({ buyback_token: 5 }), "buyback_token"],
  ["media: no object", mediaCodec, 5, undefined],
  ["media: no model", mediaCodec, { input: {} }, "model"],
  ["media: no input", mediaCodec, { model: "local/video" }, "input"],
  ["media: an input that is a text", mediaCodec, media({ input: "waves" }), "input"],
  ["media: an input that is a list", mediaCodec, media({ input: [] }), "input"],
  ["media: an input of null", mediaCodec, media({ input: null }), "input"],
  ["media: a buyback token that is a list", mediaCodec, media({ buyback_token: ["mint"] }), "buyback_token"],
];

test.each(refused)("refuses %s, and names the field", (_what, codec, body, param) => {
  expect(() => codec.parse(body, 100)).toThrow(expect.objectContaining({ code: "invalid_value", status: 400, param }));
});

test("the input of an image call is the body without the fields that the service reads", () => {
  const fields = { n: 2, size: "1024x768", quality: "high", style: null, background: undefined, seed: 7 };
  const ours = { response_format: "b64_json", user: "u-1", stream: false, buyback_token: null };
  expect(imagesCodec.parse(image({ ...fields, ...ours }), 100)).toEqual({
    model: "local/image",
    stream: false,
    size: { inputBytes: 0, messages: 0, parts: [], choices: 1 },
    textBytes: 0,
    features: new Map(),
    uploads: [],
    input: { value: { prompt: "a lighthouse", n: 2, size: "1024x768", quality: "high", seed: 7 }, at: "" },
  });
});

test("a buyback token is not part of the input", () => {
  const { buybackToken, input } = imagesCodec.parse(image({ buyback_token: "mint" }), 100);
  expect([buybackToken, input?.value]).toEqual(["mint", { prompt: "a lighthouse" }]);
  expect(mediaCodec.parse(media({ buyback_token: "" }), 100)).toMatchObject({ buybackToken: "" });
});

test("size auto is taken", () => {
  expect(imagesCodec.parse(image({ size: "auto" }), 100).input?.value).toEqual({
    prompt: "a lighthouse",
    size: "auto",
  });
  expect(() => imagesCodec.parse(image({ size: "automatic" }), 100)).toThrow(
    expect.objectContaining({ param: "size" }),
  );
});

test("null equals an absent field", () => {
  const nulls = { n: null, size: null, response_format: null, stream: null, user: null, buyback_token: null };
  expect(imagesCodec.parse(image(nulls), 100).input?.value).toEqual({ prompt: "a lighthouse" });
  const input = { prompt: "waves", duration: null, more: { deep: null } };
  expect(mediaCodec.parse(media({ input }), 100).input).toEqual({
    value: { prompt: "waves", more: { deep: null } },
    at: "input",
  });
});

test("uploads in an image call are images; a prompt that looks like an upload is not one", () => {
  const body = image({
    prompt: upload,
    image: [upload, "https://example.com/a.png"],
    mask: upload,
    more: { of: upload },
  });
  expect(imagesCodec.parse(body, 100).uploads).toEqual([
    { id: upload, param: "image[0]", kind: "image" },
    { id: upload, param: "mask", kind: "image" },
    { id: upload, param: "more.of", kind: "image" },
  ]);
});

test("uploads in a media call are of any kind, with paths below input", () => {
  const input = { prompt: `Show ${upload}`, image: upload, references: [{ file: upload }] };
  expect(mediaCodec.parse(media({ input }), 100).uploads).toEqual([
    { id: upload, param: "input.image", kind: undefined },
    { id: upload, param: "input.references[0].file", kind: undefined },
  ]);
});

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
