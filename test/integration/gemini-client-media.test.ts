import type { Part } from "@google/genai";
import { describe, expect, test } from "vitest";
import {
  chatProvider,
  geminiService,
  google,
  local,
  messagesProvider,
  newCaller,
  others,
  responsesProvider,
  type Served,
  sent,
  type Target,
  targets,
} from "../support/gemini-client-setup.ts";
import { pngOf, uploaded, wavOf } from "../support/generation-setup.ts";

const served = geminiService();
const base64 = (bytes: Buffer) => bytes.toString("base64");
const image = base64(pngOf(30, 20));
const pdf = base64(Buffer.from("%PDF-1.4 mock"));
const wav = base64(wavOf(1));
const inline = (mimeType: string, data: string): Part => ({ inlineData: { mimeType, data } });
const linked = (mimeType: string, fileUri: string): Part => ({ fileData: { mimeType, fileUri } });
const picture = "https://example.com/cat.png";
const paper = "https://example.com/paper.pdf";

const request = (model: string, ...parts: readonly Part[]) => ({
  model,
  contents: [{ role: "user", parts: [{ text: "What is this?" }, ...parts] }],
});

/** The parts of the user's message, as the target's provider got them, but for the question. */
function partsAt(there: Served, target: Target): unknown {
  const body = sent(there, target) as Record<string, { content?: unknown[]; parts?: unknown[] }[]>;
  const [message] = body["contents"] ?? body["messages"] ?? body["input"] ?? [];
  return (message?.parts ?? message?.content ?? []).slice(1);
}

/** How each provider is told of one. */
const words: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  "Google's": {
    image: inline("image/png", image),
    link: linked("image/png", picture),
    pdf: inline("application/pdf", pdf),
    paper: linked("application/pdf", paper),
  },
  chat: {
    image: { type: "image_url", image_url: { url: `data:image/png;base64,${image}` } },
    link: { type: "image_url", image_url: { url: picture } },
    pdf: { type: "file", file: { filename: "document.pdf", file_data: `data:application/pdf;base64,${pdf}` } },
  },
  responses: {
    image: { type: "input_image", image_url: `data:image/png;base64,${image}` },
    link: { type: "input_image", image_url: picture },
    pdf: { type: "input_file", filename: "document.pdf", file_data: `data:application/pdf;base64,${pdf}` },
    paper: { type: "input_file", file_url: paper },
  },
  messages: {
    image: { type: "image", source: { type: "base64", media_type: "image/png", data: image } },
    link: { type: "image", source: { type: "url", url: picture } },
    pdf: { type: "document", source: { type: "base64", media_type: "application/pdf", data: pdf } },
    paper: { type: "document", source: { type: "url", url: paper } },
  },
};

describe.each([google, ...others])("$name", (target) => {
  const heard = words[target.name] ?? {};

  test("images by their bytes and by links, documents by their bytes", async () => {
    const { client } = await newCaller(served, "100");
    const parts = [inline("image/png", image), linked("image/png", picture), inline("application/pdf", pdf)];
    await client.models.generateContent(request(target.model, ...parts));
    expect(partsAt(served, target)).toMatchObject([heard["image"], heard["link"], heard["pdf"]]);
  });

  test("uploads, in either place of a part: their bytes", async () => {
    const { client, customer } = await newCaller(served);
    const id = await uploaded(served.service, customer, pngOf(30, 20));
    for (const part of [inline("image/png", id), linked("image/png", id)]) {
      await client.models.generateContent(request(target.model, part));
      expect(partsAt(served, target)).toMatchObject([heard["image"]]);
      expect(JSON.stringify(sent(served, target))).not.toContain(id);
    }
  });
});

test.each([google, responsesProvider, messagesProvider])("$name: documents by links", async (target) => {
  const { client } = await newCaller(served, "100");
  await client.models.generateContent(request(target.model, linked("application/pdf", paper)));
  expect(partsAt(served, target)).toMatchObject([words[target.name]?.["paper"]]);
});

