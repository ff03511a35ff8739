import OpenAI, { toFile } from "openai";
import { afterEach, expect, test } from "vitest";
import { bucketOfFile } from "../support/bucket-of-file.ts";
import { charges, pngOf, wavOf } from "../support/generation-setup.ts";
import { mockError } from "../support/mock-openai.ts";
import { mockRecordingSeconds, mockTranscript } from "../support/mock-openai-media.ts";
import { type Customer, eventually } from "../support/service.ts";
import {
  catalogWith,
  entryOf,
  expectUntouched,
  nanoUsd,
  refusal,
  refusalOf,
  serviceOfFile,
} from "../support/service-setup.ts";

const local = "local/transcription";
const whisper = "openai/whisper-1";
const path = "/v1/audio/transcriptions";

const bucket = bucketOfFile();
const running = serviceOfFile({
  S3_BUCKET: bucket.name,
  CATALOG_FILE: catalogWith(
    {},
    { [local]: { pricing: { minute: "0.002" } }, [whisper]: { pricing: { minute: "0.006" } } },
  ),
});

/** No file of any call remains, whether the call succeeded or was refused. */
afterEach(async () => {
  await eventually(async () => (await bucket.count()) === 0);
});

const recording = (seconds = 3) => toFile(wavOf(seconds), "recording.wav");

async function costOf(customer: Customer, response: Response, endpoint = path): Promise<bigint> {
  await running.service.settled();
  const entry = await entryOf(running.service, response.headers.get("x-request-id"));
  expect(entry.request).toMatchObject({ endpoint, status: "succeeded" });
  expect(response.headers.get("x-xm-cost-usd")).toBe(entry.amount_usd.replace("-", ""));
  expect(await charges(customer)).toHaveLength(1);
  expect(nanoUsd("1.00") - nanoUsd(await customer.available())).toBe(-nanoUsd(entry.amount_usd));
  return -nanoUsd(entry.amount_usd);
}

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
  const translations = "/v1/audio/translations";
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
  const customer = await running.service.account("1");
  const other = await post(customer, { model: "openai/gpt-transcribe" }, translations);
  expect(await refusalOf(other)).toEqual(invalid("model", /\/v1\/audio\/transcriptions/, "model_not_supported"));
});

test("under an Idempotency-Key the same recording is answered again, and another one is a conflict", async () => {
  const customer = await running.service.account("1");
  const ask = async (seconds: number) =>
    customer.openai.audio.transcriptions
      .create({ model: local, file: await recording(seconds) }, { headers: { "idempotency-key": "once" } })
      .withResponse();
  const first = await ask(3);
  const again = await ask(3);
  expect(again.data).toEqual(first.data);
  expect(again.response.headers.get("idempotent-replayed")).toBe("true");
  expect(await costOf(customer, again.response)).toBe(100_000n);
  await expect(ask(4)).rejects.toMatchObject({ status: 409, code: "conflict" });
});

type Fields = Readonly<Record<string, string | Blob | undefined>>;

function post({ key }: Customer, fields: Fields, endpoint = path): Promise<Response> {
  const form = new FormData();
  const blob = new Blob([wavOf(3)]);
  for (const [name, value] of Object.entries({ model: local, file: blob, ...fields }))
    if (value !== undefined) form.append(name, value);
  return fetch(running.service.baseUrl + endpoint, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: form,
  });
}

const invalid = (param: string | null, message = /./, code = "invalid_value", status = 400) =>
  refusal({ status, type: "invalid_request_error", code, param, message });

test.each<readonly [what: string, fields: Fields, expected: ReturnType<typeof refusal>]>([
  ["no model", { model: undefined }, invalid("model")],
  ["no file", { file: undefined }, invalid("file", /no file/)],
  ["an empty file", { file: new Blob([]) }, invalid("file", /empty/)],
  ["a file field that is text", { file: "recording.wav" }, invalid("file", /no file/)],
  ["a file of no type", { file: new Blob(["hello"]) }, invalid("file", /./, "unsupported_media_type", 415)],
  ["an image", { file: new Blob([pngOf(3, 2)]) }, invalid("file", /image, not a recording/)],
  [
    "a file over 25 MB",
    { file: new Blob([Buffer.alloc(25 * 1024 * 1024 + 1)]) },
    invalid("file", /26214400/, "request_too_large", 413),
  ],
  ["an unknown format", { response_format: "docx" }, invalid("response_format", /verbose_json/)],
  [
    "a format that the model does not have",
    { model: "openai/gpt-transcribe", response_format: "srt" },
    invalid("response_format", /"response_format"/),
  ],
  ["a temperature that is no number", { model: whisper, temperature: "hot" }, invalid("temperature", /number/)],
  ["a parameter that the model does not have", { pitch: "1" }, invalid("pitch", /"pitch"/)],
  ["a stream", { stream: "true" }, invalid("stream", /not streamed/)],
  ["a chat model", { model: "local/chat" }, invalid("model", /\/v1\/chat\/completions/, "model_not_supported")],
  ["a speech model", { model: "local/speech" }, invalid("model", /\/v1\/audio\/speech/, "model_not_supported")],
  ["a failure of the model", { prompt: "error:400" }, invalid("prompt")],
])("%s: refused naming the field, and no charge", async (_, fields, expected) => {
  const customer = await running.service.account("1");
  expect(await refusalOf(await post(customer, fields))).toEqual(expected);
  await expectUntouched(running.service, customer, "1.00");
  expect(await charges(customer)).toEqual([]);
});

test("a body that is no form is 415", async () => {
  const customer = await running.service.account("1");
  expect(await refusalOf(await customer.post(path, { model: local }))).toEqual(
    invalid(null, /multipart\/form-data/, "unsupported_media_type", 415),
  );
});

test("a provider that fails costs nothing", async () => {
  const customer = await running.service.account("1");
  running.provider.respond(mockError(400, "This audio is broken.", { param: "file" }));
  expect(await refusalOf(await post(customer, { model: whisper }))).toEqual(invalid("file", /broken/));
  await expectUntouched(running.service, customer, "1.00");
});

test("nothing of a caller who disconnects remains, and speech is deleted once it is sent", async () => {
  const { openai, ...customer } = await running.service.account("1");
  const file = await recording();
  const leaving = new AbortController();
  const asked = openai.audio.transcriptions.create(
    { model: local, file, prompt: "slow:500" },
    { signal: leaving.signal, maxRetries: 0 },
  );
  await eventually(async () => (await customer.available()) !== "1.00");
  leaving.abort();
  await expect(asked).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
  await openai.audio.speech.create({ model: "local/speech", input: "Hello", voice: "alloy" });
  await running.service.settled();
});
