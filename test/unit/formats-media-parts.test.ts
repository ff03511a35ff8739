import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ServiceError } from "#errors";
import { type Codec, chatCodec, geminiCodec, messagesCodec, responsesCodec } from "#formats";
import { isBase64 } from "../../shared/formats/media-part.ts";
import { converters } from "../../workers/conversion/index.ts";
import { dataAddress, mp3, mp4, pdf, png, wav } from "../support/media-files.ts";

type Json = Readonly<Record<string, unknown>>;

const chat = (part: Json) => ({ model: "m", messages: [{ role: "user", content: [part] }] });
const responses = (part: Json) => ({ model: "m", input: [{ role: "user", content: [part] }] });
const messages = (block: Json) => ({
  model: "m",
  max_tokens: 9,
  messages: [{ role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: [block] }] }],
});
const gemini = (part: Json) => ({ contents: [{ role: "user", parts: [part] }] });
const geminiMedia = geminiCodec("gemini-2.5-pro", false, false);

const base64 = (type: string, bytes: Buffer) => ({ type: "base64", media_type: type, data: bytes.toString("base64") });
const inline = (mimeType: string, bytes: Buffer) => ({ inlineData: { mimeType, data: bytes.toString("base64") } });
const [atChat, atResponses] = ["messages[0].content[0]", "input[0].content[0]"];
const [atMessages, atGemini] = ["messages[0].content[0].content[0].source", "contents[0].parts[0]"];

const audioPart = (type: string, bytes: Buffer) => ({
  type: "input_audio",
  input_audio: { data: bytes.toString("base64"), format: type.replace("audio/", "") },
});
type Kind = "image" | "audio" | "file";

/** The format, the kind, the codec, the field with the bytes, and a request with bytes of a type. */
type InlinePart = readonly [string, Kind, Codec, string, (type: string, bytes: Buffer) => Json];
const inFormat =
  (format: string, codec: Codec, at: string, body: (part: Json) => Json) =>
  (kind: Kind, field: string, part: (type: string, bytes: Buffer) => Json): InlinePart => [
    format,
    kind,
    codec,
    `${at}.${field}`,
    (type, bytes) => body(part(type, bytes)),
  ];
const ofChat = inFormat("chat", chatCodec, atChat, chat);
const ofResponses = inFormat("responses", responsesCodec, atResponses, responses);
const ofMessages = inFormat("messages", messagesCodec, atMessages, messages);
const ofGemini = inFormat("gemini", geminiMedia, atGemini, gemini);

const inlineParts: readonly InlinePart[] = [
  ofChat("image", "image_url.url", (type, bytes) => ({
    type: "image_url",
    image_url: { url: dataAddress(type, bytes) },
  })),
  ofChat("audio", "input_audio.data", audioPart),
  ofChat("file", "file.file_data", (type, bytes) => ({ type: "file", file: { file_data: dataAddress(type, bytes) } })),
  ofResponses("image", "image_url", (type, bytes) => ({ type: "input_image", image_url: dataAddress(type, bytes) })),
  ofResponses("audio", "input_audio.data", audioPart),
  ofResponses("file", "file_data", (type, bytes) => ({ type: "input_file", file_data: dataAddress(type, bytes) })),
  ofMessages("image", "data", (type, bytes) => ({ type: "image", source: base64(type, bytes) })),
  ofMessages("file", "data", (type, bytes) => ({ type: "document", source: base64(type, bytes) })),
  ...(["image", "audio", "file"] as const).map((kind) => ofGemini(kind, "inlineData.data", inline)),
];

const words = Buffer.from("Plain words, and %PDF-1.7 among them.");
const files = {
  png: png(3, 2),
  jpeg: Buffer.from("ffd8ffe000104a464946", "hex"),
  webp: Buffer.from("RIFF....WEBPVP8 ........................", "latin1"),
  bmp: Buffer.concat([Buffer.from("BM"), Buffer.alloc(40)]),
  heic: Buffer.from("....ftypheic........", "latin1"),
  wav: wav(1),
  mp3: mp3(1),
  tagged: Buffer.from("ID3\x03........", "latin1"),
  aac: Buffer.from("fff15080", "hex"),
  ogg: Buffer.from("OggS........", "latin1"),
  flac: Buffer.from("fLaC........", "latin1"),
  m4a: Buffer.from("....ftypM4A ........", "latin1"),
  mp4: mp4(),
  pdf: pdf(["One page."]),
  latePdf: Buffer.concat([Buffer.alloc(700, 32), pdf(["One page."])]),
  zip: Buffer.from("PK\x03\x04........", "latin1"),
  words,
  utf16: Buffer.from("\ufeffwords", "utf16le"),
  svg: Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>"),
};

const refusedAt = (codec: Codec, body: Json): string | undefined => {
  try {
    codec.parse(body, JSON.stringify(body).length);
  } catch (error) {
    return error instanceof ServiceError && error.code === "invalid_value" ? error.param : String(error);
  }
  return undefined;
};

