import { toFile } from "openai";
import { afterEach, expect, test } from "vitest";
import { bucketOfFile } from "../support/bucket-of-file.ts";
import { wavOf } from "../support/generation-setup.ts";
import { mediaCatalog, onlyCost, transcriptions as path, translations } from "../support/media-endpoints.ts";
import { mockRecordingSeconds, mockTranscript } from "../support/mock-openai-media.ts";
import { type Customer, eventually } from "../support/service.ts";
import { invalidValue, refusal, refusalOf, serviceOfFile } from "../support/service-setup.ts";

const local = "local/transcription";
const whisper = "openai/whisper-1";

const bucket = bucketOfFile();
const running = serviceOfFile({ S3_BUCKET: bucket.name, CATALOG_FILE: mediaCatalog() });

/** No file of any call remains, whether the call succeeded or was refused. */
afterEach(async () => {
  await eventually(async () => (await bucket.count()) === 0);
});

const recording = (seconds = 3) => toFile(wavOf(seconds), "recording.wav");

const costOf = (customer: Customer, response: Response, endpoint = path) =>
  onlyCost(running.service, customer, response, endpoint);

const said = /^This is a recording of 3 seconds: audio\/wav, 48044 bytes\.\n?$/;

test("the local model transcribes as JSON; only the minutes are charged, and the account has no upload", async () => {
  const customer = await running.service.account("1");
  const { data, response } = await customer.openai.audio.transcriptions
    .create({ model: local, file: await recording(), language: "en" })
    .withResponse();
  expect(data.text).toMatch(said);
  expect(await costOf(customer, response)).toBe(100_000n);
  const uploads = await fetch(`${running.service.baseUrl}/v1/uploads`, {
    headers: { authorization: `Bearer ${customer.key}` },
  });
  expect(await uploads.json()).toMatchObject({ data: [] });
});

test.each([
  ["text", said],
  ["srt", /^1\n00:00:00,000 --> 00:00:03,000\nThis is .*\n\n$/],
  ["vtt", /^WEBVTT\n\n00:00:00\.000 --> 00:00:03\.000\nThis is .*\n\n$/],
] as const)("as %s", async (format, expected) => {
  const customer = await running.service.account("1");
  const file = await recording();
  const { data, response } = await customer.openai.audio.transcriptions
    .create({ model: local, file, response_format: format })
    .withResponse();
  expect(data).toMatch(expected);
  expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(await costOf(customer, response)).toBe(100_000n);
});

test("the local model accepts a temperature, and returns the times of words on request", async () => {
  const customer = await running.service.account("1");
  const asked = { model: local, file: await recording(), temperature: 0.2, response_format: "verbose_json" } as const;
  const { transcriptions } = customer.openai.audio;
  const both = await transcriptions.create({ ...asked, timestamp_granularities: ["word", "segment"] });
  expect(both.segments).toMatchObject([{ id: 0, start: 0, end: 3 }]);
  expect(both.words?.[0]).toEqual({ word: "This", start: 0, end: expect.any(Number) });
  expect(both.words?.at(-1)?.end).toBe(3);
  const segments = await transcriptions.create({ ...asked, timestamp_granularities: ["segment"] });
  expect(segments.words).toBeUndefined();
});

test("a provider gets the file and its own names, and its segments come back", async () => {
  const customer = await running.service.account("1");
  const content = wavOf(2);
  const { data, response } = await customer.openai.audio.transcriptions
    .create({
      model: whisper,
      file: await toFile(content, "any.name"),
      response_format: "verbose_json",
      timestamp_granularities: ["segment", "word"],
      temperature: 0.5,
      prompt: "Names",
      stream: false,
    })
    .withResponse();
  expect(data).toMatchObject({ text: mockTranscript, language: "english", duration: 8.5, segments: [{ id: 0 }] });
  expect(await costOf(customer, response)).toBe((BigInt(mockRecordingSeconds) * 6_000_000n) / 60n);
  const sent = running.provider.requests.map(({ form }) =>
    form?.map(({ name, bytes }) => [name, name === "file" ? bytes.equals(content) : bytes.toString()]),
  );
  expect(sent[0]?.toSorted()).toEqual([
    ["file", true],
    ["model", "whisper-1"],
    ["prompt", "Names"],
    ["response_format", "verbose_json"],
    ["temperature", "0.5"],
    ["timestamp_granularities[]", "segment"],
    ["timestamp_granularities[]", "word"],
  ]);
});

test("a recording is translated, here and by a provider, at the price of a transcript", async () => {
  const ask = async (model: string) => {
    const customer = await running.service.account("1");
    const { data, response } = await customer.openai.audio.translations
      .create({ model, file: await recording() })
      .withResponse();
    return [data.text, await costOf(customer, response, translations)];
  };
  expect(await ask(local)).toEqual([expect.stringMatching(/^The English translation of a recording of 3/), 100_000n]);
  expect(await ask(whisper)).toEqual([mockTranscript, (BigInt(mockRecordingSeconds) * 6_000_000n) / 60n]);
  expect(running.provider.requests.map((sent) => sent.path)).toEqual([translations]);
});

test("a body that is no form is 415", async () => {
  const customer = await running.service.account("1");
  const refused = { ...invalidValue(null, /multipart\/form-data/), status: 415, code: "unsupported_media_type" };
  expect(await refusalOf(await customer.post(path, { model: local }))).toEqual(refusal(refused));
});

test("speech is deleted once it is sent", async () => {
  const { openai } = await running.service.account("1");
  await openai.audio.speech.create({ model: "local/speech", input: "Hello", voice: "alloy" });
  await running.service.settled();
  await expect.poll(() => bucket.count()).toBe(0);
});
