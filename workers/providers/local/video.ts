import { readFile } from "node:fs/promises";
import { z } from "zod";
import { type Clock, sleep } from "#platform/clock";
import { type Generated, type GenerationCall, UpstreamFailure } from "../provider.ts";
import { hashOf, readImage, uint32 } from "./inputs.ts";
import { parseRequest, triggerOf } from "./request.ts";

/** The sizes of the files in `clips/`. */
const resolutions = ["320x240", "640x360", "1280x720"] as const;

const input = z.object({
  prompt: z.string().min(1),
  duration: z.int().min(1).max(20),
  resolution: z.enum(resolutions),
  image: z.string().nullish(),
});

/** Everything that another process needs to continue the job. */
const job = z.object({
  seed: z.int().min(0),
  resolution: z.enum(resolutions),
  /** Seconds that are delivered. */
  duration: z.int().min(0).max(20),
  /** Unix milliseconds. */
  doneAt: z.int(),
  /** Description of the first image. */
  image: z.string().optional(),
});

type Job = z.infer<typeof job>;

/** Works in two steps, as providers do: a job is submitted, and fetched when it is done. */
export async function makeVideo(clock: Clock, call: GenerationCall): Promise<Generated> {
  const { doneAt, image, seed, resolution, duration } =
    call.job === undefined ? await submit(call, clock) : readJob(call.job);
  await waitUntil(doneAt, clock, call);
  if (duration > 0) {
    const clip = await readFile(new URL(`clips/${resolution}.mp4`, import.meta.url));
    call.signal.throwIfAborted();
    await call.store(repeated(clip, duration, seed));
  }
  return { output: { duration, resolution, ...(image !== undefined && { image }) }, usage: { second: duration } };
}

const reportMs = 1_000;

async function waitUntil(doneAt: number, clock: Clock, call: GenerationCall): Promise<void> {
  const totalMs = doneAt - clock.now();
  for (let waitMs = totalMs; waitMs > 0; waitMs = doneAt - clock.now()) {
    call.reportProgress?.((100 * (totalMs - waitMs)) / totalMs);
    await sleep(clock, call.reportProgress ? Math.min(waitMs, reportMs) : waitMs, call.signal);
  }
}

async function submit(call: GenerationCall, clock: Clock): Promise<Job> {
  const { prompt, duration, resolution, image } = parseRequest(input, call.input);
  const { delayMs = 0, deliver = duration } = triggerOf(prompt, "prompt");
  const first = image ? await readImage(call, image, "image") : undefined;
  const submitted: Job = {
    seed: (first ? hashOf(prompt, first.hash) : hashOf(prompt)).readUInt32BE(),
    resolution,
    duration: Math.min(duration, deliver),
    doneAt: clock.now() + delayMs,
    ...(first && { image: first.description }),
  };
  await call.remember(Buffer.from(JSON.stringify(submitted)).toString("base64url"));
  call.signal.throwIfAborted();
  return submitted;
}

function readJob(id: string): Job {
  try {
    return job.parse(JSON.parse(Buffer.from(id, "base64url").toString()));
  } catch (cause) {
    throw new UpstreamFailure("unavailable", "There is no such job.", { cause });
  }
}

const containers: ReadonlySet<string> = new Set(["moov", "trak", "mdia", "minf", "stbl"]);
type Change = (content: Buffer, times: number, seed: number) => Buffer;

/**
 * Rewrites the boxes of a clip (ISO/IEC 14496-12) into a movie that repeats it. A clip is an MP4 file of one second with one
 * track, whose frames form one chunk and start with a key frame.
 */
function repeated(boxes: Buffer, times: number, seed: number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0, size = 0; at < boxes.length; at += size) {
    size = boxes.readUInt32BE(at);
    const type = boxes.subarray(at + 4, at + 8);
    const content = boxes.subarray(at + 8, at + size);
    const change = containers.has(type.toString()) ? repeated : changes[type.toString()];
    const changed = change?.(content, times, seed) ?? content;
    parts.push(uint32(8 + changed.length), type, changed);
  }
  return Buffer.concat(parts);
}

const field =
  (offset: number, next: (value: number, times: number) => number): Change =>
  (content, times) => {
    const changed = Buffer.from(content);
    changed.writeUInt32BE(next(content.readUInt32BE(offset), times), offset);
    return changed;
  };
const multiplied = (offset: number) => field(offset, (value, times) => value * times);
const copies = (bytes: Buffer, times: number) => Buffer.concat(Array.from({ length: times }, () => bytes));

const framesPerSecond = 24;
/** Bytes that each further second adds to the tables: the size of each frame, and the number of the key frame. */
const secondBytes = 4 * (framesPerSecond + 1);

const changes: Readonly<Record<string, Change>> = {
  // Durations.
  mvhd: multiplied(16),
  tkhd: multiplied(20),
  mdhd: multiplied(16),
  // The tables of frames: their times, key frames, chunks, sizes, and where they begin in the file.
  stts: multiplied(8),
  stss: (content, times) =>
    Buffer.concat([
      content.subarray(0, 4),
      uint32(times),
      ...Array.from({ length: times }, (_, second) => uint32(second * framesPerSecond + 1)),
    ]),
  stsc: multiplied(12),
  stsz: (content, times) =>
    Buffer.concat([multiplied(8)(content.subarray(0, 12), times, 0), copies(content.subarray(12), times)]),
  stco: field(8, (offset, times) => offset + (times - 1) * secondBytes),
  mdat: copies,
  // Players skip this box; it makes videos of different prompts differ.
  free: (_content, _times, seed) => uint32(seed),
};
