import { expect, test } from "vitest";
import { begin, generate, upload } from "../support/local-media-setup.ts";
import { readVideo } from "../support/local-mp4.ts";
import { createManualClock } from "../support/manual-clock.ts";

const ask = { prompt: "a fox", duration: 2, resolution: "320x240" };
const video = async (input: object = {}) => {
  const made = await generate("video", { ...ask, ...input });
  expect(made.stored).toHaveLength(1);
  return { ...made, mp4: made.stored[0]?.bytes as Buffer };
};

test.each([
  ["320x240", 2],
  ["640x360", 1],
  ["1280x720", 5],
  ["320x240", 20],
])("an MP4 file has the requested size and length: %s, %d s", async (resolution, duration) => {
  const { mp4, output, usage } = await video({ resolution, duration });
  const { boxes, header, sps, pps, seconds, frames } = readVideo(mp4);
  expect(boxes).toEqual(["ftyp", "moov", "mdat"]);
  expect(`${header.width}x${header.height}`).toBe(resolution);
  expect(`${sps.width}x${sps.height}`).toBe(resolution);
  expect(sps).toMatchObject({ profile: 66, constraints: 0xc0 });
  expect(pps.type).toBe(8);
  expect(seconds).toEqual({ movie: duration, track: duration, samples: duration });
  expect(frames).toHaveLength(24 * duration);
  expect({ output, usage }).toEqual({ output: { duration, resolution }, usage: { second: duration } });
});

test("every frame is one NAL unit where the tables say, and the first of each second is a key frame", async () => {
  const { frames } = readVideo((await video({ duration: 9 })).mp4);
  for (const [index, frame] of frames.entries()) {
    expect(frame.isKey).toBe(index % 24 === 0);
    expect(frame.nalTypes).toEqual([frame.isKey ? 5 : 1]);
    // Three bytes that look like a start code would end the unit.
    expect(frame.data.subarray(4).indexOf(Buffer.from([0, 0, 1]))).toBe(-1);
  }
});

test("it is seen to run: the frames of a second differ, and those between key frames are small", async () => {
  const { frames } = readVideo((await video({ duration: 1 })).mp4);
  expect(new Set(frames.map(({ data }) => data.toString("base64"))).size).toBe(24);
  expect(Math.max(...frames.slice(1).map(({ data }) => data.length))).toBeLessThan(2_500);
});

test("twenty seconds of 1280x720 have less than 600 KB", async () => {
  expect((await video({ resolution: "1280x720", duration: 20 })).mp4.length).toBeLessThan(600_000);
});

test("another prompt makes another file, the same prompt the same file", async () => {
  const [fox, again, hen] = [await video(), await video(), await video({ prompt: "a hen" })];
  expect(again.mp4).toEqual(fox.mp4);
  expect(hen.mp4).not.toEqual(fox.mp4);
});

test("the job id is stored before the work, and another worker can continue from it alone", async () => {
  const clock = createManualClock();
  const work = begin("video", { ...ask, prompt: "slow:60000" }, { clock });
  while (work.jobs.length === 0) await new Promise(setImmediate);
  await new Promise(setImmediate);
  clock.advance(59_999);
  expect(clock.pending()).toBe(1);
  expect(work.stored).toEqual([]);
  expect(work.jobs[0]).toMatch(/^[\w-]+$/);

  const [job] = work.jobs as [string];
  const other = begin("video", {}, { clock, job });
  expect(other.jobs).toEqual([]);
  clock.advance(1);
  expect(await other.done).toEqual(await work.done);
  expect(other.stored).toEqual(work.stored);
  expect(other.jobs).toEqual([]);

  const late = await generate("video", {}, { clock, job });
  expect(late.stored).toEqual(work.stored);
});

test("a job id that cannot be stored ends the call before any work", async () => {
  const error = new Error("storage is unavailable");
  const { done, stored } = begin("video", ask, { beforeStore: () => Promise.reject(error) });
  await expect(done).rejects.toBe(error);
  expect(stored).toEqual([]);
});

const encoded = (job: object) => Buffer.from(JSON.stringify(job)).toString("base64url");
const known = { seed: 1, resolution: "320x240", duration: 1, doneAt: 0 };
test("a job that was never submitted is refused as unavailable", async () => {
  const jobs = [
    "",
    encoded(known).slice(3),
    encoded({ ...known, duration: 21 }),
    encoded({ ...known, resolution: "4096x64" }),
  ];
  for (const job of jobs) {
    const { done, stored } = begin("video", ask, { job });
    await expect(done).rejects.toMatchObject({ name: "UpstreamFailure", kind: "unavailable" });
    expect(stored).toEqual([]);
  }
  expect((await generate("video", {}, { job: encoded(known) })).stored).toHaveLength(1);
});

test("the answer describes the first image, also when another worker continues the job", async () => {
  const own = (await generate("images", { prompt: "a hen", size: "40x30" })).stored[0]?.bytes as Buffer;
  const file = upload("image/png", own);
  const made = await generate("video", { ...ask, image: file.id }, { uploads: [file] });
  expect(made.output).toMatchObject({ image: `a PNG image of 40 x 30 pixels, ${own.length} bytes` });
  expect(made.stored[0]?.bytes).not.toEqual((await video()).mp4);
  const again = await generate("video", {}, { job: made.jobs[0] as string });
  expect(again.output).toEqual(made.output);
  expect(again.stored).toEqual(made.stored);
  const { done } = begin("video", { ...ask, image: file.id }, { uploads: [upload("video/mp4", own)] });
  await expect(done).rejects.toMatchObject({ kind: "refused", param: "input.file" });
});

test.each([
  ["duration", { duration: 0 }],
  ["duration", { duration: 21 }],
  ["duration", { duration: 1.5 }],
  ["duration", { duration: undefined }],
  ["resolution", { resolution: "320x241" }],
  ["resolution", { resolution: undefined }],
  ["resolution", { resolution: "720p" }],
  ["prompt", { prompt: "" }],
  ["image", { image: ["upl_1"] }],
])("an invalid input is refused naming %s: %o", async (param, input) => {
  const { done, jobs } = begin("video", { ...ask, ...input });
  await expect(done).rejects.toMatchObject({ kind: "refused", param });
  expect(jobs).toEqual([]);
});

test("deliver:<n> makes and counts only n seconds", async () => {
  const short = await generate("video", { ...ask, prompt: "deliver:1" });
  expect(short).toMatchObject({ usage: { second: 1 }, output: { duration: 1 } });
  expect(readVideo(short.stored[0]?.bytes as Buffer).frames).toHaveLength(24);
  expect(await generate("video", { ...ask, prompt: "deliver:9" })).toMatchObject({ usage: { second: 2 } });
  expect(await generate("video", { ...ask, prompt: "deliver:0" })).toMatchObject({ usage: { second: 0 }, stored: [] });
});

test("nothing is stored after an abort", async () => {
  const reason = new Error("disconnected");
  const controller = new AbortController();
  const input = { ...ask, resolution: "1280x720", duration: 1 };
  const { done, storing } = begin("video", input, { signal: controller.signal });
  setImmediate(() => controller.abort(reason));
  await expect(done).rejects.toBe(reason);
  await generate("video", input);
  expect(storing).toEqual([]);
});
