import fc from "fast-check";
import { expect, test } from "vitest";
import { loadCatalog, type Model, type PriceKey } from "#catalog";
import { type Codec, chatCodec, geminiCodec, messagesCodec, responsesCodec } from "#formats";
import { never, said, shareCounting } from "../support/counting-setup.ts";
import { dataAddress, mp3, mp4, pdf, png, wav } from "../support/media-files.ts";
import { runs } from "../support/property-runs.ts";
import { billOf, type Media } from "../support/provider-bills.ts";

const catalog = loadCatalog(undefined);
const models = catalog
  .list()
  .filter(({ maxPartTokens, ownedBy }) => ownedBy !== "local" && Object.keys(maxPartTokens).length > 0);

/** Words that compress like those of a language: to about half. */
function prose(words: number, seed: number): string {
  let state = seed + 1;
  const next = (below: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
  const letter = () => "etaoinshrdlucmfwygpbvk"[Math.min(next(22), next(22))];
  return Array.from({ length: words }, () => Array.from({ length: 2 + next(9) }, letter).join("")).join(" ");
}

interface File {
  readonly media: Media;
  readonly kind: "image" | "audio" | "file";
  readonly type: string;
  readonly bytes: Buffer;
}

const pixels = fc.integer({ min: 1, max: 9_000 });
const image = fc.record({ width: pixels, height: pixels, detail: fc.constantFrom("low", "high", "original") }).map(
  (shape): File => ({
    media: { kind: "image", ...shape },
    kind: "image",
    type: "image/png",
    bytes: png(shape.width, shape.height),
  }),
);
const document = fc
  .record({
    words: fc.array(fc.integer({ min: 220, max: 700 }), { minLength: 1, maxLength: 12 }),
    seed: fc.nat(1_000),
    shape: fc.record({ deflated: fc.boolean(), objectStreams: fc.boolean() }),
  })
  .map(({ words, seed, shape }): File => {
    const texts = words.map((count, n) => prose(count, seed + n));
    return { media: { kind: "pdf", texts }, kind: "file", type: "application/pdf", bytes: pdf(texts, shape) };
  });
const plain = fc
  .oneof(
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 400 }),
    fc.nat(300).map((words) => `a${prose(words, words)}`),
  )
  .map((text): File => ({ media: { kind: "text", text }, kind: "file", type: "text/plain", bytes: Buffer.from(text) }));
const sound = fc
  .record({
    seconds: fc.integer({ min: 1, max: 40 }),
    rate: fc.constantFrom(8_000, 16_000, 48_000),
    isWav: fc.boolean(),
  })
  .map(
    ({ seconds, rate, isWav }): File => ({
      media: { kind: "audio", seconds },
      kind: "audio",
      type: isWav ? "audio/wav" : "audio/mp3",
      bytes: isWav ? wav(seconds, rate) : mp3(seconds),
    }),
  );
const film = fc
  .nat(20_000)
  .map((seconds): File => ({ media: { kind: "film", seconds }, kind: "file", type: "video/mp4", bytes: mp4() }));
const files = {
  image: fc.array(image, { maxLength: 2 }),
  audio: fc.array(sound, { maxLength: 2 }),
  file: fc.array(fc.oneof(document, plain, film), { maxLength: 2 }),
};

type Caching = "none" | "short" | "long";
const cacheModes = fc.constantFrom<Caching>("none", "short", "long");
const lifetimes: Readonly<Record<Caching, object>> = {
  none: {},
  short: { cache_control: { type: "ephemeral" } },
  long: { cache_control: { type: "ephemeral", ttl: "1h" } },
};

/** The request in each format that has such parts. */
const formats: Readonly<
  Record<string, (given: readonly File[], caching: Caching) => readonly [Codec, object] | undefined>
