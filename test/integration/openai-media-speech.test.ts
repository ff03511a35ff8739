import { expect, test } from "vitest";
import { noCapacity } from "../../shared/errors.ts";
import { leave, letGo } from "../support/disconnecting.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { mockError } from "../support/mock-openai.ts";
import { mockMp3 } from "../support/mock-openai-media.ts";
import { startMedia } from "../support/openai-media-setup.ts";
import { errorOf, gate } from "../support/upstreams-setup.ts";

const hello = { text: "Hello", voice: "alloy" };
const mp3 = { headers: { "content-type": "audio/mpeg" }, done: false as const };

test("text and format go under the provider's names, other fields unchanged; the audio is stored unchanged", async () => {
  const { mock, provider, stored, call } = await startMedia();
  const input = { voice: "coral", speed: 1.5, instructions: "Whisper.", x: { y: 1 } };
  const made = await provider.generate(
    call("speech", { ...input, text: "Hi 👩‍👧 ü", format: "opus", stream_format: "sse" }),
  );
  const [request] = mock.requests;
  expect(request).toMatchObject({ method: "POST", path: "/v1/audio/speech" });
  expect(request?.body).toEqual({ ...input, input: "Hi 👩‍👧 ü", response_format: "opus", model: "provider-model" });
  expect(stored).toEqual([{ bytes: mockMp3, about: undefined }]);
  expect(made).toEqual({ output: {}, usage: { character: 8 } });
});

test("the provider's own names are accepted", async () => {
  const { mock, provider, call } = await startMedia();
  await provider.generate(call("speech", { input: "Hello", voice: "alloy", response_format: "wav" }));
  expect(mock.requests[0]?.body).toEqual({
    input: "Hello",
    voice: "alloy",
    response_format: "wav",
    model: "provider-model",
  });
});

test("the audio is streamed, not collected", async () => {
  const { mock, provider, call } = await startMedia();
  const rest = gate();
  mock.respond({ ...mp3, events: ["", "first", "second"], beforeEvent: { 2: rest.promise } });
  const pieces: string[] = [];
  const store = async (body: Buffer | AsyncIterable<Buffer>) => {
    for await (const piece of body as AsyncIterable<Buffer>) {
      pieces.push(piece.toString());
      rest.resolve();
    }
  };
  await provider.generate(call("speech", hello, { store }));
  expect(pieces).toEqual(["first", "second"]);
});

test.each([
  ["nothing at all", { body: "", headers: { "content-type": "audio/mpeg" } }, "unavailable"],
  ["JSON", { body: { audio: "AAAA" } }, "unavailable"],
  ["an error with status 200", { body: { error: { message: "no", type: "invalid_request_error" } } }, "refused"],
  ["a problem with status 200", { body: "{}", headers: { "content-type": "application/problem+json" } }, "unavailable"],
  ["a page", { body: "<html>", headers: { "content-type": "text/html" } }, "unavailable"],
  ["half of the sound", { ...mp3, events: ["one", "two"], cutAfter: 1 }, "unavailable"],
  [
    "an unknown compression",
    { body: "AAAA", headers: { "content-type": "audio/mpeg", "content-encoding": "zip" } },
    "unavailable",
  ],
  ["a full provider", mockError(429, "Slow down", { headers: { "retry-after": "2" } }), "busy"],
])("%s is refused as audio", async (_, answer, kind) => {
  const { mock, provider, stored, call } = await startMedia();
  mock.respond(answer);
  expect(await errorOf(provider.generate(call("speech", hello)))).toMatchObject({ name: "UpstreamFailure", kind });
  expect(stored).toEqual([]);
});

test("audio that breaks off is the provider's failure, whatever error storage throws", async () => {
  const { mock, provider, call } = await startMedia();
  mock.respond({ ...mp3, events: ["one", "two"], cutAfter: 1 });
  const store = async (body: Buffer | AsyncIterable<Buffer>) => {
    await Array.fromAsync(body as AsyncIterable<Buffer>).catch(() => {
      throw noCapacity("Storage is unavailable.");
    });
  };
  expect(await errorOf(provider.generate(call("speech", hello, { store })))).toMatchObject({ kind: "unavailable" });
});

test("a refusal names the caller's own field", async () => {
  const { mock, provider, call } = await startMedia();
  for (const param of ["input", "voice", "speed"]) mock.respond(mockError(400, "no", { param }));
  const params: unknown[] = [];
  for (let i = 0; i < 3; i++) params.push(await errorOf(provider.generate(call("speech", hello))));
  expect(params).toMatchObject([{ param: "input.text" }, { param: "input.voice" }, { param: "input.speed" }]);
});

test("an upload is refused", async () => {
  const { mock, provider, call } = await startMedia();
  const uploads = uploadsOf([{ id: "upl_1", param: "input.voice", mime: "audio/mpeg", content: mockMp3 }]);
  const input = { ...hello, voice: "upl_1" };
  expect(await errorOf(provider.generate(call("speech", input, { uploads })))).toMatchObject({
    kind: "refused",
    param: "input.voice",
  });
  expect(mock.requests).toEqual([]);
});

test.each(["before it reads", "in the middle"])(
  "storage that fails %s is no failure of the provider, and lets go of it",
  async (when) => {
    const { mock, provider, call } = await startMedia({ concurrency: 1 });
    const piece = Buffer.alloc(256 * 1024);
    mock.respond({ ...mp3, events: [piece, piece], beforeEvent: { 1: new Promise(() => {}) } });
    const error = noCapacity("Storage is unavailable.");
    const store = async (body: Buffer | AsyncIterable<Buffer>) => {
      if (when === "in the middle") for await (const _ of body as AsyncIterable<Buffer>) throw error;
      throw error;
    };
    expect(await errorOf(provider.generate(call("speech", hello, { store })))).toBe(error);
    const request = await mock.request(0);
    await request.closed;
    expect(request.aborted).toBe(true);
  },
);

test("a caller who disconnects in the middle is released at once, and so is the provider", async () => {
  const { mock, provider, call } = await startMedia({ concurrency: 1 });
  mock.respond({ ...mp3, events: ["one", "two"], beforeEvent: { 1: new Promise(() => {}) } });
  expect(await leave(mock, (signal) => provider.generate(call("speech", hello, { signal })))).toEqual(letGo);
  await provider.generate(call("speech", hello));
});

test("music is not supported", async () => {
  const { mock, provider, call } = await startMedia();
  expect(await errorOf(provider.generate(call("music", { prompt: "a waltz" })))).toMatchObject({
    kind: "misconfigured",
  });
  expect(mock.requests).toEqual([]);
});
