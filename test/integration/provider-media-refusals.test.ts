import { expect, test } from "vitest";
import type { JsonObject } from "#json";
import type { Task } from "../../shared/catalog/index.ts";
import { uploadsOf } from "../support/media-calls-setup.ts";
import { mockMp3, mockPng } from "../support/mock-openai-media.ts";
import { type ProviderName, startProvider } from "../support/provider-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

type File = Parameters<typeof uploadsOf>[0][number];
const mebi = 1024 * 1024;

/** An upload with the number in its id. A number as content is its size, and it must not be read. */
const file = (number: number, content: Buffer | number = mockPng, more: Partial<File> = {}): File => ({
  id: `upl_${number}`,
  param: "image",
  mime: "image/png",
  content,
  ...more,
});
const many = (count: number) => Array.from({ length: count }, () => "upl_1");
const voice = file(1, mockMp3, { param: "input.voice", mime: "audio/mpeg" });
const recording = (content: Buffer | number, param: string) => file(1, content, { param, mime: "audio/wav" });
const frame = (number: number) => file(number, mockPng, { param: "input.image" });
const address = "https://example.com/a.png";

/** The usual input of a task. */
const usual: Readonly<Partial<Record<Task, JsonObject>>> = {
  images: { prompt: "a fox" },
  video: { prompt: "a fox", duration: 8 },
  speech: { text: "Hello" },
};

type Row = readonly [what: string, input: JsonObject, param: string, files?: readonly File[]];

const refused: Readonly<Partial<Record<`${ProviderName} ${Task}`, readonly Row[]>>> = {
  "openai images": [
    ["over 50 MB", { image: "upl_1" }, "image", [file(1, 50 * mebi + 1)]],
    [
      "a mask over 4 MB",
      { image: "upl_1", mask: "upl_2" },
      "mask",
      [file(1), file(2, 4 * mebi + 1, { param: "mask" })],
    ],
    [
      "over 128 MB together",
      { image: ["upl_1", "upl_2", "upl_3"] },
      "image[3]",
      [1, 2, 3].map((i) => file(i, 45 * mebi, { param: `image[${i}]` })),
    ],
    [
      "an upload where no file can be",
      { deep: { image: "upl_1" } },
      "deep.image",
      [file(1, mockPng, { param: "deep.image" })],
    ],
    ["a file of its store", { images: [{ file_id: "file-1" }] }, "images[0].file_id"],
  ],
  "openai speech": [["an upload", { voice: "upl_1" }, "input.voice", [voice]]],
  "openai transcription": [
    ["over 25 MB", { file: "upl_1" }, "input.file", [recording(25 * mebi + 1, "input.file")]],
    ["no recording", { file: "a.mp3" }, "input.file"],
  ],
  "openai video": [
    ["a video of its store", { remix_video_id: "video_1" }, "input.remix_video_id"],
    ["a file of its store", { input_reference: { file_id: "f" } }, "input.input_reference.file_id"],
  ],
  "gemini images": [
    ["no prompt", { prompt: "" }, "prompt"],
    ["a link", { image: address }, "image"],
    ["an object", { image: [{ url: "upl_1" }] }, "image", [file(1)]],
    ["a kind that it does not read", { image: "upl_1" }, "image", [file(1, 9, { mime: "image/gif" })]],
    ["a film", { image: "upl_1" }, "image", [file(1, 9, { mime: "video/mp4" })]],
    ["an upload in another field", { mask: "upl_1" }, "mask", [file(1, 9, { param: "mask" })]],
    ["too many", { image: many(15) }, "image", [file(1)]],
    ["too large a one", { image: "upl_1" }, "image", [file(1, 65 * mebi)]],
    [
      "too large together, before the last is read",
      { image: ["upl_1", "upl_2"] },
      "image",
      [file(1, Buffer.alloc(40 * mebi)), file(2, 30 * mebi)],
    ],
    ["a size that no ratio fits", { size: "1000x300" }, "size"],
    ["a size of nothing", { size: "0x0" }, "size"],
    ["a size that is a word", { size: "wide" }, "size"],
    ["a size that is a line", { size: "1x99999" }, "size"],
  ],
  "gemini speech": [
    ["no text", { text: undefined }, "text"],
    ["another format", { format: "mp3" }, "format"],
    ["an upload", { voice: "upl_1" }, "input.voice", [voice]],
  ],
  "gemini video": [
    ["no duration", { duration: undefined }, "duration"],
    ["half a second", { duration: 4.5 }, "duration"],
    ["no time", { duration: 0 }, "duration"],
    ["a word as time", { duration: "long" }, "duration"],
    ["no prompt", { prompt: undefined }, "prompt"],
    ["both kinds of images", { image: "upl_1", reference_images: "upl_2" }, "reference_images", [frame(1), frame(2)]],
    ["an image elsewhere", { last_image: "upl_1" }, "input.image", [frame(1)]],
    ["seven images", { reference_images: many(7) }, "reference_images", [frame(1)]],
  ],
  "fal video": [
    [
      "an upload that is too large where it is named again",
      { image_urls: many(3) },
      "input.image_urls[0]",
      [file(1, Buffer.alloc(3 * mebi), { param: "input.image_urls[0]" })],
    ],
  ],
  "replicate video": [
    ...[
      "https://api.replicate.com/v1/files/abc/download",
      " HTTPS://API.replicate.com:443/v1/files/abc",
      "https://user@api.replicate.com./v1/files/abc",
      "https://api.replicate.com/v1/predictions/abc",
    ].flatMap((place): Row[] => [
      [`what the operator's key opens at ${place}`, { image: place }, "input.image"],
      ["the same, deeper", { shots: [{ reference: place }] }, "input.shots[0].reference"],
    ]),
    [
      "too large together for one request",
      { image: "upl_1", last: "upl_2" },
      "input.last",
      [frame(1), file(2, Buffer.alloc(4 * mebi), { param: "input.last" })],
    ],
  ],
  "replicate transcription": [
    ["no recording", { audio: "https://a.example/b.mp3" }, "input.audio"],
    ["a broken recording", { audio: "upl_1" }, "input.audio", [recording(Buffer.from("no"), "input.audio")]],
  ],
  "fal images": ["rest.fal.ai/storage/x", "queue.fal.run/a/b/requests/c", "api.fal.ai/v1/serverless/files/x"].map(
    (place): Row => [
      `what the operator's key opens at ${place}`,
      { image_urls: [`https://${place}`] },
      "image_urls[0]",
    ],
  ),
};

test.each(
  Object.entries(refused).flatMap(([of, rows]) => {
    const [name, task] = of.split(" ") as [ProviderName, Task];
    return rows.map(([what, input, param, files = []]) => ({ name, task, what, input, param, files }));
  }),
)("$name, $task: $what is refused by name before anything is sent", async ({ name, task, input, param, files }) => {
  const { mock, provider, call } = await startProvider(name);
  const asked = call(task, { ...usual[task], ...input }, { uploads: uploadsOf(files) });
  const failure = (await errorOf(provider.generate(asked))) as { kind?: string; code?: string; param?: string };
  expect([failure.kind ?? failure.code, failure.param]).toEqual([
    expect.toBeOneOf(["refused", "invalid_value"]),
    param,
  ]);
  expect(mock.requests).toEqual([]);
});
