import { sleep } from "#platform/clock";
import type { SafeFetch } from "#platform/safe-fetch";
import { type Generated, type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { broken, parse, whole } from "../wire/answers.ts";
import { runJob } from "../wire/job.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { keepAnswer } from "../wire/store-stream.ts";
import { answerLimitBytes } from "./answer.ts";
import { videoIn } from "./interaction.ts";
import { secondsOf, videoRequest } from "./video-request.ts";

const videoLimitBytes = 512 * 1024 * 1024;
const downloads = 3;
const downloadAgainMs = 2_000;
const underWay: readonly unknown[] = ["queued", "in_progress"];
const ended: readonly unknown[] = [
  "completed",
  "failed",
  "cancelled",
  "incomplete",
  "budget_exceeded",
  "requires_action",
  "requires_continuation",
];

/** https://ai.google.dev/api/interactions-api: an interaction in the background is a job. */
export const video = (provider: ProviderClient, safeFetch: SafeFetch, call: GenerationCall): Promise<Generated> =>
  runJob(provider.clock, call, {
    submit: async () => {
      const answer = await provider.send({ path: "/interactions", json: await videoRequest(call) }, call);
      return parse(await whole(answer, answerLimitBytes, call.signal));
    },
    idOf: ({ id }) => id,
    look: (id, signal) => look(provider, call, id, signal),
    isOver: ({ status }) => (ended.includes(status) ? true : underWay.includes(status) ? false : undefined),
    async fetch(job) {
      const made = videoIn(job, provider.clock);
      await keepVideo(provider, safeFetch, call, made);
      return { output: {}, usage: { second: secondsOf(call.input) } };
    },
    async cancel(id, signal) {
      const quiet = { signal, log: call.log };
      // One that is over cannot be cancelled, but removed.
      await provider.send({ method: "POST", path: `${pathOf(id)}/cancel`, json: {} }, quiet).then(drop, () => {});
      await provider.send({ method: "DELETE", path: pathOf(id) }, quiet).then(drop);
    },
  });

const drop = async ({ body }: Awaited<ReturnType<ProviderClient["send"]>>) => {
  await body.return?.();
};

const pathOf = (id: string) => `/interactions/${encodeURIComponent(id)}`;

async function look(
  provider: ProviderClient,
  { log }: GenerationCall,
  id: string,
  signal: AbortSignal,
): Promise<JsonObject> {
  try {
    const answer = await provider.send({ path: pathOf(id) }, { signal, log });
    return parse(await whole(answer, answerLimitBytes, signal));
  } catch (error) {
    // A job that is gone is a bad request to the provider: no fault of the caller's.
    if (error instanceof UpstreamFailure && error.kind === "refused")
      throw new UpstreamFailure("misconfigured", error.message, { cause: error });
    throw error;
  }
}

/** Of the provider's file store: its path, below the version. */
const storedFile = /\/(files\/[\w-]{1,100}):download$/;

/** The work is done and paid for: a connection that breaks is no reason to lose it. */
async function keepVideo(
  provider: ProviderClient,
  safeFetch: SafeFetch,
  call: GenerationCall,
  { uri, data }: JsonObject,
) {
  if (typeof data === "string") return call.keep(Buffer.from(data, "base64"));
  const url = String(uri);
  const file = storedFile.exec(URL.parse(url)?.pathname ?? "")?.[1];
  const { signal } = call;
  for (let attempt = 1; ; attempt++) {
    try {
      // The key goes to the operator's address, and nowhere that an answer names.
      const answer = await (file === undefined
        ? safeFetch.get({ url, limitBytes: videoLimitBytes, signal }).catch((error: unknown) => broken(error, signal))
        : provider.send({ path: `/${file}:download?alt=media`, accept: "video/*, */*;q=0.5" }, call));
      return await keepAnswer(provider, call, answer);
    } catch (error) {
      if (attempt === downloads || !(error instanceof UpstreamFailure)) throw error;
      call.log.warn({ err: error.message }, "a video's download broke off");
      await sleep(provider.clock, downloadAgainMs, signal);
    }
  }
}
