import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { encodeFilm } from "../../workers/providers/local/media/film.ts";
import { begin, generate, never, upload } from "../support/local-media-setup.ts";
import { readFilm } from "../support/local-mp4.ts";
import { createManualClock } from "../support/manual-clock.ts";

const ask = { prompt: "a fox", duration: 2, resolution: "320x180" };
const film = async (input: object = {}) => {
  const made = await generate("video", { ...ask, ...input });
  expect(made.kept).toHaveLength(1);
  return { ...made, mp4: made.kept[0]?.bytes as Buffer };
};

test.each([
  ["320x180", 2],
  ["64x64", 1],
  ["1280x720", 5],
  ["98x66", 7],
  ["1080x1920", 1],
])("an MP4 file has exactly the size and length asked for: %s, %d s", async (resolution, duration) => {
  const { mp4, output, usage } = await film({ resolution, duration });
  const { boxes, header, sps, pps, seconds, frames } = readFilm(mp4);
  expect(boxes).toEqual(["ftyp", "moov", "mdat"]);
  expect(`${header.width}x${header.height}`).toBe(resolution);
  expect(`${sps.width}x${sps.height}`).toBe(resolution);
  expect(sps).toMatchObject({ profile: 66, constraints: 0xc0 });
  expect(pps.type).toBe(8);
  expect(seconds).toEqual({ movie: duration, track: duration, samples: duration });
  expect(frames).toHaveLength(24 * duration);
  expect({ output, usage }).toEqual({ output: { duration, resolution }, usage: { second: duration } });
});

test("every frame is one NAL unit where the tables say, and only those that say so are key pictures", async () => {
  const { frames } = readFilm((await film({ duration: 9 })).mp4);
  for (const [index, frame] of frames.entries()) {
    expect(frame.isKey).toBe(index % 96 === 0);
    expect(frame.nalTypes).toEqual([frame.isKey ? 5 : 1]);
    // Three bytes that look like a start code would end the unit.
    expect(frame.data.subarray(4).indexOf(Buffer.from([0, 0, 1]))).toBe(-1);
  }
});

test("it is seen to run: the frames between key pictures differ, and most are small", async () => {
  const { frames } = readFilm((await film({ duration: 4 })).mp4);
  const between = frames.filter(({ isKey }) => !isKey).map(({ data }) => data);
  expect(new Set(between.map((data) => data.toString("base64"))).size).toBe(between.length);
  expect(Math.max(...between.map(({ length }) => length))).toBeLessThan(2_500);
});

test("twenty seconds of 1280x720 stay far under 3 MB", async () => {
  expect((await film({ resolution: "1280x720", duration: 20 })).mp4.length).toBeLessThan(600_000);
});

test("the largest film leaves the event loop to others many times", async () => {
  let turns = 0;
  let ticking: NodeJS.Immediate | undefined;
  const tick = () => {
    turns++;
    ticking = setImmediate(tick);
  };
  tick();
  await film({ resolution: "1920x1920", duration: 1 });
  clearImmediate(ticking);
  expect(turns).toBeGreaterThan(40);
});

test("another prompt is another film, the same one the same", async () => {
  const [fox, again, hen] = [await film(), await film(), await film({ prompt: "a hen" })];
  expect(again.mp4).toEqual(fox.mp4);
  expect(hen.mp4).not.toEqual(fox.mp4);
});

/** What changes this was not seen by ffmpeg and a browser: play it in both, then change the hash. */
test("the film is the one that decoders were seen to play, byte for byte", async () => {
  const { mp4 } = await film({ prompt: "a sunset over the sea", duration: 5, resolution: "854x480" });
  expect(createHash("sha256").update(mp4).digest("hex")).toBe(
    "21a957936f881bd2b211f6548a1b14957c541ea2169ce33954085eef8e82d68b",
  );
});

test("it runs as a job that is kept before the work, and carries all that is needed", async () => {
  const clock = createManualClock();
  const work = begin("video", { ...ask, prompt: "slow:60000" }, { clock });
  while (work.jobs.length === 0) await new Promise(setImmediate);
  await new Promise(setImmediate);
  clock.advance(59_999);
  expect(clock.pending()).toBe(1);
  expect(work.kept).toEqual([]);
  expect(work.jobs[0]).toMatch(/^[\w-]+$/);

  const [job] = work.jobs as [string];
  const other = begin("video", {}, { clock, job });
  expect(other.jobs).toEqual([]);
  clock.advance(1);
  expect(await other.done).toEqual(await work.done);
  expect(other.kept).toEqual(work.kept);
  expect(other.jobs).toEqual([]);

  const late = await generate("video", {}, { clock, job });
  expect(late.kept).toEqual(work.kept);
});

