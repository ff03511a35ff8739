import { sleep } from "#platform/clock";
import { type Generated, type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { parse, pick, whole } from "../wire/answers.ts";
import { failureInside } from "../wire/failures.ts";
import { runJob } from "../wire/job.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { keepAnswer } from "../wire/store-stream.ts";
import { formOf } from "./form.ts";

const answerLimitBytes = 1024 * 1024;
/** As the provider documents it for pictures. */
const referenceLimitBytes = 50 * 1024 * 1024;
const downloads = 3;
const downloadAgainMs = 2_000;
const underWay: readonly unknown[] = ["queued", "in_progress"];
const ended: readonly unknown[] = ["completed", "failed", "cancelled", "expired"];
const told = ["created_at", "completed_at", "seconds", "size"];

/** A job at the provider. What nobody will ask for any more is removed there. */
export const video = (provider: ProviderClient, call: GenerationCall): Promise<Generated> =>
  runJob(provider.clock, call, {
    submit: () => submit(provider, call),
    idOf: ({ id }) => id,
    look: (id, signal) => look(provider, call, id, signal),
    isOver: ({ status }) => (ended.includes(status) ? true : underWay.includes(status) ? false : undefined),
    async fetch(job, id) {
      if (job.status !== "completed") throw failureInside(job, provider.clock);
      const second = secondsOf(job, call.input);
      await download(provider, call, id);
      return { output: pick(job, told), usage: { second } };
    },
    async cancel(id, signal) {
      const answer = await provider.send({ method: "DELETE", path: pathOf(id) }, { signal, log: call.log });
      await answer.body.return?.();
    },
  });

async function submit(provider: ProviderClient, call: GenerationCall): Promise<JsonObject> {
  const { duration, seconds = duration, resolution, size = resolution, ...others } = call.input;
  const { image, input_reference = image, ...fields } = others;
  // The provider takes the number as text alone.
  const text = typeof seconds === "number" ? String(seconds) : seconds;
  const body = { ...fields, seconds: text, size, input_reference, model: call.model };
  const ask =
    call.uploads.size === 0 ? { json: body } : { form: await formOf(body, call.uploads, () => referenceLimitBytes) };
  const answer = await provider.send({ path: "/videos", ...ask }, call);
  return parse(await whole(answer, answerLimitBytes, call.signal));
}

const pathOf = (id: string) => `/videos/${encodeURIComponent(id)}`;

async function look(
  provider: ProviderClient,
  { log }: GenerationCall,
  id: string,
  signal: AbortSignal,
): Promise<JsonObject> {
  const answer = await provider.send({ path: pathOf(id) }, { signal, log });
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
async function download(provider: ProviderClient, call: GenerationCall, id: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await provider.send({ path: `${pathOf(id)}/content`, accept: "video/*, */*;q=0.5" }, call);
      return await keepAnswer(provider, call, answer);
    } catch (error) {
      if (attempt === downloads || !(error instanceof UpstreamFailure)) throw error;
      call.log.warn({ err: error.message }, "a video's download broke off");
      await sleep(provider.clock, downloadAgainMs, call.signal);
    }
  }
}
