import { describe, expect, test } from "vitest";
import type { JsonObject } from "#json";
import { Aborted } from "../../workers/running.ts";
import { startReplicate } from "../support/hosted-setup.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { mockMp3, mockMp4, mockPng } from "../support/mock-openai-media.ts";
import { type MockReplicate, mockId } from "../support/mock-replicate.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const fox = { prompt: "a fox" };
const asked = (mock: MockReplicate) => mock.requests.map(({ method, path }) => `${method} ${path.slice(3)}`);
const look = `GET /predictions/${mockId}`;

describe("a prediction that succeeds", () => {
  test("is submitted once, its id is stored, it is polled, and its files are stored unchanged", async () => {
    const { mock, clock, provider, stored, remembered, call } = await startReplicate();
    const input = { ...fox, n: 2, aspect_ratio: "1:1", nested: { list: [1, null] } };
    const made = provider.generate(call("images", { ...input, response_format: "url" }));
    await clock.pass(2_000);
    expect(await made).toEqual({ output: {}, usage: { image: 2 } });
    expect(asked(mock)).toEqual(["POST /models/acme/model/predictions", look, "GET /out/0.png", "GET /out/1.png"]);
    const { n: _, ...rest } = input;
    expect(mock.requests[0]?.body).toEqual({ input: { ...rest, num_outputs: 2 } });
    expect(mock.requests[0]?.headers).toMatchObject({
      authorization: "Bearer r8-operator",
      "content-type": "application/json",
    });
    expect(mock.requests[0]?.headers).not.toHaveProperty("prefer");
    for (const { headers } of mock.requests.slice(2)) expect(headers).not.toHaveProperty("authorization");
    expect(remembered).toEqual([mockId]);
    expect(stored).toEqual([
      { bytes: mockPng, about: {} },
      { bytes: mockPng, about: {} },
    ]);
  });

  test("of a version uses the endpoint for versions; a single image is requested without a count", async () => {
    const { mock, provider, call } = await startReplicate();
    mock.respond({ states: ["succeeded"], output: "0.png" });
    await provider.generate(call("images", { ...fox, n: 1 }, { model: "acme/model:5c7d5dc6" }));
    expect(asked(mock)[0]).toBe("POST /predictions");
    expect(mock.requests[0]?.body).toEqual({ version: "5c7d5dc6", input: fox });
  });

  test.each([
    ["with the version", (url: string) => url],
    ["without it", (url: string) => url.replace("/v1", "")],
    ["behind a proxy's path", (url: string) => `${url.replace("/v1", "")}/v1/`],
  ])("the operator's address is taken %s", async (_, baseUrl) => {
    const { mock, provider, call } = await startReplicate({ baseUrl });
    mock.respond({ states: ["succeeded"] });
    await provider.generate(call("images", fox));
    expect(asked(mock)[0]).toBe("POST /models/acme/model/predictions");
  });

  test("images beyond the requested number are not stored; fewer are charged by their number", async () => {
    const { mock, provider, stored, call } = await startReplicate();
    mock.respond({ states: ["succeeded"], output: ["0.png", "1.png", "2.png"] });
    expect((await provider.generate(call("images", { ...fox, num_outputs: 2 }))).usage).toEqual({ image: 2 });
    mock.respond({ states: ["succeeded"], output: ["0.png"] });
    expect((await provider.generate(call("images", { ...fox, n: 4 }))).usage).toEqual({ image: 1 });
    expect(stored).toHaveLength(3);
  });

  test.each<[string, unknown, JsonObject]>([
    ["an address", "0.mp4", {}],
    ["a list of one", ["0.mp4"], {}],
    ["an object", { video: "0.mp4", seed: 3 }, { seed: 3 }],
    ["an object deep inside", { result: { clip: { url: "0.mp4", width: 8 } }, seed: 3 }, { seed: 3 }],
  ])("a file is found in %s, and what is no file goes to the caller", async (_, output, rest) => {
    const { mock, provider, stored, call } = await startReplicate();
    mock.respond({ states: ["succeeded"], output });
    expect(await provider.generate(call("video", { ...fox, duration: 8 }))).toEqual({
      output: rest,
      usage: { second: 8 },
    });
    expect(stored.map(({ bytes }) => bytes.equals(mockMp4))).toEqual([true]);
  });

  test.each<[string, JsonObject, Record<string, unknown>, number]>([
    ["as the provider bills it", { duration: 8 }, { video_output_duration_seconds: 5 }, 5],
    ["never more than was asked for", { duration: "6s" }, { video_output_duration_seconds: 9.5 }, 6],
    ["as was asked for, if nobody tells", { seconds: "4" }, {}, 4],
    ["as the provider tells, if nothing was asked for", {}, { video_output_duration_seconds: 7.25 }, 7.25],
  ])("a video counts %s", async (_, input, metrics, second) => {
    const { mock, provider, call } = await startReplicate();
    mock.respond({ states: ["succeeded"], output: "0.mp4", metrics });
    expect((await provider.generate(call("video", { ...fox, ...input }))).usage).toEqual({ second });
  });

  test("speech counts the characters of its text", async () => {
    const { mock, provider, stored, call } = await startReplicate();
    mock.respond({ states: ["succeeded"], output: "0.mp3" });
    const { usage } = await provider.generate(call("speech", { text: "Grüße 🦊", voice_id: "v" }));
    expect([usage, stored[0]?.bytes.equals(mockMp3)]).toEqual([{ character: 7 }, true]);
  });

  test("a video of unreported length is measured", async () => {
    const { mock, provider, stored, call } = await startReplicate();
    const wav = silence(2.5);
    mock.respond({ states: ["succeeded"], output: "0.mp4" }, { headers: { "content-type": "audio/wav" }, body: wav });
    expect((await provider.generate(call("video", fox))).usage).toEqual({ second: 2.5 });
    expect(stored[0]?.bytes.equals(wav)).toBe(true);
  });

  test("a transcript counts the measured minutes of the recording, and makes no file", async () => {
    const { mock, provider, stored, call } = await startReplicate();
    mock.respond({ states: ["succeeded"], output: { text: "https://fox.example", segments: [{ start: 0 }] } });
    const uploads = uploadsOf([{ id: "upl_1", param: "input.audio", mime: "audio/wav", content: silence(90) }]);
    expect(await provider.generate(call("transcription", { audio: "upl_1" }, { uploads }))).toEqual({
      output: { text: "https://fox.example", segments: [{ start: 0 }] },
      usage: { minute: 1.5 },
    });
    mock.respond({ states: ["succeeded"], output: ["The ", "fox."] });
    expect((await provider.generate(call("transcription", { audio: "upl_1" }, { uploads }))).output).toEqual({
      text: "The fox.",
    });
    expect(stored).toEqual([]);
  });
});

