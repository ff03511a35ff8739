import { z } from "zod";
import { type Clock, sleep } from "#platform/clock";
import { type Generated, type GenerationCall, UpstreamFailure } from "../../provider.ts";
import { parseRequest } from "../request.ts";
import { mediaTriggerOf } from "../triggers.ts";
import { encodeFilm } from "./film.ts";
import { seedOf } from "./seed.ts";
import { seedBytes, seeImage } from "./uploads.ts";

const leastPixels = 64;
const mostPixels = 1920;
const message = `must be WIDTHxHEIGHT, each even and ${leastPixels} to ${mostPixels}`;
const fits = (side: number) => side >= leastPixels && side <= mostPixels && side % 2 === 0;

const input = z.object({
  prompt: z.string().min(1),
  duration: z.int().min(1).max(20),
  resolution: z
    .string()
    .regex(/^\d{2,4}x\d{2,4}$/, message)
    .refine((size) => size.split("x").map(Number).every(fits), message),
  image: z.string().nullish(),
});

/** All that is needed to go on with it in another process. */
const job = z.object({
  seed: z.int().min(0),
  width: z.int().refine(fits),
  height: z.int().refine(fits),
  /** Seconds that are delivered. */
  duration: z.int().min(0).max(20),
  /** Unix milliseconds. */
  doneAt: z.int(),
  /** What the image was that it began from. */
  image: z.string().optional(),
});

type Job = z.infer<typeof job>;

/** In two steps, as providers do it: a job is submitted, and fetched when it is done. */
export async function makeVideo(call: GenerationCall, clock: Clock): Promise<Generated> {
  const { signal } = call;
  const { doneAt, image, ...film } = call.job === undefined ? await submit(call, clock) : readJob(call.job);
  const waitMs = doneAt - clock.now();
  if (waitMs > 0) await sleep(clock, waitMs, signal);
  if (film.duration > 0) {
    const mp4 = await encodeFilm(film, signal);
    signal.throwIfAborted();
    await call.keep(mp4);
  }
  const { width, height, duration } = film;
  return {
    output: { duration, resolution: `${width}x${height}`, ...(image !== undefined && { image }) },
    usage: { second: duration },
  };
}

async function submit(call: GenerationCall, clock: Clock): Promise<Job> {
  const { prompt, duration, resolution, image } = parseRequest(input, call.input);
  const { delayMs = 0, deliver = duration } = mediaTriggerOf(prompt, "prompt");
  const [width, height] = resolution.split("x").map(Number) as [number, number];
  const seen = image ? await seeImage(call, image, "image") : undefined;
  const submitted: Job = {
    seed: seen ? seedOf(prompt, seen.description, seen.bytes.subarray(0, seedBytes)) : seedOf(prompt),
    width,
    height,
    duration: Math.min(duration, deliver),
    doneAt: clock.now() + delayMs,
    ...(seen && { image: seen.description }),
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
