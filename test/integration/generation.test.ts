import { parseBuffer } from "music-metadata";
import { describe, expect, test } from "vitest";
import { type Clock, systemClock } from "../../shared/platform/clock.ts";
import {
  drawing,
  fileAt,
  type ImageAnswer,
  images,
  type MediaAnswer,
  media,
  paid,
  pngOf,
  uploaded,
  wavOf,
} from "../support/generation-setup.ts";
import { testStores } from "../support/servers.ts";
import { startService } from "../support/service.ts";
import { catalogWith, expectUntouched, nanoUsd, refusal, refusalOf, serviceOfFile } from "../support/service-setup.ts";

/** Prices in USD per character, second or minute: those of the shipped list, and those after a change. */
const CATALOG_FILE = catalogWith(
  {},
  {
    "local/speech": { pricing: { character: "0.000005" }, elite_discount_bps: 1_500 },
    "local/transcription": { pricing: { minute: "0.002" } },
    "local/video": {
      pricing: { second: "0.01" },
      variants: [{ name: "1280x720", when: { resolution: ["1280x720"] }, pricing: { second: "0.02" } }],
    },
  },
);
const running = serviceOfFile({ CATALOG_FILE });
const day = 86_400;

const speech = (text: string, input: object = {}) => ({ model: "local/speech", input: { text, ...input } });
const video = (prompt: string, input: object = {}) => ({
  model: "local/video",
  input: { prompt, resolution: "320x240", ...input },
});
const transcription = (file: string, input: object = {}) => ({
  model: "local/transcription",
  input: { file, ...input },
});

/** Delivers a call, and returns its files with their types. */
async function generated(body: { model: string; input: object }, options: { usd?: string; tier?: "elite" } = {}) {
  const { usd = "1", ...more } = options;
  const customer = await running.service.account(usd, more);
  const startedAt = Math.floor(Date.now() / 1_000);
  const call = await paid<MediaAnswer>(running.service, customer, media, body);
  const endedAt = Date.now() / 1_000;
  const { answer, entry } = call;
  expect(answer).toMatchObject({ object: "media.generation", model: body.model, expires_at: answer.created + day });
  expect(answer.id).toBe(entry.id.replace("req_", "gen_"));
  expect(answer.created).toBeGreaterThanOrEqual(startedAt);
  expect(answer.created).toBeLessThanOrEqual(endedAt);
  const files = await Promise.all(
    answer.files.map(async ({ url, content_type, bytes, expires_at }) => {
      expect(url).toMatch(new RegExp(`^${running.service.baseUrl}/media/file_[0-9A-Za-z]{40}$`));
      expect(expires_at).toBeGreaterThanOrEqual(answer.expires_at);
      expect(expires_at).toBeLessThanOrEqual(Math.ceil(endedAt) + day);
      const file = await fileAt(url);
      expect({ type: file.type, bytes: file.bytes.length }).toEqual({ type: content_type, bytes });
      return file;
    }),
  );
  return { ...call, customer, files };
}

type File = Awaited<ReturnType<typeof fileAt>>;

/** Seconds of sound, measured by another reader. */
const secondsOf = async (file: File | undefined) =>
  (await parseBuffer(file?.bytes ?? Buffer.alloc(0), undefined, { duration: true })).format.duration;

/** The duration in an MP4's header (`mvhd`): a timescale, then a count of its units. */
function filmSeconds(file: File | undefined): number {
  const at = file?.bytes.indexOf("mvhd") ?? 0;
  return (file?.bytes.readUInt32BE(at + 20) ?? 0) / (file?.bytes.readUInt32BE(at + 16) ?? 0);
}

describe("speech, by the character", () => {
  test("a WAV file, at 15 characters a second", async () => {
    const text = "The quick brown fox jumps over it.";
    const { answer, entry, costNanoUsd, files } = await generated(speech(text));
    expect(files).toMatchObject([{ type: "audio/wav" }]);
    expect(await secondsOf(files[0])).toBeCloseTo(text.length / 15, 1);
    expect(answer.output).toMatchObject({ format: "wav", duration: expect.any(Number) as number });
    expect(costNanoUsd).toBe(BigInt(text.length) * 5_000n);
    expect(entry.request).toMatchObject({
      model: "local/speech",
      upstream: "local",
      usage: { character: text.length },
    });
  });

  test("the same text in the same voice is the same file; in another it is not", async () => {
    const [one, again, other] = [
      await generated(speech("Hello")),
      await generated(speech("Hello", { voice: "alto" })),
      await generated(speech("Hello", { voice: "bass" })),
    ].map(({ files }) => files[0]?.bytes);
    expect(again).toEqual(one);
    expect(other).not.toEqual(one);
  });
});

