import { sleep } from "#platform/clock";
import { Aborted } from "../../running.ts";
import { type Generated, type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { parse, pick, whole } from "./answers.ts";
import { failureInside } from "./failures.ts";
import { formOf } from "./form.ts";
import { keepAnswer } from "./keep-stream.ts";
import type { Maker } from "./maker.ts";
import { finished, within } from "./polling.ts";

const answerLimitBytes = 1024 * 1024;
/** As the maker documents it for pictures. */
const referenceLimitBytes = 50 * 1024 * 1024;
const downloads = 3;
const downloadAgainMs = 2_000;
const cancelMs = 5_000;
const told = ["created_at", "completed_at", "seconds", "size"];

/**
 * A job at the maker: submitted once, then asked for until it is done, by another delivery of the call if need be. What
 * nobody will ask for any more is removed there.
 */
export async function video(maker: Maker, call: GenerationCall): Promise<Generated> {
  const submitted = call.job === undefined ? await submit(maker, call) : undefined;
  const id = call.job ?? idOf(submitted);
  try {
    if (submitted) await call.remember(id);
    const job = await finished(maker, call, submitted, (signal) => look(maker, call, id, signal));
    if (job.status !== "completed") throw failureInside(job, maker.clock);
    const second = secondsOf(job, call.input);
    await download(maker, call, id);
    return { output: pick(job, told), usage: { second } };
  } catch (error) {
    if (!goesOn(call.signal)) cancel(maker, call, id);
    throw error;
  }
}

async function submit(maker: Maker, call: GenerationCall): Promise<JsonObject> {
  const { duration, seconds = duration, resolution, size = resolution, ...others } = call.input;
  const { image, input_reference = image, ...fields } = others;
  // The maker takes the number as text alone.
  const text = typeof seconds === "number" ? String(seconds) : seconds;
  const body = { ...fields, seconds: text, size, input_reference, model: call.model };
  const ask =
    call.uploads.size === 0 ? { json: body } : { form: await formOf(body, call.uploads, () => referenceLimitBytes) };
  const answer = await maker.send({ path: "/videos", ...ask }, call);
  return parse(await whole(answer, answerLimitBytes, call.signal));
}

function idOf(job: JsonObject = {}): string {
  const { id } = job;
  if (typeof id === "string" && id !== "" && id.length <= 1_000) return id;
  throw new UpstreamFailure("unavailable", "a video without an id");
}

const pathOf = (id: string) => `/videos/${encodeURIComponent(id)}`;

async function look(maker: Maker, { log }: GenerationCall, id: string, signal: AbortSignal): Promise<JsonObject> {
  const answer = await maker.send({ path: pathOf(id) }, { signal, log });
  return parse(await whole(answer, answerLimitBytes, signal));
}

/** What was made, but nothing that was not asked for. */
function secondsOf(job: JsonObject, input: JsonObject): number {
  const [made, asked] = [job.seconds, input.seconds ?? input.duration].map((seconds) => Number(seconds ?? Number.NaN));
  const seconds = [made, asked].filter((each): each is number => each !== undefined && each > 0);
  if (seconds.length > 0) return Math.min(...seconds);
  throw new UpstreamFailure("unavailable", "a video whose length is not told");
}

/** The work is done and paid for: a connection that breaks is no reason to lose it. */
async function download(maker: Maker, call: GenerationCall, id: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await maker.send({ path: `${pathOf(id)}/content`, accept: "video/*, */*;q=0.5" }, call);
      return await keepAnswer(maker, call, answer);
    } catch (error) {
      if (attempt === downloads || !(error instanceof UpstreamFailure)) throw error;
      call.log.warn({ err: error.message }, "a video's download broke off");
      await sleep(maker.clock, downloadAgainMs, call.signal);
    }
  }
}

/** Another worker gets the call, and goes on with the job. */
const goesOn = ({ reason }: AbortSignal): boolean =>
  reason instanceof Aborted && (reason.cause === "lost" || reason.cause === "shutdown");

/** As far as the maker lets one. Nobody waits for it. */
function cancel(maker: Maker, { log }: GenerationCall, id: string): void {
  within(maker.clock, cancelMs, undefined, async (signal) => {
    const answer = await maker.send({ method: "DELETE", path: pathOf(id) }, { signal, log });
    await answer.body.return?.();
  }).catch((error: Error) => log.debug({ err: error.message }, "a video that nobody waits for stays at the maker"));
}
