import { describe, expect, test } from "vitest";
import { secondsOf } from "../../workers/counting/recording-length.ts";
import { startGemini } from "../support/gemini-setup.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { mockPcm } from "../support/mock-gemini-content.ts";
import { errorOf } from "../support/upstreams-setup.ts";

describe("speech", () => {
  test("becomes a WAV file of its samples; each character counts", async () => {
    const { mock, provider, stored, media } = await startGemini();
    const made = await provider.generate(media("speech", { text: "Héllo 🦊", voice: "Puck", format: "wav" }));
    expect(made).toEqual({ output: {}, usage: { character: 7 } });
    const [file] = stored;
    expect(await secondsOf(file?.bytes ?? Buffer.alloc(0), "audio/wav")).toBe(0.1);
    expect(file?.bytes.subarray(44).equals(mockPcm)).toBe(true);
    expect(file?.bytes.readUInt32LE(24)).toBe(24_000);
    expect(mock.requests[0]?.body).toEqual({
      contents: [{ role: "user", parts: [{ text: "Héllo 🦊" }] }],
      generationConfig: {
        responseModalities: ["AUDIO"],
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: "Puck" } } },
      },
      store: false,
    });
  });

  test.each([
    ["audio/L16;codec=pcm;rate=16000", 16_000],
    ["audio/pcm; rate=48000", 48_000],
  ])("of %s has that rate; the voice is the provider's choice if none is named", async (mimeType, rate) => {
    const { mock, provider, stored, media } = await startGemini();
    mock.respond({ parts: [{ inlineData: { mimeType, data: mockPcm.toString("base64") } }] });
    await provider.generate(media("speech", { text: "Hello" }));
    expect(stored[0]?.bytes.readUInt32LE(24)).toBe(rate);
    expect(mock.requests[0]?.body["generationConfig"]).toEqual({ responseModalities: ["AUDIO"] });
  });

  test("that is a file already is stored unchanged", async () => {
    const { mock, provider, stored, media } = await startGemini();
    mock.respond({ parts: [{ inlineData: { mimeType: "audio/wav", data: mockPcm.toString("base64") } }] });
    await provider.generate(media("speech", { text: "Hello" }));
    expect(stored[0]?.bytes.equals(mockPcm)).toBe(true);
  });

  test.each([
    ["no rate", { parts: [{ inlineData: { mimeType: "audio/L16", data: "AAAA" } }] }, "unavailable"],
    ["another form", { parts: [{ inlineData: { mimeType: "audio/ogg;rate=24000", data: "AAAA" } }] }, "unavailable"],
    ["an image", { parts: [{ inlineData: { mimeType: "image/png", data: "AAAA" } }] }, "unavailable"],
    ["a block", { blockReason: "OTHER" }, "refused"],
  ])("with %s is none", async (_, answer, kind) => {
    const { mock, provider, stored, media } = await startGemini();
    mock.respond(answer);
    expect(await errorOf(provider.generate(media("speech", { text: "Hello" })))).toMatchObject({ kind });
    expect(stored).toEqual([]);
  });

  test.each([
    ["no text", {}, "text"],
    ["another format", { text: "Hello", format: "mp3" }, "format"],
    ["an upload", { text: "Hello", voice: "upl_1" }, "input.voice"],
  ])("%s is refused, and nothing is asked for", async (_, input, param) => {
    const { mock, provider, media } = await startGemini();
    const files = param === "input.voice" ? [{ id: "upl_1", param, mime: "audio/wav", content: 1 }] : [];
    const failure = await errorOf(provider.generate(media("speech", input, { uploads: uploadsOf(files) })));
    expect(failure).toMatchObject({ kind: "refused", param });
    expect(mock.requests).toEqual([]);
  });
});