test("local describes images, by their bytes and as uploads, and names links", async () => {
  const { client, customer } = await newCaller(served);
  const id = await uploaded(served.service, customer, pngOf(5, 4));
  const parts = [inline("image/png", image), linked("image/png", picture), linked("image/png", id)];
  const { text } = await client.models.generateContent(request(local.model, ...parts));
  expect(text).toMatch(/PNG image of 30 x 20 pixels(.|\n)*https:\/\/example\.com\/cat\.png(.|\n)*PNG image of 5 x 4/);
});

test("Google's: sound, by its bytes, by a link, and as an upload", async () => {
  const { client, customer } = await newCaller(served);
  const id = await uploaded(served.service, customer, wavOf(1));
  const sound = inline("audio/wav", wav);
  const link = linked("audio/mp3", "https://example.com/a.mp3");
  await client.models.generateContent(request(google.model, sound, link, inline("audio/wav", id)));
  expect(partsAt(served, google)).toEqual([sound, link, sound]);
});

describe("what a model does not take is refused by the caller's name of it, and costs nothing", () => {
  const at = (field: string) => `contents[0].parts[1].${field}`;
  const rows: readonly (readonly [readonly Target[], Part, string])[] = [
    [[local, ...others], inline("audio/wav", wav), at("inlineData")],
    [[local], inline("application/pdf", pdf), at("inlineData")],
    [[local], linked("application/pdf", paper), at("fileData")],
    [
      targets,
      linked("image/png", "https://generativelanguage.googleapis.com/v1beta/files/abc"),
      at("fileData.fileUri"),
    ],
    [targets, linked("image/png", "gs://bucket/object"), at("fileData.fileUri")],
    [targets, { executableCode: { code: "1", id: "x" } } as Part, at("executableCode")],
  ];
  const cases = rows.flatMap(([refusing, part, field]) =>
    refusing.map(({ name, model }) => ({ name, model, part, field, shown: JSON.stringify(part).slice(0, 60) })),
  );

  test.each(cases)("$name: $shown", async ({ model, part, field }) => {
    const { client, customer } = await newCaller(served);
    await expect(client.models.generateContent(request(model, part))).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining(field),
    });
    await served.service.settled();
    expect(await customer.available()).toBe("10.00");
    expect([served.gemini, served.provider, served.anthropic].flatMap(({ requests }) => requests)).toEqual([]);
  });
});

describe("where storage can be reached from outside", () => {
  const open = geminiService({ S3_PUBLIC_ENDPOINT: "https://storage.acme-cloud.com" });
  const link = expect.stringMatching(/^https:\/\/storage\.acme-cloud\.com\/.*upl_.*X-Amz-Signature=/) as string;
  const expected: Readonly<Record<string, object>> = {
    "Google's": linked("image/png", link),
    chat: { type: "image_url", image_url: { url: link } },
    responses: { type: "input_image", image_url: link },
    messages: { type: "image", source: { type: "url", url: link } },
  };

  test.each([google, ...others])("$name: an upload of an image goes as a signed link", async (target) => {
    const { client, customer } = await newCaller(open);
    const id = await uploaded(open.service, customer, pngOf(30, 20));
    for (const part of [inline("image/png", id), linked("image/png", id)]) {
      await client.models.generateContent(request(target.model, part));
      expect(partsAt(open, target)).toMatchObject([expected[target.name]]);
    }
  });
});

test("a picture in a tool's result reaches a provider that takes one", async () => {
  const { client } = await newCaller(served);
  const contents = [
    { role: "user", parts: [{ text: "look" }] },
    { role: "model", parts: [{ functionCall: { id: "a", name: "look", args: {} } }] },
    {
      role: "user",
      parts: [
        { functionResponse: { id: "a", name: "look", response: { seen: 1 }, parts: [inline("image/png", image)] } },
      ],
    },
  ];
  const tools = [{ functionDeclarations: [{ name: "look" }] }];
  for (const target of [google, chatProvider, responsesProvider, messagesProvider]) {
    await client.models.generateContent({ model: target.model, contents, config: { tools } } as never);
    expect(JSON.stringify(sent(served, target))).toContain(image);
  }
});
