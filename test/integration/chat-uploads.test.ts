import { afterAll, describe, expect, test } from "vitest";
import { charges, pngOf, uploaded, wavOf } from "../support/generation-setup.ts";
import { startMockGemini } from "../support/mock-gemini.ts";
import { mockError } from "../support/mock-openai.ts";
import { type Customer, eventually } from "../support/service.ts";
import {
  expectUntouched,
  invalidValue,
  localModel,
  noCapacity,
  providerModel,
  type Refusal,
  refusal,
  refusalOf,
  serviceOfFile,
} from "../support/service-setup.ts";

const chat = "/v1/chat/completions";
/** A model of another provider that accepts audio. */
const hearingModel = "google/gemini-3.8-flash";
const gemini = await startMockGemini();
afterAll(() => gemini.close());
const env = { GEMINI_API_KEY: "operator", GEMINI_BASE_URL: gemini.url };
const running = serviceOfFile(env);
const mebi = 1024 * 1024;

type Part = Readonly<Record<string, unknown>>;
const saying = (model: string, ...content: readonly Part[]) => ({
  model,
  messages: [{ role: "user" as const, content }],
  max_tokens: 50,
});
const image = (url: string, more: object = {}): Part => ({ type: "image_url", image_url: { url, ...more } });
const text = (said: string): Part => ({ type: "text", text: said });
const base64 = (bytes: Buffer) => bytes.toString("base64");
const dataOf = (mime: string, bytes: Buffer) => `data:${mime};base64,${base64(bytes)}`;

/** A PNG of any size, valid only in its header. */
function largePng(bytes: number): Buffer<ArrayBuffer> {
  const file = Buffer.alloc(bytes);
  pngOf(30, 20).copy(file, 0, 0, 50);
  return file;
}

/** The content that the provider received. */
async function sent(there: typeof running, customer: Customer, body: object): Promise<readonly Part[]> {
  const response = await customer.post(chat, body);
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("Hello")]);
  const [message] = (there.provider.requests.at(-1)?.body["messages"] ?? []) as { content: Part[] }[];
  return message?.content ?? [];
}

/** The content that the audio model received. */
const heard = () => ((gemini.requests.at(-1)?.body["contents"] ?? []) as { parts: unknown[] }[])[0]?.parts;

