import { type Generated, type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { failureInside } from "../wire/failures.ts";
import { pick } from "../wire/json.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { retryDownload, storeAnswer } from "../wire/read-answer.ts";
import { runJob } from "../wire/run-job.ts";
import { formOf } from "./form.ts";

const limitBytes = 1024 * 1024;
/** The provider's documented limit for images. */
const referenceLimitBytes = 50 * 1024 * 1024;
const outputFields = ["created_at", "completed_at", "seconds", "size"];

export const video = (client: ProviderClient, call: GenerationCall): Promise<Generated> =>
  runJob(client.clock, call, {
    submit: async () => client.sendForJson({ path: "/videos", ...(await contentFor(call)) }, call, { limitBytes }),
    idOf: ({ id }) => id,
    poll: (id, signal) => client.sendForJson({ path: pathOf(id) }, { signal, log: call.log }, { limitBytes }),
    running: ["queued", "in_progress"],
    ended: ["completed", "failed", "cancelled", "expired"],
    async collect(job, id) {
      if (job.status !== "completed") throw failureInside(job, client.clock);
      const second = secondsOf(job, call.input);
      await retryDownload(client, call, async () => {
        const request = { path: `${pathOf(id)}/content`, accept: "video/*, */*;q=0.5" };
        await storeAnswer(client, call, await client.send(request, call));
      });
      return { output: pick(job, outputFields), usage: { second } };
    },
    async cancel(id, signal) {
      const answer = await client.send({ method: "DELETE", path: pathOf(id) }, { signal, log: call.log });
      await answer.body.return?.();
    },
  });

const pathOf = (id: string) => `/videos/${encodeURIComponent(id)}`;

async function contentFor({ input, uploads, model }: GenerationCall) {
  const {
    duration,
    seconds = duration,
    resolution,
    size = resolution,
    image,
    input_reference = image,
    ...fields
  } = input;
  // The provider takes the number only as text.
  const text = typeof seconds === "number" ? String(seconds) : seconds;
  const json = { ...fields, seconds: text, size, input_reference, model };
  return uploads.size === 0 ? { json } : { form: await formOf(json, uploads, () => referenceLimitBytes) };
}

/** The delivered length, but never more than requested. */
function secondsOf(job: JsonObject, input: JsonObject): number {
  const seconds = [job.seconds, input.seconds ?? input.duration].map(Number).filter((each) => each > 0);
  if (seconds.length > 0) return Math.min(...seconds);
  throw new UpstreamFailure("unavailable", "a video of unknown length");
}
