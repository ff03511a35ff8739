import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { z } from "zod";
import { type Clock, sleep } from "#platform/clock";
import { type Generated, type GenerationCall, UpstreamFailure } from "../provider.ts";
import { hashOf, readImage, uint32 } from "./inputs.ts";
import { parseRequest, triggerOf } from "./request.ts";

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

/** One second of video. */
interface Clip {
  readonly width: number;
  readonly height: number;
  readonly sps: Buffer;
  readonly pps: Buffer;
  /** NAL units in the order they are shown, of which the first is a key frame. */
  readonly frames: readonly Buffer[];
}

/** The content of a box. Numbers have 32 bits. */
type Part = number | string | Buffer;

const bytesOf = (part: Part) =>
  typeof part === "string" ? Buffer.from(part, "latin1") : typeof part === "number" ? uint32(part) : part;

function box(type: string, ...parts: readonly Part[]): Buffer {
  const content = Buffer.concat(parts.map(bytesOf));
  return Buffer.concat([uint32(8 + content.length), bytesOf(type), content]);
}

const pair = (first: number, second: number) => ((first << 16) | second) >>> 0;
/** 16.16 fixed point. */
const one = 0x0001_0000;
const matrix = [one, 0, 0, 0, one, 0, 0, 0, 0x4000_0000];
const millisecond = 1000;
/** How long each frame is, in parts of the track's time scale. */
const frameTicks = 512;

/** The frame tables come before the frames, so that a player can start while the file loads. ISO/IEC 14496-12 and -15. */
function writeMp4(clip: Clip, seconds: number, seed: number): Buffer {
  const type = box("ftyp", "isom", 0x200, "isomiso2avc1mp41");
  const frames = Array.from({ length: seconds }, () => clip.frames).flat();
  const offset = type.length + movie(clip, frames, seed, 0).length + 8;
  return Buffer.concat([
    type,
    movie(clip, frames, seed, offset),
    box("mdat", ...frames.flatMap((nal) => [nal.length, nal])),
  ]);
}

function movie(clip: Clip, frames: readonly Buffer[], seed: number, offset: number): Buffer {
  const { width, height } = clip;
  const framesPerSecond = clip.frames.length;
  const seconds = frames.length / framesPerSecond;
  const keyFrames = Array.from({ length: seconds }, (_, second) => second * framesPerSecond + 1);
  const duration = seconds * millisecond;
  return box(
    "moov",
    box("mvhd", 0, 0, 0, millisecond, duration, one, 0x0100_0000, 0, 0, ...matrix, 0, 0, 0, 0, 0, 0, 2),
    box(
      "trak",
      box("tkhd", 3, 0, 0, 1, 0, duration, 0, 0, 0, 0, ...matrix, width * one, height * one),
      box(
        "mdia",
        box("mdhd", 0, 0, 0, framesPerSecond * frameTicks, frames.length * frameTicks, pair(0x55c4, 0)),
        box("hdlr", 0, 0, "vide", 0, 0, 0, "Video\0"),
        box(
          "minf",
          box("vmhd", 1, 0, 0),
          box("dinf", box("dref", 0, 1, box("url ", 1))),
          box(
            "stbl",
            box("stsd", 0, 1, sampleEntry(clip)),
            box("stts", 0, 1, frames.length, frameTicks),
            box("stss", 0, keyFrames.length, ...keyFrames),
            box("stsc", 0, 1, 1, frames.length, 1),
            box("stsz", 0, 0, frames.length, ...frames.map((nal) => nal.length + 4)),
            box("stco", 0, 1, offset),
          ),
        ),
      ),
    ),
    // Players skip it: it tells videos of different prompts apart.
    box("free", seed),
  );
}

function sampleEntry({ width, height, sps, pps }: Clip): Buffer {
  const perInch = 72 * one;
  const fields = [0, 1, 0, 0, 0, 0, pair(width, height), perInch, perInch, 0, pair(1, 0)];
  return box(
    "avc1",
    ...fields,
    Buffer.alloc(30),
    pair(24, 0xffff),
    avcConfiguration(sps, pps),
    box("pasp", 1, 1),
    box("colr", "nclx", pair(1, 1), Buffer.from([0, 1, 0])),
  );
}

/** Lengths are written in 4 bytes before each NAL unit. */
function avcConfiguration(sps: Buffer, pps: Buffer): Buffer {
  const size = (length: number) => Buffer.from([length >> 8, length & 0xff]);
  return box(
    "avcC",
    Buffer.from([1]),
    sps.subarray(1, 4),
    Buffer.from([0xfc | 3, 0xe0 | 1]),
    size(sps.length),
    sps,
    Buffer.from([1]),
    size(pps.length),
    pps,
  );
}