describe("uploads in the input", () => {
  const imageUpload = (more: object = {}) => ({
    id: "upl_1",
    param: "input.image",
    mime: "image/png",
    content: mockPng,
    ...more,
  });

  test("are sent as links where the provider can fetch them, at any place", async () => {
    const { mock, provider, stored, call } = await startReplicate();
    const link = "https://storage.example/upl_1?signature=1";
    const uploads = new Map([...uploadsOf([imageUpload({ content: 9 })])].map(([id, file]) => [id, { ...file, link }]));
    mock.respond({ states: ["succeeded"], output: { video: "0.mp4", first_frame: link } });
    const input = { image: "upl_1", shots: [{ reference: "upl_1" }], duration: 4 };
    await provider.generate(call("video", input, { uploads }));
    expect(mock.requests[0]?.body).toEqual({ input: { image: link, shots: [{ reference: link }], duration: 4 } });
    expect(stored).toHaveLength(1);
  });

  test("are else sent as their bytes, within the provider's limit", async () => {
    const { mock, provider, call } = await startReplicate();
    const large = { id: "upl_2", param: "input.last", mime: "image/png", content: Buffer.alloc(4 * 1024 * 1024) };
    mock.respond({ states: ["succeeded"], output: "0.mp4" });
    await provider.generate(call("video", { image: "upl_1", duration: 4 }, { uploads: uploadsOf([imageUpload()]) }));
    expect(mock.requests[0]?.body).toMatchObject({
      input: { image: `data:image/png;base64,${mockPng.toString("base64")}` },
    });
    const input = { image: "upl_1", last: "upl_2", duration: 4 };
    const both = provider.generate(call("video", input, { uploads: uploadsOf([imageUpload(), large]) }));
    expect(await errorOf(both)).toMatchObject({ code: "invalid_value", param: "input.last" });
    expect(mock.requests).toHaveLength(2);
  });

  test.each([
    "https://api.replicate.com/v1/files/abc/download",
    " HTTPS://API.replicate.com:443/v1/files/abc",
    "https://user@api.replicate.com./v1/files/abc",
    "https://api.replicate.com/v1/predictions/abc",
  ])("%s lies under the operator's key: refused", async (address) => {
    const { mock, provider, call } = await startReplicate();
    for (const input of [{ image: address }, { shots: [{ reference: address }] }])
      expect(await errorOf(provider.generate(call("video", { ...fox, ...input })))).toMatchObject({
        kind: "refused",
        param: expect.stringMatching(/^input\.(image|shots\[0\]\.reference)$/) as unknown,
      });
    expect(mock.requests).toEqual([]);
  });

  test("a prompt may name the provider's address", async () => {
    const { mock, provider, call } = await startReplicate();
    mock.respond({ states: ["succeeded"] });
    await provider.generate(call("images", { prompt: "a poster for api.replicate.com" }));
    expect(mock.requests[0]?.body).toEqual({ input: { prompt: "a poster for api.replicate.com" } });
  });

  test("a transcription without an upload, or of no recording, is refused before it costs anything", async () => {
    const { mock, provider, call } = await startReplicate();
    const broken = uploadsOf([{ id: "upl_1", param: "input.audio", mime: "audio/wav", content: Buffer.from("no") }]);
    expect(await errorOf(provider.generate(call("transcription", { audio: "https://a.example/b.mp3" })))).toMatchObject(
      {
        kind: "refused",
        param: "input.audio",
      },
    );
    expect(
      await errorOf(provider.generate(call("transcription", { audio: "upl_1" }, { uploads: broken }))),
    ).toMatchObject({ kind: "refused", param: "input.audio" });
    expect(mock.requests).toEqual([]);
  });
});