test("a job id that cannot be kept ends the call before any work", async () => {
  const error = new Error("storage is away");
  const { done, kept } = begin("video", ask, { stored: () => Promise.reject(error) });
  await expect(done).rejects.toBe(error);
  expect(kept).toEqual([]);
});

const encoded = (job: object) => Buffer.from(JSON.stringify(job)).toString("base64url");
const size = { seed: 1, width: 64, height: 64, duration: 1, doneAt: 0 };
test("a job that was never submitted is not there", async () => {
  const jobs = ["", encoded(size).slice(3), encoded({ ...size, duration: 21 }), encoded({ ...size, width: 4096 })];
  for (const job of jobs) {
    const { done, kept } = begin("video", ask, { job });
    await expect(done).rejects.toMatchObject({ name: "UpstreamFailure", kind: "unavailable" });
    expect(kept).toEqual([]);
  }
  expect((await generate("video", {}, { job: encoded(size) })).kept).toHaveLength(1);
});

test("an image to begin from is read: the answer says what it is, of a job gone on with too", async () => {
  const own = (await generate("images", { prompt: "a hen", size: "40x30" })).kept[0]?.bytes as Buffer;
  const file = upload("image/png", own);
  const made = await generate("video", { ...ask, image: file.id }, { uploads: [file] });
  expect(made.output).toMatchObject({ image: `a PNG image of 40 x 30 pixels, ${own.length} bytes` });
  expect(made.kept[0]?.bytes).not.toEqual((await film()).mp4);
  const again = await generate("video", {}, { job: made.jobs[0] as string });
  expect(again.output).toEqual(made.output);
  expect(again.kept).toEqual(made.kept);
  const { done } = begin("video", { ...ask, image: file.id }, { uploads: [upload("video/mp4", own)] });
  await expect(done).rejects.toMatchObject({ kind: "refused", param: "input.file" });
});

test.each([
  ["duration", { duration: 0 }],
  ["duration", { duration: 21 }],
  ["duration", { duration: 1.5 }],
  ["duration", { duration: undefined }],
  ["resolution", { resolution: "321x180" }],
  ["resolution", { resolution: "32x180" }],
  ["resolution", { resolution: "1922x1080" }],
  ["resolution", { resolution: "720p" }],
  ["prompt", { prompt: "" }],
  ["image", { image: ["upl_1"] }],
])("what it does not take is refused naming %s: %o", async (param, input) => {
  const { done, jobs } = begin("video", { ...ask, ...input });
  await expect(done).rejects.toMatchObject({ kind: "refused", param });
  expect(jobs).toEqual([]);
});

test("deliver:<n> makes only so many seconds and counts those", async () => {
  const short = await generate("video", { ...ask, prompt: "deliver:1" });
  expect(short).toMatchObject({ usage: { second: 1 }, output: { duration: 1 } });
  expect(readFilm(short.kept[0]?.bytes as Buffer).frames).toHaveLength(24);
  expect(await generate("video", { ...ask, prompt: "deliver:9" })).toMatchObject({ usage: { second: 2 } });
  expect(await generate("video", { ...ask, prompt: "deliver:0" })).toMatchObject({ usage: { second: 0 }, kept: [] });
});

test("error:<status> fails before a job is submitted", async () => {
  const { done, jobs } = begin("video", { ...ask, prompt: "error:503" });
  await expect(done).rejects.toMatchObject({ status: 503 });
  expect(jobs).toEqual([]);
});

test("once aborted it rejects with the reason: while it waits, works, submits and stores", async () => {
  const reason = new Error("left");
  for (const [input, stored] of [
    [{ prompt: "slow:5000" }],
    [{ resolution: "1920x1080", duration: 20 }],
    [{ duration: 1 }, never],
  ] as const) {
    const controller = new AbortController();
    const clock = createManualClock();
    const options = { clock, signal: controller.signal, ...(stored && { stored }) };
    const { done, kept } = begin("video", { ...ask, ...input }, options);
    setImmediate(() => controller.abort(reason));
    await expect(done).rejects.toBe(reason);
    expect(kept).toEqual([]);
    expect(clock.pending()).toBe(0);
  }
});

test("a film that nobody waits for is not made to its end", async () => {
  const reason = new Error("left");
  const film = encodeFilm({ seed: 1, width: 640, height: 360, duration: 1 }, AbortSignal.abort(reason));
  await expect(film).rejects.toBe(reason);
});

test("once aborted nothing is stored any more", async () => {
  const reason = new Error("left");
  const controller = new AbortController();
  const input = { ...ask, resolution: "1280x720", duration: 1 };
  const { done, storing } = begin("video", input, { signal: controller.signal });
  setImmediate(() => controller.abort(reason));
  await expect(done).rejects.toBe(reason);
  await generate("video", input);
  expect(storing).toEqual([]);
});
