import { expect, test } from "vitest";
import {
  charges,
  drawing,
  fileAt,
  images,
  type MediaAnswer,
  media,
  paid,
  pngOf,
  providerImages,
  uploaded,
  wavOf,
} from "../support/generation-setup.ts";
import { mockError } from "../support/mock-openai.ts";
import { mockMp3, mockMp4, mockPng, mockTranscript } from "../support/mock-openai-media.ts";
import {
  catalogWith,
  expectUntouched,
  invalidValue,
  nanoUsd,
  noCapacity,
  type Refusal,
  refusal,
  refusalOf,
  serviceOfFile,
  testVideo,
  upstreamError,
} from "../support/service-setup.ts";

const speech = { model: "openai/tts-1", input: { text: "Grüße 👋", voice: "nova", format: "mp3" } };
const video = (input: object = {}) => ({ model: testVideo.id, input: { prompt: "waves", ...input } });

/** Prices are set here, so that changes of the price list do not affect the tests. */
const CATALOG_FILE = catalogWith(
  {},
  {
    "openai/tts-1": { pricing: { character: "0.000015" } },
    "openai/whisper-1": { pricing: { minute: "0.006" } },
    [providerImages]: {
      units: { image: { field: "n" } },
      pricing: { image: "0.04" },
      variants: [],
      upstreams: [
        { upstream: "openai", model: "gpt-image-2" },
        { upstream: "xai", model: "their-image" },
      ],
    },
  },
  [testVideo],
);
const running = serviceOfFile({ CATALOG_FILE, XAI_API_KEY: "operator" });
const small = serviceOfFile({ CATALOG_FILE, WORKER_PAYLOAD_BUDGET_BYTES: String(26 * 1024 * 1024) });

const generated = async (body: object, usd = "10") => {
  const customer = await running.service.account(usd);
  return { customer, ...(await paid<MediaAnswer>(running.service, customer, media, body)) };
};

test("speech: the provider's audio, by the character", async () => {
  const { answer, entry, costNanoUsd } = await generated(speech);
  expect(answer.files).toMatchObject([{ content_type: "audio/mpeg", bytes: mockMp3.length }]);
  expect((await fileAt(answer.files[0]?.url ?? "")).bytes).toEqual(mockMp3);
  expect(costNanoUsd).toBe(7n * 15_000n);
  expect(entry.request).toMatchObject({ upstream: "openai", attempts: { length: 1 }, usage: { character: 7 } });
  const { path, body } = running.provider.requests[0] ?? {};
  expect(path).toBe("/v1/audio/speech");
  expect(body).toEqual({ model: "tts-1", input: "Grüße 👋", voice: "nova", response_format: "mp3" });
});

test("transcription: the recording's bytes, by the minutes that the provider reports", async () => {
  const customer = await running.service.account("1");
  const file = await uploaded(running.service, customer, wavOf(10));
  const body = { model: "openai/whisper-1", input: { file, language: "en" } };
  const { answer, entry, costNanoUsd } = await paid<MediaAnswer>(running.service, customer, media, body);
  expect(answer).toMatchObject({ files: [], output: { text: mockTranscript } });
  // The provider reports nine seconds.
  expect(entry.request.usage).toEqual({ minute: 0.15 });
  expect(costNanoUsd).toBe(900_000n);
  const { path, form } = running.provider.requests[0] ?? {};
  expect(path).toBe("/v1/audio/transcriptions");
  expect(form?.find(({ name }) => name === "file")).toMatchObject({ type: "audio/wav", bytes: wavOf(10) });
});

test("a provider that reports more than the recording can have: the hold is charged, the rest is shortfall", async () => {
  const customer = await running.service.account("1");
  const file = await uploaded(running.service, customer, wavOf(1));
  running.provider.respond({ body: { text: "x", usage: { type: "duration", seconds: 36_000 } } });
  const before = nanoUsd(await customer.available());
  const response = await customer.post(media, { model: "openai/whisper-1", input: { file } });
  expect(response.status).toBe(200);
  await running.service.settled();
  const [entry] = await charges(customer);
  // 16,044 bytes are 0.5348 minutes at the lowest bit rate.
  expect(before - nanoUsd(await customer.available())).toBe(3_208_800n);
  expect(entry).toMatchObject({ amount_usd: "-0.0032088", request: { shortfall_usd: "3.5967912" } });
  expect(response.headers.get("x-xm-cost-usd")).toBe("0.0032088");
});

test("video: submitted, polled, downloaded; by the second, in the more expensive size", async () => {
  const { answer, entry, costNanoUsd } = await generated(video({ duration: 8, resolution: "1024x1792" }));
  expect(answer.files).toMatchObject([{ content_type: "video/mp4", bytes: mockMp4.length }]);
  expect((await fileAt(answer.files[0]?.url ?? "")).bytes).toEqual(mockMp4);
  expect(costNanoUsd).toBe(2_400_000_000n);
  expect(entry.request).toMatchObject({ upstream: "openai", attempts: { length: 1 }, usage: { second: 8 } });
  expect(running.provider.requests[0]?.body).toEqual({
    model: "video-1",
    prompt: "waves",
    seconds: "8",
    size: "1024x1792",
  });
});