describe("another delivery, and a caller who disconnects", () => {
  test("the next worker submits nothing and polls at once", async () => {
    const { mock, clock, provider, stored, remembered, call } = await startReplicate();
    mock.respond({ states: ["starting", "processing", "succeeded"], output: "0.mp4" });
    const first = new AbortController();
    const abandoned = errorOf(provider.generate(call("video", { ...fox, duration: 4 }, { signal: first.signal })));
    await clock.pass(2_000);
    await (await mock.request(1)).closed;
    first.abort(new Aborted("shutdown"));
    await abandoned;
    const remember = () => Promise.reject(new Error("again"));
    const { usage } = await provider.generate(call("video", { ...fox, duration: 4 }, { job: remembered[0], remember }));
    expect(asked(mock)).toEqual(["POST /models/acme/model/predictions", look, look, "GET /out/0.mp4"]);
    expect([usage, stored.length]).toEqual([{ second: 4 }, 1]);
  });

  test.each([
    ["starting", 0],
    ["processing", 1],
  ])("one who disconnects while it is %s: %d are billed, and those are delivered", async (state, billed) => {
    const { mock, clock, provider, stored, call } = await startReplicate();
    mock.respond({ states: [state, state, state, "succeeded"], output: "0.mp4" });
    const caller = new AbortController();
    const answer = provider.generate(call("video", { ...fox, duration: 4 }, { disconnected: caller.signal }));
    const ended = answer.catch((error: unknown) => error);
    await clock.pass(2_000);
    await clock.begun(3_000);
    const reason = new Aborted("disconnected");
    caller.abort(reason);
    if (billed > 0) await clock.pass(4_500);
    expect(await ended).toEqual(billed > 0 ? { output: {}, usage: { second: 4 } } : reason);
    expect([mock.billed(), stored.length]).toEqual([billed, billed]);
    expect(asked(mock).filter((each) => each.endsWith("/cancel"))).toHaveLength(1 - billed);
  });

  test("an aborted call rejects at once, and the prediction is canceled", async () => {
    const { mock, clock, provider, stored, call } = await startReplicate();
    mock.respond({ states: ["starting"] });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(call("video", fox, { signal: caller.signal })));
    await clock.pass(2_000);
    await (await mock.request(1)).closed;
    const reason = new Aborted("disconnected");
    caller.abort(reason);
    expect(await answer).toBe(reason);
    await (await mock.request(2)).closed;
    expect(asked(mock).at(-1)).toBe(`POST /predictions/${mockId}/cancel`);
    expect(stored).toEqual([]);
  });

  test("a caller who disconnects during the submission closes that connection: nothing is sent again", async () => {
    const { mock, provider, call } = await startReplicate({ concurrency: 1 });
    mock.respond({ beforeHeaders: new Promise(() => {}) });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(call("video", fox, { signal: caller.signal })));
    const submission = await mock.request(0);
    caller.abort(new Error("disconnected"));
    await answer;
    await submission.closed;
    expect([submission.aborted, mock.requests.length]).toEqual([true, 1]);
  });
});

test("text and embeddings are not supported", async () => {
  const { mock, provider, call } = await startReplicate();
  const { signal, log } = call("images", fox);
  const text = { model: "m", body: {}, signal, log, format: "chat", headers: {} } as const;
  expect(provider.speaks).toEqual(["chat"]);
  expect(await errorOf(provider.answer(text))).toMatchObject({ kind: "misconfigured" });
  expect(await errorOf(Array.fromAsync(provider.stream(text)))).toMatchObject({ kind: "misconfigured" });
  expect(await errorOf(provider.embed(text))).toMatchObject({ kind: "misconfigured" });
  expect(mock.requests).toEqual([]);
});

/** A WAV file of that many seconds, 8,000 bytes each. */
function silence(seconds: number): Buffer {
  const bytes = Math.round(seconds * 8_000);
  const head = Buffer.alloc(44);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(36 + bytes, 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(8_000, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(bytes, 40);
  return Buffer.concat([head, Buffer.alloc(bytes, 128)]);
}
