import { afterEach, describe, expect, test } from "vitest";
import { bucketOfFile } from "../support/bucket-of-file.ts";
import { charges, imageModel, providerImages, wavOf } from "../support/generation-setup.ts";
import {
  imageAddress as address,
  endpoints,
  type Fields,
  image,
  mediaCatalog,
  send,
} from "../support/media-endpoints.ts";
import { dataAddress } from "../support/media-files.ts";
import { eventually } from "../support/service.ts";
import { expectUntouched, invalidValue, refusal, refusalOf, serviceOfFile } from "../support/service-setup.ts";

const bucket = bucketOfFile();
const running = serviceOfFile({ S3_BUCKET: bucket.name, CATALOG_FILE: mediaCatalog(), FAL_KEY: "key" });

/** Nothing of a refused request is stored. */
afterEach(async () => {
  await eventually(async () => (await bucket.count()) === 0);
});

/** A change of the endpoint's request, the field that is named, and the text of the error. */
type Row = readonly [
  what: string,
  fields: Fields,
  param: string | null,
  message?: RegExp,
  code?: string,
  status?: number,
];

const mebi = 1024 * 1024;
const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));
const unsupported = "model_not_supported";
const tooLarge = ["request_too_large", 413] as const;
const sound = new Blob([wavOf(1)]);
const text = new Blob(["text"]);
const empty = new Blob([]);
const deep = `more${"[0]".repeat(63)}`;
const times = (count: number, value: unknown) => Array.from({ length: count }, () => value);
const video = (fields: object) => ({ input: { prompt: "x", duration: 1, ...fields } });
const spoken = (fields: object) => ({ model: "local/speech", input: { text: "x", ...fields } });
const heard = (file: string) => ({ model: "local/transcription", input: { file } });
const theirs = { model: providerImages, size: undefined };