describe("as bytes, where storage cannot be reached from outside", () => {
  test.each([false, true])("an image, stream: %s", async (stream) => {
    const customer = await running.service.account("1");
    const file = pngOf(30, 20);
    const id = await uploaded(running.service, customer, file);
    const body = { ...saying(providerModel, text(`What is ${id}?`), image(id, { detail: "low" })), stream };
    expect(await sent(running, customer, body)).toEqual([
      text(`What is ${id}?`),
      image(dataOf("image/png", file), { detail: "low" }),
    ]);
    await running.service.settled();
    expect(await charges(customer)).toHaveLength(1);
  });

  test("an image, the cap and the hints reach a fallback model of another format in its own way", async () => {
    const customer = await running.service.account("10");
    const file = pngOf(30, 20);
    const id = await uploaded(running.service, customer, file);
    running.provider.respond(mockError(400, "not this", { code: "invalid_prompt" }));
    const models = { models: [hearingModel], provider: { allow_fallbacks: false } };
    const answer = await customer.post(chat, { ...saying(providerModel, image(id)), ...models, user: "me" });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-xm-model")).toBe(hearingModel);
    expect(answer.headers.get("x-ignored-params")).toBe("user");
    const [asked] = running.provider.requests;
    expect(asked?.body["messages"]).toEqual([{ role: "user", content: [image(dataOf("image/png", file))] }]);
    expect(asked?.body["user"]).toMatch(/^[\w-]{43}$/);
    expect(heard()).toEqual([{ inlineData: { mimeType: "image/png", data: base64(file) } }]);
    expect(gemini.requests.at(-1)?.body["generationConfig"]).toMatchObject({ maxOutputTokens: 50 });
  });

  test("an image in the short form of some clients, without an object", async () => {
    const customer = await running.service.account("1");
    const id = await uploaded(running.service, customer, pngOf(3, 2));
    const body = saying(providerModel, { type: "image_url", image_url: id });
    expect(await sent(running, customer, body)).toEqual([image(dataOf("image/png", pngOf(3, 2)))]);
  });

  test.each([false, true])("audio, in its own format, stream: %s", async (stream) => {
    const customer = await running.service.account("10");
    const id = await uploaded(running.service, customer, wavOf(1));
    const part = { type: "input_audio", input_audio: { data: id, format: "mp3" } };
    expect((await customer.post(chat, { ...saying(hearingModel, part), stream })).status).toBe(200);
    expect(heard()).toEqual([{ inlineData: { mimeType: "audio/wav", data: base64(wavOf(1)) } }]);
  });

  test("audio is held by the bytes of its upload, in each place", async () => {
    const customer = await running.service.account("0.05");
    const id = await uploaded(running.service, customer, wavOf(1));
    const part = { type: "input_audio", input_audio: { data: id, format: "wav" } };
    const seconds = Math.ceil(wavOf(1).length / 500);
    const needed = (parts: number) => (parts * seconds * 32 * 1.5) / 1e6;
    expect((await customer.post(chat, saying(hearingModel, part))).status).toBe(200);
    const dear = await customer.post(chat, saying(hearingModel, ...Array.from({ length: 40 }, () => part)));
    const { message } = ((await dear.json()) as { error: { message: string } }).error;
    const said = Number(/input alone can cost ([\d.]+) USD/.exec(message)?.[1]);
    expect(dear.status).toBe(402);
    expect(said).toBeGreaterThanOrEqual(needed(40));
    expect(said).toBeLessThan(needed(40) + 0.02);
  });

  test("a file, by its id or in place of its bytes", async () => {
    const customer = await running.service.account("10");
    const file = pngOf(3, 2);
    const id = await uploaded(running.service, customer, file);
    const body = saying(
      providerModel,
      { type: "file", file: { file_id: id } },
      { type: "file", file: { file_data: id, filename: "image.png" } },
    );
    expect(await sent(running, customer, body)).toEqual([
      { type: "file", file: { filename: id, file_data: dataOf("image/png", file) } },
      { type: "file", file: { filename: "image.png", file_data: dataOf("image/png", file) } },
    ]);
  });

  test("several, in several messages, one of them twice; other content is unchanged", async () => {
    const customer = await running.service.account("1");
    const [one, other] = [
      await uploaded(running.service, customer, pngOf(3, 2)),
      await uploaded(running.service, customer, pngOf(5, 4)),
    ];
    const plain = [text("and"), image("https://example.com/a.png"), image("data:image/png;base64,iVBORw0KGgo=")];
    const messages = [
      { role: "system", content: `Never say ${one}.` },
      { role: "user", content: [image(one), ...plain, image(other)] },
      { role: "assistant", content: "Yes?" },
      { role: "user", content: [image(one)] },
    ];
    expect((await customer.post(chat, { model: providerModel, messages, max_tokens: 50 })).status).toBe(200);
    const [first, second] = [image(dataOf("image/png", pngOf(3, 2))), image(dataOf("image/png", pngOf(5, 4)))];
    expect(running.provider.requests[0]?.body["messages"]).toEqual([
      messages[0],
      { role: "user", content: [first, ...plain, second] },
      messages[2],
      { role: "user", content: [first] },
    ]);
  });

  test("the hold depends on the catalog, not on the bytes of the upload", async () => {
    const customer = await running.service.account("0.02");
    const id = await uploaded(running.service, customer, largePng(2 * mebi));
    expect(await sent(running, customer, saying(providerModel, image(id)))).toHaveLength(1);
  });

  test.each([false, true])("the local model reads it, stream: %s", async (stream) => {
    const customer = await running.service.account("1");
    const id = await uploaded(running.service, customer, pngOf(30, 20));
    const response = await customer.post(chat, { ...saying(localModel, text("What is it?"), image(id)), stream });
    expect(response.status).toBe(200);
    const said = (await response.text()).replaceAll(/"\}.*\n\ndata: .*?"content":"/g, "");
    expect(said).toContain("PNG image of 30 x 20 pixels");
    expect(said).not.toContain(id);
  });
});

const tooLarge = invalidValue("messages[0].content[2].image_url.url", /bytes/);

describe("over the limits of providers", () => {
  test.each([false, true])("one upload: refused by name, no charge, stream: %s", async (stream) => {
    const customer = await running.service.account("1");
    const [small, large] = [
      await uploaded(running.service, customer, pngOf(3, 2)),
      await uploaded(running.service, customer, largePng(20 * mebi + 1)),
    ];
    const before = await customer.available();
    const body = { ...saying(providerModel, text("x"), image(small), image(large)), stream };
    expect(await refusalOf(await customer.post(chat, body))).toEqual(refusal(tooLarge));
    await expectUntouched(running.service, customer, before);
    expect(running.provider.requests).toEqual([]);
  });

  test("the sum: refused by name, no charge, also where one upload is repeated", async () => {
    const customer = await running.service.account("1");
    const id = await uploaded(running.service, customer, largePng(18 * mebi));
    const before = await customer.available();
    const body = saying(providerModel, image(id), image(id), image(id), image(id));
    expect(await refusalOf(await customer.post(chat, body))).toEqual(refusal(tooLarge));
    await expectUntouched(running.service, customer, before);
  });
});