describe("video, by the second", () => {
  test("an MP4 file of the requested length and size", async () => {
    const { answer, entry, costNanoUsd, files } = await generated(video("waves", { duration: 2 }));
    expect(files).toMatchObject([{ type: "video/mp4" }]);
    expect(filmSeconds(files[0])).toBeCloseTo(2, 1);
    expect(answer.output).toMatchObject({ duration: 2, resolution: "320x240" });
    expect(costNanoUsd).toBe(20_000_000n);
    expect(entry.request.usage).toEqual({ second: 2 });
  });

  test("without a length and a size it has the model's defaults, at their price", async () => {
    const { costNanoUsd, answer } = await generated({ model: "local/video", input: { prompt: "waves" } });
    expect(answer.output).toMatchObject({ duration: 4, resolution: "640x360" });
    expect(costNanoUsd).toBe(40_000_000n);
  });

  test("the more expensive size costs its exact price", async () => {
    const { costNanoUsd } = await generated(video("waves", { duration: 1, resolution: "1280x720" }));
    expect(costNanoUsd).toBe(20_000_000n);
  });

  test("a shorter video than requested costs less", async () => {
    const { answer, entry, costNanoUsd, customer, files } = await generated(video("deliver:1", { duration: 5 }), {
      usd: "0.05",
    });
    expect(filmSeconds(files[0])).toBeCloseTo(1, 1);
    expect(answer.output).toMatchObject({ duration: 1 });
    expect(costNanoUsd).toBe(10_000_000n);
    expect(entry.request.usage).toEqual({ second: 1 });
    expect(await customer.available()).toBe("0.04");
  });

  test("never costs more than the hold: seconds beyond the request are not delivered", async () => {
    const { costNanoUsd } = await generated(video("deliver:9", { duration: 2 }), { usd: "0.02" });
    expect(costNanoUsd).toBe(20_000_000n);
  });

  test("a first image, by the id of its upload", async () => {
    const customer = await running.service.account("1");
    const image = await uploaded(running.service, customer, pngOf(30, 20));
    const body = video("waves", { duration: 1, image });
    const { answer } = await paid<MediaAnswer>(running.service, customer, media, body);
    expect(answer.output).toMatchObject({ image: expect.stringContaining("30 x 20") as string });
  });

  test("unknown fields are accepted", async () => {
    const { costNanoUsd } = await generated(video("waves", { duration: 1, seed: 7, camera: { pan: ["right"] } }));
    expect(costNanoUsd).toBe(10_000_000n);
  });
});

describe("transcription, by the minute", () => {
  test.each([
    [3, 50_000n, 100_000n],
    [60, 1_000_000n, 2_000_000n],
    [7.5, 125_000n, 250_000n],
  ])("of an uploaded recording of %f seconds", async (seconds, millionths, costsNanoUsd) => {
    const customer = await running.service.account("1");
    const file = await uploaded(running.service, customer, wavOf(seconds));
    const { answer, entry, costNanoUsd } = await paid<MediaAnswer>(
      running.service,
      customer,
      media,
      transcription(file),
    );
    expect(answer.files).toEqual([]);
    expect(answer.output).toMatchObject({
      duration: seconds,
      text: expect.stringContaining(`${seconds} seconds`) as string,
    });
    expect(entry.request.usage).toEqual({ minute: Number(millionths) / 1e6 });
    expect(costNanoUsd).toBe(costsNanoUsd);
  });

  test("the hold depends on the size of the file: 402 below it", async () => {
    const customer = await running.service.account("0.01");
    const file = await uploaded(running.service, customer, wavOf(10));
    const before = await customer.available();
    // 160,044 bytes may be 5.3 minutes at the lowest bit rate: 0.0107 USD.
    expect(await refusalOf(await customer.post(media, transcription(file)))).toEqual(
      refusal({ status: 402, type: "insufficient_quota", code: "insufficient_balance", message: /can cost 0\.010669/ }),
    );
    await expectUntouched(running.service, customer, before);
  });

  test("generated speech can be uploaded and transcribed", async () => {
    const { customer, files } = await generated(speech("The quick brown fox jumps over it."));
    const file = await uploaded(running.service, customer, Buffer.from(files[0]?.bytes ?? []));
    const { answer } = await paid<MediaAnswer>(running.service, customer, media, transcription(file));
    expect(answer.output["duration"]).toBeCloseTo(34 / 15, 1);
  });
});

test("50 calls of every kind: balances, entries and headers agree", async () => {
  const customer = await running.service.account("100");
  const file = await uploaded(running.service, customer, wavOf(3));
  const before = nanoUsd(await customer.available());
  const kinds: readonly object[] = [
    speech("Hello"),
    transcription(file),
    speech("x", { voice: "choir" }),
    video("deliver:0"),
    video("deliver:1", { duration: 2, resolution: "320x240" }),
  ];
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, at) => {
      const response = await customer.post(media, kinds[at % kinds.length]);
      await response.text();
      return response;
    }),
  );
  const statuses = answers.map(({ status }) => status);
  expect([200, 400, 502].map((status) => statuses.filter((each) => each === status).length)).toEqual([30, 10, 10]);
  await running.service.settled();
  const charged = answers.reduce((sum, { headers }) => sum + nanoUsd(headers.get("x-xm-cost-usd") ?? "0.00"), 0n);
  expect(charged).toBe(10n * (25_000n + 100_000n + 10_000_000n));
  expect(before - nanoUsd(await customer.available())).toBe(charged);
});

test.each<readonly [what: string, path: string, body: object]>([
  ["images", images, drawing("slow:1200", { n: 2 })],
  ["media", media, { model: "local/speech", input: { text: "slow:1200" } }],
])("%s that take long expire when the answer says so, and not before", async (_, path, body) => {
  // Time passes only where the model sleeps.
  let now = Date.now();
  const after: Clock["after"] = (ms, fire) => {
    if (ms !== 1_200) return systemClock.after(ms, fire);
    now += ms;
    setImmediate(fire);
    return () => {};
  };
  const clock: Clock = { ...systemClock, now: () => now, after };
  const service = await startService(await testStores(), { clock });
  const customer = await service.account("1");
  const { answer } = await paid<Pick<MediaAnswer, "created" | "expires_at" | "files"> & ImageAnswer>(
    service,
    customer,
    path,
    body,
  );
  expect(answer.expires_at).toBe(answer.created + day);
  const files = answer.data ?? answer.files;
  for (const { url = "", expires_at } of files) {
    expect(expires_at - answer.expires_at).toBeLessThanOrEqual(1);
    now = expires_at * 1_000 - 2_000;
    expect((await fetch(url)).status).toBe(200);
  }
  for (const { url = "", expires_at } of files) {
    now = expires_at * 1_000 + 1_000;
    expect((await fetch(url)).status).toBe(410);
  }
});