> = {
  chat: (given, caching) => [
    chatCodec,
    {
      model: "m",
      ...lifetimes[caching],
      messages: [
        {
          role: "user",
          content: given.map(({ media, kind, type, bytes }) => {
            if (kind === "audio")
              return { type: "input_audio", input_audio: { data: bytes.toString("base64"), format: type.slice(6) } };
            if (kind === "file") return { type: "file", file: { file_data: dataAddress(type, bytes) } };
            return { type: "image_url", image_url: { url: dataAddress(type, bytes), ...detailOf(media) } };
          }),
        },
      ],
    },
  ],
  responses: (given, caching) => [
    responsesCodec,
    {
      model: "m",
      ...(caching === "long" && { prompt_cache_options: { ttl: "12h" } }),
      ...(caching === "short" && { prompt_cache_options: {} }),
      input: [
        {
          role: "user",
          content: given.map(({ media, kind, type, bytes }) => {
            if (kind === "audio")
              return { type: "input_audio", input_audio: { data: bytes.toString("base64"), format: type.slice(6) } };
            if (kind === "file") return { type: "input_file", file_data: dataAddress(type, bytes) };
            return { type: "input_image", image_url: dataAddress(type, bytes), ...detailOf(media) };
          }),
        },
      ],
    },
  ],
  messages: (given, caching) => {
    if (given.some(({ kind, type }) => kind === "audio" || type.startsWith("video/"))) return undefined;
    const content = given.map(({ media, kind, type, bytes }) => ({
      type: kind === "image" ? "image" : "document",
      source:
        media.kind === "text"
          ? { type: "text", media_type: type, data: media.text }
          : { type: "base64", media_type: type, data: bytes.toString("base64") },
    }));
    return [
      messagesCodec,
      { model: "m", max_tokens: 50, ...lifetimes[caching], messages: [{ role: "user", content }] },
    ];
  },
  gemini: (given, caching) => {
    if (caching !== "none") return undefined;
    const parts = given.map(({ type, bytes }) => ({ inlineData: { mimeType: type, data: bytes.toString("base64") } }));
    return [geminiCodec("m", false, false), { contents: [{ role: "user", parts: [{ text: "?" }, ...parts] }] }];
  },
};

const detailOf = (media: Media): object => (media.kind === "image" ? { detail: media.detail } : {});

/** The provider's bill by kind: sound is separate, and so are cache writes. */
function usageOf(model: Model, given: readonly File[], caching: Caching): Partial<Record<PriceKey, number>> {
  const heard = given.filter(({ media }) => media.kind === "audio" || media.kind === "film");
  const tokens = (some: readonly File[]) => some.reduce((sum, { media }) => sum + billOf(model.id, media), 0);
  const audio = Math.min(tokens(heard), model.contextLength);
  const rest = Math.min(tokens(given) - tokens(heard), model.contextLength - audio);
  const writes = caching === "none" && model.automaticCacheWrites ? "short" : caching;
  const key = writes === "none" ? "input" : writes === "short" ? "cache_write" : "cache_write_1h";
  return { [key]: rest, audio_input: audio, output: 50 };
}

/** Models that accept the same kinds of parts, by these kinds. */
const groups = new Map<string, Model[]>();
for (const model of models) {
  const kinds = (["image", "audio", "file"] as const).filter((kind) => model.features.has(kind)).join();
  groups.set(kinds, [...(groups.get(kinds) ?? []), model]);
}

test.each(Object.entries(formats))(
  "a call's bound is not below its bill, on any model, with any parts: %s",
  (_, bodyOf) => {
    fc.assert(
      fc.property(files.image, files.audio, files.file, cacheModes, (images, sounds, others, caching) => {
        for (const [kinds, alike] of groups) {
          const given = [...images, ...sounds, ...others].filter(({ kind }) => kinds.includes(kind));
          const made = bodyOf(given, caching);
          if (!made || given.length === 0) continue;
          const [codec, body] = made;
          const { size } = codec.parse(body, JSON.stringify(body).length);
          for (const model of alike) {
            const bound = catalog.bound(model, { ...size, outputCap: 50 }, "standard");
            const usage = catalog.billed(model, usageOf(model, given, caching));
            expect(bound.maxNanoUsd).toBeGreaterThanOrEqual(catalog.cost(model, usage, "standard"));
          }
        }
      }),
      { numRuns: runs(40, 10) },
    );
  },
);

const counting = shareCounting();

test.each([
  [
    "blank pages in object streams",
    pdf(
      Array.from({ length: 800 }, () => ""),
      { objectStreams: true },
    ),
  ],
  [
    "one line on every page",
    pdf(
      Array.from({ length: 800 }, () => "Page"),
      { objectStreams: true },
    ),
  ],
  ["one text over and over", pdf(["the ".repeat(2_000_000)])],
])("a document denser than its bound is known for it once it is counted: %s", async (_, bytes) => {
  const owners = [
    ["openai/gpt-6-astra", "openai"],
    ["anthropic/claude-opus-5-5", "anthropic"],
  ] as const;
  for (const [id, owner] of owners) {
    const model = catalog.find(id) as Model;
    const part = { type: "file", file: { file_data: dataAddress("application/pdf", bytes) } };
    const body = { ...said([part]), model: id };
    const { inputTokens } = catalog.bound(model, chatCodec.parse(body, JSON.stringify(body).length).size, "standard");
    expect(await counting.estimate(body, never, owner)).toBeGreaterThan(inputTokens);
  }
});