describe("within the memory that a worker has for uploads in requests", () => {
  // An account may use half of it: two of these do not fit, each with the request, its body and the upstream's request.
  const small = serviceOfFile({ ...env, WORKER_PAYLOAD_BUDGET_BYTES: String(30 * mebi) });
  const full: Refusal = { ...noCapacity, message: /memory/ };

  test.each<[end: string, answer: object, leaves: boolean]>([
    ["is answered", {}, false],
    ["fails", { status: 500, body: {} }, false],
    ["is aborted by its caller", {}, true],
  ])("an upload that does not fit is 503 and costs nothing, until the call before it %s", async (_, answer, leaves) => {
    const { service, provider } = small;
    const customer = await service.account("10");
    const id = await uploaded(service, customer, largePng(2 * mebi));
    const body = { ...saying(providerModel, image(id)), stream: true };
    const gate = Promise.withResolvers<void>();
    provider.respond({ ...answer, beforeHeaders: gate.promise });
    const caller = new AbortController();
    const first = customer.post(chat, body, { signal: caller.signal }).then(
      (response) => response.text(),
      () => "disconnected",
    );
    await provider.request(0);
    const before = await customer.available();
    const refused = await customer.post(chat, body);
    expect(await refusalOf(refused.clone())).toEqual(refusal(full));
    expect(refused.headers.get("retry-after")).toBe("2");
    // The response is sent before the hold is released, and its lease keeps it for two seconds.
    await eventually(async () => {
      small.advance(500);
      return (await customer.available()) === before;
    });
    expect(provider.requests).toHaveLength(1);
    expect((await customer.post(chat, saying(providerModel, text("no uploads")))).status).toBe(200);

    if (leaves) caller.abort();
    else gate.resolve();
    await first;
    await service.settled();
    expect((await customer.post(chat, body)).status).toBe(200);
    const twice = await customer.post(chat, saying(providerModel, image(id), image(id)));
    expect(await refusalOf(twice)).toEqual(refusal(full));
    const long = await customer.post(chat, saying(providerModel, text("x".repeat(5 * mebi))));
    expect(await refusalOf(long)).toEqual(refusal(full));
    gate.resolve();
  });
});

describe("by a signed link, where storage can be reached from outside", () => {
  const open = serviceOfFile({ ...env, S3_PUBLIC_ENDPOINT: "https://storage.acme-cloud.com" });
  const link = expect.stringMatching(
    /^https:\/\/storage\.acme-cloud\.com\/inference\/uploads\/upl_[0-9A-Za-z]{24}\?.*X-Amz-Signature=[0-9a-f]{64}/,
  ) as string;

  test.each([false, true])("an image, stream: %s", async (stream) => {
    const customer = await open.service.account("1");
    const id = await uploaded(open.service, customer, pngOf(30, 20));
    const body = { ...saying(providerModel, image(id, { detail: "high" })), stream };
    expect(await sent(open, customer, body)).toEqual([image(link, { detail: "high" })]);
  });

  test("of any size: the provider fetches it", async () => {
    const customer = await open.service.account("1");
    const id = await uploaded(open.service, customer, largePng(20 * mebi + 1));
    expect(await sent(open, customer, saying(providerModel, image(id)))).toEqual([image(link)]);
  });

  test("audio and files are sent as bytes, because providers do not support links to them everywhere", async () => {
    const customer = await open.service.account("10");
    const sound = await uploaded(open.service, customer, wavOf(1));
    const part = { type: "input_audio", input_audio: { data: sound } };
    expect((await customer.post(chat, saying(hearingModel, part))).status).toBe(200);
    expect(heard()).toEqual([{ inlineData: { mimeType: "audio/wav", data: base64(wavOf(1)) } }]);
  });

  test("the same upload as an image and as a file, in any order", async () => {
    const customer = await open.service.account("10");
    const id = await uploaded(open.service, customer, pngOf(3, 2));
    const file: Part = { type: "file", file: { file_id: id } };
    const asBytes = { type: "file", file: { filename: id, file_data: dataOf("image/png", pngOf(3, 2)) } };
    expect(await sent(open, customer, saying(providerModel, image(id), file))).toEqual([image(link), asBytes]);
    expect(await sent(open, customer, saying(providerModel, file, image(id)))).toEqual([asBytes, image(link)]);
  });

  test("the local model has no network: it gets the bytes", async () => {
    const customer = await open.service.account("1");
    const id = await uploaded(open.service, customer, pngOf(30, 20));
    const response = await customer.post(chat, saying(localModel, text("What is it?"), image(id)));
    expect(await response.text()).toContain("PNG image of 30 x 20 pixels");
  });
});
