import { expect, test } from "vitest";
import { leave, letGo } from "../support/disconnecting.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { mockRecordingSeconds, mockTranscript } from "../support/mock-openai-media.ts";
import { startMedia } from "../support/openai-media-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

/** A recording of silence: 8,000 samples of 16 bits per second. */
function wavOf(seconds: number): Buffer {
  const data = Buffer.alloc(Math.round(seconds * 8_000) * 2);
  const head = Buffer.alloc(44);
  head.write("RIFF").toString();
  head.writeUInt32LE(36 + data.length, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(16_000, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(data.length, 40);
  return Buffer.concat([head, data]);
}

const recording = (content: Buffer | number = wavOf(1.5), mime = "audio/wav") =>
  uploadsOf([{ id: "upl_1", param: "input.file", mime, content }]);

test("the recording is sent as an exact form, with the model's own parameters", async () => {
  const { mock, provider, stored, call } = await startMedia();
  const content = wavOf(0.1);
  const input = {
    file: "upl_1",
    language: "en",
    prompt: "Names",
    temperature: 0.2,
    include: ["logprobs"],
    stream: true,
  };
  const made = await provider.generate(
    call(
      "transcription",
      { ...input, format: "json", chunking_strategy: { type: "server_vad" } },
      { uploads: recording(content) },
    ),
  );
  const [request] = mock.requests;
  expect(request).toMatchObject({ method: "POST", path: "/v1/audio/transcriptions" });
  const text = (name: string, value: string) => ({ name, bytes: Buffer.from(value) });
  expect(request?.form).toEqual([
    { name: "file", filename: "file-0.wav", type: "audio/wav", bytes: content },
    text("language", "en"),
    text("prompt", "Names"),
    text("temperature", "0.2"),
    text("include[]", "logprobs"),
    text("chunking_strategy[type]", "server_vad"),
    text("response_format", "json"),
    text("model", "provider-model"),
  ]);
  expect(made).toEqual({
    output: { text: mockTranscript, usage: { type: "duration", seconds: mockRecordingSeconds } },
    usage: { minute: 0.15 },
  });
  expect(stored).toEqual([]);
});

test.each([
  ["audio/mpeg", "mp3"],
  ["audio/x-m4a", "m4a"],
  ["audio/mp4", "m4a"],
  ["audio/ogg; codecs=opus", "ogg"],
  ["audio/flac", "flac"],
  ["audio/x-wav", "wav"],
  ["video/webm", "webm"],
  ["video/mp4", "mp4"],
])("the file name has the format's extension: %s is .%s", async (mime, ending) => {
  const { mock, provider, call } = await startMedia();
  await provider.generate(call("transcription", { file: "upl_1" }, { uploads: recording(undefined, mime) }));
  expect(mock.requests[0]?.form?.[0]).toMatchObject({ filename: `file-0.${ending}`, type: mime.split(";")[0] });
});

test("segments, words and the language are returned", async () => {
  const { provider, call } = await startMedia();
  const input = { file: "upl_1", response_format: "verbose_json" };
  const { output } = await provider.generate(call("transcription", input, { uploads: recording() }));
  expect(output).toMatchObject({ text: mockTranscript, language: "english", duration: 8.5, segments: [{ id: 0 }] });
});

test.each(["text", "srt", "vtt"])("an answer as %s is the text", async (format) => {
  const { provider, call } = await startMedia();
  const input = { file: "upl_1", format };
  const made = await provider.generate(call("transcription", input, { uploads: recording() }));
  expect(made).toEqual({ output: { text: `${mockTranscript}\n` }, usage: { minute: 0.025 } });
});

test.each([
  ["as the provider billed it", { usage: { type: "duration", seconds: 7 }, duration: 6.4 }, 0.116667],
  ["as the provider measured it", { usage: { type: "tokens", total_tokens: 5 }, duration: 6.5 }, 0.108333],
  ["as another provider billed it", { usage: { prompt_audio_seconds: 3, prompt_tokens: 4 } }, 0.05],
  ["as the provider measured it, in a text", { duration: "90.0" }, 1.5],
  ["as it is measured here, where the provider tells none", { usage: { type: "tokens" } }, 0.025],
  [
    "as it is measured here, where the provider tells nonsense",
    { duration: -3, usage: { type: "duration", seconds: 0 } },
    0.025,
  ],
])("the length is %s", async (_, reported, minute) => {
  const { mock, provider, call } = await startMedia();
  mock.respond({ body: { text: "", ...reported } });
  const { usage } = await provider.generate(call("transcription", { file: "upl_1" }, { uploads: recording() }));
  expect(usage).toEqual({ minute });
});

test("a recording of unknown length is refused", async () => {
  const { mock, provider, call } = await startMedia();
  mock.respond({ body: { text: "Hm." } });
  const uploads = recording(Buffer.from("noise"));
  expect(await errorOf(provider.generate(call("transcription", { file: "upl_1" }, { uploads })))).toMatchObject({
    kind: "refused",
    param: "input.file",
  });
});

test("over 25 MB, or without a recording: nothing is sent", async () => {
  const { mock, provider, call } = await startMedia();
  const uploads = recording(25 * 1024 * 1024 + 1);
  for (const asked of [call("transcription", { file: "upl_1" }, { uploads }), call("transcription", { file: "a.mp3" })])
    expect(await errorOf(provider.generate(asked))).toMatchObject({ param: "input.file" });
  expect(mock.requests).toEqual([]);
});

test.each([
  ["no text", { body: { usage: { type: "duration", seconds: 1 } } }, "unavailable"],
  ["no JSON", { body: "Hello", headers: { "content-type": "text/plain" } }, "unavailable"],
  ["an error", { body: { error: { message: "oops", type: "rate_limit_error" } } }, "busy"],
])("%s is refused as an answer", async (_, answer, kind) => {
  const { mock, provider, call } = await startMedia();
  mock.respond(answer);
  const asked = call("transcription", { file: "upl_1" }, { uploads: recording() });
  expect(await errorOf(provider.generate(asked))).toMatchObject({ kind });
});

test("a caller who disconnects while a large form is sent frees the connection", async () => {
  const { mock, provider, call } = await startMedia({ concurrency: 1 });
  mock.respond({ beforeHeaders: new Promise(() => {}) });
  const uploads = recording(Buffer.alloc(20 * 1024 * 1024));
  expect(
    await leave(mock, (signal) => provider.generate(call("transcription", { file: "upl_1" }, { uploads, signal }))),
  ).toEqual(letGo);
});