type Typed = readonly [type: string, bytes: Buffer];
const taken: Readonly<Record<Kind, readonly [Typed, ...Typed[]]>> = {
  image: [
    ["image/png", files.png],
    // Some clients declare one type for all images; providers detect the real one.
    ["image/jpeg", files.png],
    ["image/jpeg", files.jpeg],
    ["image/webp", files.webp],
    ["image/bmp", files.bmp],
    ["image/heic", files.heic],
  ],
  audio: [
    ["audio/wav", files.wav],
    ["audio/mp3", files.mp3],
    ["audio/mp3", files.tagged],
    ["audio/aac", files.aac],
    ["audio/ogg", files.ogg],
    ["audio/flac", files.flac],
    ["audio/m4a", files.m4a],
    ["audio/mp4", files.mp4],
    ["audio/pcm16", Buffer.alloc(10)],
  ],
  file: [
    ["application/pdf", files.pdf],
    ["application/pdf", files.latePdf],
    ["text/plain", files.words],
    ["text/csv", files.utf16],
    ["application/json", Buffer.from("{}")],
    ["video/mp4", files.mp4],
    ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", files.zip],
    ["application/octet-stream", files.pdf],
  ],
};

const refused: typeof taken = {
  image: [
    ["image/png", files.pdf],
    ["image/png", files.mp4],
    ["image/png", files.wav],
    ["image/png", files.words],
    ["image/svg+xml", files.svg],
    ["image/png", Buffer.alloc(0)],
  ],
  audio: [
    ["audio/wav", files.png],
    ["audio/mp3", files.pdf],
    ["audio/wav", files.words],
    ["audio/pcm", files.pdf],
  ],
  file: [
    ["application/pdf", files.png],
    ["application/pdf", files.utf16],
    ["text/plain", files.pdf],
    ["text/plain", files.mp4],
    ["application/vnd.ms-excel", files.pdf],
  ],
};

describe.each(inlineParts)("%s: %s", (_format, kind, codec, at, body) => {
  test.each(taken[kind])("accepts %s with matching bytes", (type, bytes) => {
    expect(refusedAt(codec, body(type, bytes))).toBeUndefined();
  });

  test.each(refused[kind])("refuses %s with other bytes, naming the field", (type, bytes) => {
    expect(refusedAt(codec, body(type, bytes))).toBe(at);
  });

  test("refuses invalid base64", () => {
    const [[type, bytes]] = taken[kind];
    const whole = JSON.stringify(body(type, bytes));
    const data = bytes.toString("base64");
    for (const broken of [
      `${data.slice(0, 40)}!${data.slice(41)}`,
      `${data} `,
      `${data.slice(0, 20)}=${data.slice(20)}`,
    ])
      expect(refusedAt(codec, JSON.parse(whole.replace(data, broken)) as Json)).toBe(at);
  });
});

test.each([
  ["chat", chatCodec, chat({ type: "image_url", image_url: { url: dataAddress("application/pdf", files.pdf) } })],
  ["responses", responsesCodec, responses({ type: "input_image", image_url: dataAddress("video/mp4", files.mp4) })],
  ["messages", messagesCodec, messages({ type: "image", source: base64("application/pdf", files.pdf) })],
  ["chat, without a base64 mark", chatCodec, chat({ type: "image_url", image_url: "data:image/png,AAAA" })],
  ["chat, of no type", chatCodec, chat({ type: "image_url", image_url: dataAddress("", files.mp4) })],
  [
    "responses, by two fields",
    responsesCodec,
    responses({ type: "input_file", file_data: dataAddress("text/plain", words), file_url: "https://a.example/b.pdf" }),
  ],
])("a data address of another kind is refused: %s", (_, codec, body) => {
  expect(refusedAt(codec, body)).toMatch(/(image_url(\.url)?|source\.data|file_url)$/);
});

const imageLinks = {
  chat: (url: string) => refusedAt(chatCodec, chat({ type: "image_url", image_url: { url } })),
  responses: (url: string) => refusedAt(responsesCodec, responses({ type: "input_image", image_url: url })),
  messages: (url: string) => refusedAt(messagesCodec, messages({ type: "image", source: { type: "url", url } })),
  gemini: (fileUri: string) => refusedAt(geminiMedia, gemini({ fileData: { mimeType: "image/png", fileUri } })),
};

test.each(Object.entries(imageLinks))(
  "a link to an image with the extension or host of another kind is refused: %s",
  (_, of) => {
    for (const link of [
      "https://a.example/b.png",
      "https://a.example/B.JPG?x=.pdf",
      "https://a.example/image",
      "https://a.example/image.php?id=5",
      "https://a.pdf/",
    ])
      expect(of(link)).toBeUndefined();
    for (const link of [
      "https://a.example/b.pdf",
      "https://a.example/b.PDF?x=.png",
      "https://a.example/b.mp4#t=5",
      "https://a.example/b.html",
      "https://a.example/b.txt",
      "https://www.youtube.com/watch?v=1",
      "https://youtu.be/abc",
      "https://x@m.youtube.com:443/watch?v=1.png",
    ])
      expect(of(link)).toMatch(/url$|fileUri$/);
  },
);