const rows: Readonly<Partial<Record<keyof typeof endpoints, readonly Row[]>>> = {
  images: [
    ["no prompt", { prompt: undefined }, "prompt"],
    ["n of 5", { n: 5 }, "n", /4/],
    ["n of 0", { n: 0 }, "n", /1/],
    ["a size that is none", { size: "big" }, "size", /<width>x<height>/],
    ["a size that the model does not have", { size: "4096x16" }, "size", /2048/],
    ["a size that a provider's model does not have", { ...theirs, size: "512x512" }, "size", /1024x1024/],
    ["an unknown response_format", { response_format: "png" }, "response_format", /b64_json/],
    ["a stream", { stream: true }, "stream"],
    ["a buyback token beside a key", { buyback_token: "mint" }, "buyback_token", /API key/],
    ["a parameter that the provider's model does not have", { ...theirs, negative_prompt: "fog" }, "negative_prompt"],
    ["a quality that the model does not have", { ...theirs, quality: "hd" }, "quality"],
    ["a prompt that is too long", { prompt: "x".repeat(32_001) }, "prompt", /32000/],
    ["an unknown model", { model: "nobody/nothing" }, "model", /./, "model_not_found", 404],
    ["a chat model", { model: "local/chat" }, "model", /./, unsupported],
    ["a media model", { model: "local/video" }, "model", /./, unsupported],
    ["parameters that are nested too deep", { more: nested(100) }, deep],
    ["no image", { prompt: "deliver:0", n: 2 }, null, /./, "upstream_error", 502],
  ],
  "image edits in JSON": [
    ["no image", { image: undefined }, "image", /one of `image` and `images`/],
    ["both names of images", { images: [address] }, "image"],
    ["17 images", { image: times(17, address) }, "image", /16/],
    ["more images than the model takes", { image: times(5, address) }, "image", /4/],
    ["a link, which no model here takes", { image: "https://example.com/a.png" }, "image", /ids of uploads/],
    ["a file of OpenAI's store", { images: [{ file_id: "file-abc" }], image: undefined }, "image[0]"],
    ["a reference with two addresses", { mask: { image_url: address, file_id: "upl_1" } }, "mask", /needs/],
    ["an empty reference", { image: [address, {}] }, "image[1]", /needs/],
    ["a data URL that is no base64", { image: [address, "data:image/png;base64,%%"] }, "image[1]", /base64/],
    ["a data URL without data", { mask: "data:image/png;base64," }, "mask", /base64/],
    ["text", { mask: { image_url: dataAddress("image/png", Buffer.from("text")) } }, "mask.image_url"],
    ["a recording", { image: dataAddress("image/png", wavOf(1)) }, "image", /not an image/],
    ["a stream", { stream: true }, "stream", /streamed/],
    ["no model", { model: undefined }, "model"],
    ["no prompt", { prompt: undefined }, "prompt"],
    ["parameters that are nested too deep", { more: nested(100) }, deep],
    ["a chat model", { model: "local/chat" }, "model", /\/v1\/chat\/completions/, unsupported],
  ],
  "variations in JSON": [
    ["two images", { image: [address, address] }, "image"],
    ["no model, which OpenAI's clients may omit", { model: undefined }, "model"],
    ["a model without", { model: "black-forest-labs/flux-1-kontext-pro" }, "model", /generations/, unsupported],
    ["a provider's model without", { model: providerImages }, "model", /generations/, unsupported],
  ],
  "image edits in a form": [
    ["no image", { image: undefined }, "image", /no file/],
    ["only a mask", { image: undefined, mask: image }, "image", /no file/],
    ["two masks", { mask: [image, image] }, "mask", /one file in the field 'mask'/],
    ["17 images", { image: undefined, "image[]": times(17, image) }, "image", /16/],
    ["more images than the model takes", { image: undefined, "image[]": times(5, image) }, "image", /4/],
    ["text as an image", { image: undefined, "image[]": [image, text] }, "image[1]", /not an/],
    ["a recording", { image: sound }, "image", /not an image/],
    ["an empty image", { image: undefined, "image[]": [image, empty] }, "image[1]", /empty/],
    ["an empty mask", { mask: empty }, "mask", /empty/],
    ["an image without a file name", { image: "upl_1" }, "image", /file name/],
    ["a file in another field", { photo: image }, "image", /16 files in the field 'image'/],
    ["an image over 50 MB", { image: new Blob([Buffer.alloc(50 * mebi + 1)]) }, "image", /52428800/, ...tooLarge],
    ["a field of 10 MB", { user: "x".repeat(10 * mebi) }, "user", /limit/],
    ["too many fields", { x: times(40, "1") }, null, /too many/],
    ["no model", { model: undefined }, "model"],
    ["two models", { model: ["local/nothing", imageModel] }, "model", /twice/],
    ["no prompt", { prompt: undefined }, "prompt"],
    ["n that is no number", { n: "two" }, "n", /number/],
    ["n of 5", { n: "5" }, "n", /4/],
    ["a stream", { stream: "true" }, "stream", /streamed/],
    ["a size that the model does not have", { size: "9x9" }, "size"],
    ["a parameter that the model does not have", { ...theirs, partial_images: "2" }, "partial_images"],
    ["a failure of the model", { prompt: "error:400" }, "prompt"],
  ],
  "variations in a form": [
    ["two images", { image: [image, image] }, "image", /one file/],
    ["a mask", { mask: image }, "image"],
  ],
  transcriptions: [
    ["no model", { model: undefined }, "model"],
    ["no file", { file: undefined }, "file", /no file/],
    ["an empty file", { file: empty }, "file", /empty/],
    ["a file field that is text", { file: "recording.wav" }, "file", /no file/],
    ["a file of no type", { file: text }, "file", /./, "unsupported_media_type", 415],
    ["an image", { file: image }, "file", /image, not a recording/],
    ["a file over 25 MB", { file: new Blob([Buffer.alloc(25 * mebi + 1)]) }, "file", /26214400/, ...tooLarge],
    ["an unknown format", { response_format: "docx" }, "response_format", /verbose_json/],
    ["a format of others", { model: "openai/gpt-transcribe", response_format: "srt" }, "response_format", /"response_/],
    ["a temperature that is no number", { model: "openai/whisper-1", temperature: "hot" }, "temperature", /number/],
    ["a parameter that the model does not have", { pitch: "1" }, "pitch", /"pitch"/],
    ["a stream", { stream: "true" }, "stream", /not streamed/],
    ["a chat model", { model: "local/chat" }, "model", /\/v1\/chat\/completions/, unsupported],
    ["a speech model", { model: "local/speech" }, "model", /\/v1\/audio\/speech/, unsupported],
    ["a failure of the model", { prompt: "error:400" }, "prompt"],
  ],
  translations: [
    ["a model that does not", { model: "openai/gpt-transcribe" }, "model", /\/v1\/audio\/transcriptions/, unsupported],
  ],
  speech: [
    ["no input", { input: undefined }, "input"],
    ["an empty input", { input: "" }, "input"],
    ["an input that is too long", { input: "x".repeat(4_097) }, "input", /^input: .*4096/],
    ["a voice that the model does not have", { voice: "nobody" }, "voice", /alto/],
    ["a format that the model does not make", { response_format: "opus" }, "response_format", /wav/],
    ["a parameter that the model does not have", { pitch: 2 }, "pitch", /"pitch"/],
    ["another kind of stream", { stream_format: "text" }, "stream_format"],
    ["a chat model", { model: "local/chat" }, "model", /\/v1\/chat\/completions/, unsupported],
    ["a video model", { model: "local/video" }, "model", /\/v1\/media\/generations/, unsupported],
    ["parameters that are nested too deep", { more: nested(100) }, deep],
  ],
  "media: video": [
    ["no input", { input: undefined }, "input"],
    ["an input that is a list", { input: [] }, "input"],
    ["no prompt", { input: {} }, "input.prompt"],
    ["an empty prompt", video({ prompt: "" }), "input.prompt"],
    ["a prompt that is a number", video({ prompt: 5 }), "input.prompt", /string/],
    ["a length that is none", video({ duration: "long" }), "input.duration"],
    ["no length", video({ duration: 0 }), "input.duration", /1/],
    ["a length below nothing", video({ duration: -4 }), "input.duration", /1/],
    ["a part of a second", video({ duration: 1.5 }), "input.duration", /int/],
    ["a length over the longest", video({ duration: 21 }), "input.duration", /20/],
    ["a length that nobody can count", video({ duration: 1e308 }), "input.duration"],
    ["a size that the model does not have", video({ resolution: "1x1" }), "input.resolution", /1280x720/],
    ["a voice that there is not", spoken({ voice: "choir" }), "input.voice", /alto/],
    ["no text", spoken({ text: "" }), "input.text"],
    ["a text that is too long", spoken({ text: "x".repeat(4_097) }), "input.text", /4096/],
    ["a speed that the model does not have", spoken({ speed: 5 }), "input.speed"],
    ["a recording that is no upload", heard("recording.wav"), "input.file", /id of an upload/],
    ["a recording by its address", heard("https://example.com/a.wav"), "input.file", /id of an upload/],
    ["a buyback token beside a key", { buyback_token: "mint" }, "buyback_token", /API key/],
    [
      "what the local model is made to refuse",
      video({ prompt: "error:400" }),
      "input.prompt",
      /400 that you asked for/,
    ],
    ["no video", video({ prompt: "deliver:0" }), null, /./, "upstream_error", 502],
    ["an unknown model", { model: "nobody/nothing" }, "model", /./, "model_not_found", 404],
    ["a chat model", { model: "local/chat" }, "model", /./, unsupported],
    ["an image model", { model: imageModel }, "model", /./, unsupported],
    ["an input that is nested too deep", video({ a: nested(100) }), `input.a${"[0]".repeat(63)}`, /deep/],
  ],
};

const types: Readonly<Record<number, string>> = { 404: "not_found_error", 502: "server_error" };

describe.each(Object.entries(rows))("%s: the field is named in a refusal of", (name, refused) => {
  const endpoint = endpoints[name as keyof typeof endpoints];

  test.each(refused.map((row) => ({ row, what: row[0] })))("$what: no hold, no charge, no call", async ({ row }) => {
    const [, fields, param, message, code = "invalid_value", status = 400] = row;
    const customer = await running.service.account("1");
    const expected = { ...invalidValue(param, message), code, status, type: types[status] ?? "invalid_request_error" };
    const response = await send(running.service, customer, endpoint, fields);
    expect(await refusalOf(response)).toEqual(refusal(expected));
    await expectUntouched(running.service, customer, "1.00");
    expect(await charges(customer)).toEqual([]);
    expect(running.provider.requests).toEqual([]);
  });
});

test("a refused request counts as a request, and is no call", async () => {
  const customer = await running.service.account("1", { limits: { requests_per_minute: 2 } });
  await send(running.service, customer, endpoints.images, { n: 5 });
  expect(await customer.ledger("usage")).toEqual([]);
  const next = await send(running.service, customer, endpoints.images, { response_format: "b64_json" });
  expect(next.headers.get("x-ratelimit-remaining-requests")).toBe("0");
});