test("a shorter video than requested costs less; a longer one no more", async () => {
  // The job is done at once, so that no further poll is needed.
  const made = (seconds: string) => [
    { body: { id: "video_1", status: "completed", seconds } },
    { body: mockMp4, headers: { "content-type": "video/mp4" } },
  ];
  running.provider.respond(...made("3"));
  const shorter = await generated(video(), "0.4");
  expect([shorter.costNanoUsd, await shorter.customer.available()]).toEqual([300_000_000n, "0.10"]);
  running.provider.reset();
  running.provider.respond(...made("12"));
  const longer = await generated(video(), "0.4");
  expect([longer.costNanoUsd, longer.entry.request.shortfall_usd]).toEqual([400_000_000n, "0.00"]);
});

test("a video from an image: its bytes go in a form", async () => {
  const customer = await running.service.account("10");
  const image = await uploaded(running.service, customer, pngOf(30, 20));
  await paid<MediaAnswer>(running.service, customer, media, video({ image }));
  const { form } = running.provider.requests[0] ?? {};
  expect(form?.find(({ name }) => name === "input_reference")?.bytes).toEqual(pngOf(30, 20));
});

test.each<readonly [what: string, body: object, answer: object, refused: Refusal]>([
  [
    "refuses a parameter",
    speech,
    mockError(400, "No such voice.", { param: "voice" }),
    invalidValue("input.voice", /No such voice/),
  ],
  ["refuses under its own name", speech, mockError(400, "Too long.", { param: "input" }), invalidValue("input.text")],
  [
    "breaks the sound off",
    speech,
    { headers: { "content-type": "audio/mpeg" }, body: mockMp3, cutAfter: 1 },
    upstreamError,
  ],
  ["sends an empty sound", speech, { headers: { "content-type": "audio/mpeg" }, body: "" }, upstreamError],
  ["is down", speech, mockError(500, "sk-secret"), upstreamError],
  ["is full", speech, mockError(429, "Slow down.", { headers: { "retry-after": "1" } }), noCapacity],
  [
    "fails the video",
    video(),
    { states: ["failed"], error: { code: "server_error", message: "It broke." } },
    upstreamError,
  ],
])("the provider %s: the error says so, no charge, no file", async (_, body, answer, expected) => {
  const customer = await running.service.account("10");
  running.provider.respond(answer);
  expect(await refusalOf(await customer.post(media, body))).toEqual(refusal(expected));
  await expectUntouched(running.service, customer, "10.00");
  expect(await charges(customer)).toEqual([]);
  running.provider.reset();
  // A success between the failures keeps the breaker closed; a busy provider gets the second that it requested.
  await expect.poll(async () => (await customer.post(media, { ...speech, model: "openai/tts-1" })).status).toBe(200);
});

test("if the first upstream fails the second one serves the call, for one charge", async () => {
  const customer = await running.service.account("1");
  running.provider.respond(mockError(500, "broke"), { body: { data: [{ b64_json: mockPng.toString("base64") }] } });
  const body = { ...drawing("a lighthouse", { size: "1024x1024" }), model: providerImages };
  const { answer, entry, costNanoUsd } = await paid(running.service, customer, images, body);
  expect(answer.data).toHaveLength(1);
  expect(costNanoUsd).toBe(40_000_000n);
  expect(entry.request).toMatchObject({ upstream: "xai", attempts: { length: 2 } });
  expect(running.provider.requests.map(({ body }) => body["model"])).toEqual(["gpt-image-2", "their-image"]);
});

test("images inside the answer count against the worker's memory: one that does not fit is 503 before a provider is called", async () => {
  // Two images of usual size, and their base64.
  const { service, provider } = small;
  const customer = await service.account("1");
  const body = {
    ...drawing("a lighthouse", { size: "1024x1024" }),
    model: providerImages,
    response_format: "b64_json",
  };
  const gate = Promise.withResolvers<void>();
  provider.respond({ beforeHeaders: gate.promise });
  const first = customer.post(images, { ...body, n: 2 });
  await provider.request(0);
  const before = await customer.available();
  const full: Refusal = { ...noCapacity, message: /memory/ };
  expect(await refusalOf(await customer.post(images, body))).toEqual(refusal(full));
  expect(provider.requests).toHaveLength(1);
  // The hold of a refused call is released after its answer.
  await expect.poll(() => customer.available()).toBe(before);
  gate.resolve();
  expect((await first).status).toBe(200);
  // The worker releases the memory once the call is settled.
  await service.settled();
  expect((await customer.post(images, body)).status).toBe(200);

  // The result may be larger than usual.
  const large = Buffer.concat([mockPng, Buffer.alloc(8 * 1024 * 1024)]).toString("base64");
  provider.respond({ body: { data: [{ b64_json: large }] } });
  await service.settled();
  const available = await customer.available();
  expect(await refusalOf(await customer.post(images, body))).toEqual(refusal(full));
  await service.settled();
  expect(await customer.available()).toBe(available);
  expect((await customer.post(images, body)).status).toBe(200);
  await service.settled();
});