test("a link to an image has an image type for Gemini, or is refused", () => {
  const request = (url: string) => ({ ...chat({ type: "image_url", image_url: { url } }), max_tokens: 5 });
  const converted = (url: string) => JSON.stringify(converters.gemini.requestFromChat(request(url)).request);
  expect(converted("https://a.example/b.webp")).toContain('"mimeType":"image/webp"');
  expect(converted("https://a.example/b.php")).toContain('"mimeType":"image/jpeg"');
  for (const link of ["https://a.example/b.pdf", "https://a.example/b.mp4", "https://a.example/b.csv"])
    expect(() => converted(link)).toThrow("messages[0].content[0].image_url.url");
});

test("base64 with one invalid character is refused", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1 }),
      fc.nat(100),
      fc.constantFrom("!", " ", "\n", "é"),
      (given, at, sign) => {
        const data = Buffer.from(given).toString("base64");
        const bare = data.replace(/=+$/, "");
        for (const whole of [data, bare, Buffer.from(given).toString("base64url")]) expect(isBase64(whole)).toBe(true);
        expect(isBase64(data.replace(bare[at % bare.length] ?? "", sign))).toBe(false);
      },
    ),
  );
});

const text = { type: "text", text: "x" };
const anthropic = ["5m", "1h"] as const;
const openai = ["30m", "12h"] as const;
const breakpoints: readonly (readonly [string, Codec, readonly [string, string], (mark: Json) => Json])[] = [
  [`${atChat}.cache_control`, chatCodec, anthropic, (mark) => chat({ ...text, cache_control: mark })],
  [`${atChat}.prompt_cache_breakpoint`, chatCodec, openai, (mark) => chat({ ...text, prompt_cache_breakpoint: mark })],
  [
    "messages[0].cache_control",
    chatCodec,
    anthropic,
    (mark) => ({ model: "m", messages: [{ role: "user", content: "x", cache_control: mark }] }),
  ],
  [
    "tools[0].cache_control",
    chatCodec,
    anthropic,
    (mark) => ({ ...chat(text), tools: [{ type: "function", function: { name: "f" }, cache_control: mark }] }),
  ],
  ["prompt_cache_options", chatCodec, openai, (mark) => ({ ...chat(text), prompt_cache_options: mark })],
  [
    "messages[0].content[0].content[0].cache_control",
    messagesCodec,
    anthropic,
    (mark) => messages({ ...text, cache_control: mark }),
  ],
  [
    "system[0].cache_control",
    messagesCodec,
    anthropic,
    (mark) => ({ ...messages(text), system: [{ ...text, cache_control: mark }] }),
  ],
  [
    "tools[0].cache_control",
    messagesCodec,
    anthropic,
    (mark) => ({ ...messages(text), tools: [{ name: "f", input_schema: {}, cache_control: mark }] }),
  ],
  ["cache_control", messagesCodec, anthropic, (mark) => ({ ...messages(text), cache_control: mark })],
  [
    `${atResponses}.prompt_cache_breakpoint`,
    responsesCodec,
    openai,
    (mark) => responses({ type: "input_text", text: "x", prompt_cache_breakpoint: mark }),
  ],
  [
    "prompt_cache_options",
    responsesCodec,
    openai,
    (mark) => ({ ...responses({ type: "input_text", text: "x" }), prompt_cache_options: mark }),
  ],
];

test.each(breakpoints)("cache writes are noted with their lifetime: %s", (at, codec, [short, long], body) => {
  const noted = (ttl: unknown) => {
    const { size, features } = codec.parse(body({ type: "ephemeral", ttl }), 100);
    return [size.cacheWrites, features.get("cache_retention")];
  };
  for (const ttl of [undefined, null, short]) expect(noted(ttl)).toEqual(["short", undefined]);
  // An hour is a hint; half a day needs a price.
  expect(noted(long)).toEqual(["long", long === "1h" ? undefined : `${at}.ttl`]);
  for (const ttl of ["2h", "24h", 3600, { h: 1 }, "1H"])
    expect(refusedAt(codec, body({ type: "ephemeral", ttl }))).toBe(`${at}.ttl`);
});

test("a request without cache writes is not sized for them", () => {
  expect(chatCodec.parse(chat({ type: "text", text: "x", cache_control: null }), 9).size.cacheWrites).toBeUndefined();
  expect(messagesCodec.parse(messages({ type: "text", text: "x" }), 9).size.cacheWrites).toBeUndefined();
});
