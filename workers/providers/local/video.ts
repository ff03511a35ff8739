import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { z } from "zod";
import { type Clock, sleep } from "#platform/clock";
import { type Generated, type GenerationCall, UpstreamFailure } from "../provider.ts";
import { hashOf, readImage } from "./inputs.ts";
import { writeMp4 } from "./mp4.ts";
import { parseRequest } from "./request.ts";
import { triggerOf } from "./triggers.ts";

/** Each has its file in `clips/`. */
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

/** In two steps, as providers do it: a job is submitted, and fetched when it is done. */
export async function makeVideo(clock: Clock, call: GenerationCall): Promise<Generated> {
  const { doneAt, image, seed, resolution, duration } =
    call.job === undefined ? await submit(call, clock) : readJob(call.job);
  const waitMs = doneAt - clock.now();
  if (waitMs > 0) await sleep(clock, waitMs, call.signal);
  if (duration > 0) {
    const clip = await readClip(resolution);
    call.signal.throwIfAborted();
    await call.store(writeMp4(clip, duration, seed));
  }
  return { output: { duration, resolution, ...(image !== undefined && { image }) }, usage: { second: duration } };
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

/**
 * One second of H.264 (Constrained Baseline, 24 frames, the first one a key frame) as an Annex B byte stream: parameter
 * sets, then one NAL unit a frame, each after a start code.
 */
async function readClip(resolution: Job["resolution"]) {
  const compressed = await readFile(new URL(`clips/${resolution}.h264.gz`, import.meta.url));
  const stream = await promisify(gunzip)(compressed);
  const units = stream.toString("latin1").split("\0\0\0\x01").slice(1);
  const [sps, pps, ...frames] = units.map((unit) => Buffer.from(unit, "latin1")) as [Buffer, Buffer, ...Buffer[]];
  const [width, height] = resolution.split("x").map(Number) as [number, number];
  return { width, height, sps, pps, frames };
}
