import { describe, expect, test } from "vitest";
import { uploaded } from "../support/generation-setup.ts";
import { mp3, pdf, wav } from "../support/media-files.ts";
import {
  chatFace,
  type Face,
  faces,
  geminiFace,
  messagesFace,
  refusalIn,
  refusalOf,
  responsesFace,
  send,
  usageOf,
} from "../support/native-formats.ts";
import { costBy, expectUntouched, localModel, nanoUsd, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();
/** In nano-USD per token. */
const costOf = costBy({ [localModel]: { input: 100n, audio_input: 300n, output: 400n } });

const question = "What is it?";
const fromUser = (text: object, part: object) => [{ role: "user", content: [text, part] }];
const text = { type: "text", text: question };
const fields: Readonly<Record<string, (part: object) => object>> = {
  chat: (part) => ({ messages: fromUser(text, part) }),
  messages: (part) => ({ messages: fromUser(text, part) }),
  responses: (part) => ({ input: fromUser({ type: "input_text", text: question }, part) }),
  gemini: (part) => ({ contents: [{ role: "user", parts: [{ text: question }, part] }] }),
};
const asking = (face: Face, part: object) => face.ask(localModel, question, fields[face.name]?.(part));

const base64 = (bytes: Buffer) => bytes.toString("base64");
const document = base64(pdf(["First", "Second"]));
const pdfType = "application/pdf";
const documentAddress = `data:${pdfType};base64,${document}`;
const audio = (data: string, format: string) => ({ type: "input_audio", input_audio: { data, format } });
const inline = (mimeType: string, data: string) => ({ inlineData: { mimeType, data } });

const wavSaid = "I hear a recording (wav) of 2.5 seconds, 80044 bytes.";
const mp3Said = /I hear a recording \(mp3\) of 3\.\d+ seconds, 47955 bytes\./;
const pdfSaid = `I read a PDF file of 2 pages, ${Buffer.byteLength(document, "base64")} bytes.`;
const [recording, music] = [base64(wav(2.5)), base64(mp3(3))];

describe("media", () => {
  test.each([
    [chatFace, "WAV", audio(recording, "wav"), wavSaid, { audio_input: 25 }],
    [chatFace, "MP3", audio(music, "mp3"), mp3Said, { audio_input: 31 }],
    [chatFace, "PDF", { type: "file", file: { filename: "a", file_data: documentAddress } }, pdfSaid, {}],
    [responsesFace, "WAV", audio(recording, "wav"), wavSaid, { audio_input: 25 }],
    [responsesFace, "PDF", { type: "input_file", filename: "a", file_data: documentAddress }, pdfSaid, {}],
    [
      messagesFace,
      "PDF",
      { type: "document", source: { type: "base64", media_type: pdfType, data: document } },
      pdfSaid,
      {},
    ],
    [geminiFace, "WAV", inline("audio/wav", recording), wavSaid, { audio_input: 25 }],
    [geminiFace, "MP3", inline("audio/mpeg", music), mp3Said, { audio_input: 31 }],
    [geminiFace, "PDF", inline(pdfType, document), pdfSaid, {}],
  ])("$name reads a %s, and is charged for it to the nano-dollar", async (face, kind, part, said, counted) => {
    const customer = await running.service.account("1");
    const response = await send(customer, asking(face, part));
    expect(response.status).toBe(200);
    const answer = face.said(await response.json());
    expect(answer).toMatch(said);
    expect(answer).toContain(question);
    const entry = await usageOf(running.service, customer);
    const usage = Object.fromEntries(Object.entries(entry?.request.usage ?? {}).filter(([, count]) => count > 0));
    // Three tokens of the message and three of the question.
    expect(usage).toEqual({ input: 3 + 3 + (kind === "PDF" ? 512 : 0), ...counted, output: usage["output"] });
    const cost = costOf(localModel, usage);
    expect(-nanoUsd(entry?.amount_usd ?? "")).toBe(cost);
    expect(nanoUsd("1.00") - nanoUsd(await customer.available())).toBe(cost);
    expect(entry?.request).toMatchObject({ estimated: false, shortfall_usd: "0.00" });
  });

  test.each([
    [chatFace, (id: string) => audio(id, "wav")],
    [responsesFace, (id: string) => audio(id, "wav")],
    [geminiFace, (id: string) => inline("audio/wav", id)],
  ])("$name hears a recording that was uploaded", async (face, partOf) => {
    const customer = await running.service.account("1");
    const id = await uploaded(running.service, customer, wav(2.5));
    const response = await send(customer, asking(face, partOf(id)));
    expect(face.said(await response.json())).toContain(wavSaid);
  });

  test("a small document of thousands of pages is refused before it is read", async () => {
    const customer = await running.service.account("1");
    const dense = Buffer.from("%PDF-1.4 <</Type/Pages/Count 9000>>");
    const part = inline(pdfType, base64(dense));
    const refused = await refusalIn(geminiFace, await send(customer, asking(geminiFace, part)));
    expect(refused).toMatchObject({ status: 400, body: { error: { message: expect.stringMatching(/fewer pages/) } } });
    await expectUntouched(running.service, customer, "1.00");
  });
});

describe("a prompt longer than the context", () => {
  const words = "word ".repeat(131_072).trimEnd();
  const refusal = {
    status: 400,
    type: "invalid_request_error",
    code: "context_length_exceeded",
    param: "messages",
    message: /^The prompt is too long: .* maximum context length is 131072 tokens, and the prompt has 131075\.$/,
  };

  test.each(faces.map((face) => [face.name, face] as const))(
    "%s: 400 in its own shape, and no charge",
    async (_, face) => {
      const customer = await running.service.account("1");
      const expected = refusalOf(face, refusal);
      expect(await refusalIn(face, await send(customer, face.ask(localModel, words)))).toEqual(expected);
      expect(await refusalIn(face, await send(customer, face.stream(localModel, words)))).toEqual(expected);
      await expectUntouched(running.service, customer, "1.00");
    },
  );
});

describe("JSON mode", () => {
  const prompt = "Tell a joke. Answer in JSON with the keys 'setup' and 'punchline'.";
  const modes: Readonly<Record<string, object>> = {
    chat: { response_format: { type: "json_object" } },
    responses: { text: { format: { type: "json_object" } } },
    gemini: { generationConfig: { responseMimeType: "application/json" } },
  };

  test.each([chatFace, responsesFace, geminiFace])("$name answers with an object of the quoted keys", async (face) => {
    const customer = await running.service.account("1");
    const response = await send(customer, face.ask(localModel, prompt, modes[face.name]));
    expect(Object.keys(JSON.parse(face.said(await response.json())) as object)).toEqual(["setup", "punchline"]);
  });
});
