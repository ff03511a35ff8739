/**
 * What replicate and fal have in common: they host models of many providers, each with an input and an output of its own, as
 * jobs that are asked for until they are done. The input goes to the model as it is, `n` and `size` of the images route in
 * the provider's own names; an upload in it goes as a link, or as its bytes if it is small. What an output names as a file is
 * kept; the rest of it goes to the caller. Usage, by task: images `image`; video `second`; speech `character`; transcription
 * `minute`; music, which providers sell by the piece or by begun minutes, `request`. Their own clients write the requests (client.ts), and nothing but that.
 */
import type { Clock } from "#platform/clock";
import { createSafeFetch } from "#platform/safe-fetch";
import { type GenerationCall, type JsonObject, type Provider, UpstreamFailure } from "../provider.ts";
import { parse, whole } from "../wire/answers.ts";
import { runJob } from "../wire/job.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import type { written } from "./client.ts";
import { charactersOf, deliver, type Made } from "./deliver.ts";
import { again } from "./files.ts";
import { type InputRules, inputFor } from "./input.ts";
import { recordedSeconds } from "./seconds.ts";

type Written = ReturnType<typeof written>;

/** The requests of one provider, and what its answers mean. */
export interface Host {
  readonly rules: InputRules;
  submit(model: string, input: JsonObject): Written;
  /** What another worker needs to go on with the job. */
  idOf(model: string, submitted: JsonObject): string | undefined;
  look(id: string): Written;
  isOver(job: JsonObject): boolean | undefined;
  /** Throws if the job failed. `ask` fetches more of it. */
  made(job: JsonObject, id: string, ask: (request: Written) => Promise<JsonObject>): Promise<Made>;
  cancel(id: string): Written;
  /** No work has begun: cancelled in this state, it is not billed. */
  isWaiting(job: JsonObject): boolean;
  /** By what the cancellation answers: work had not begun until then. */
  isUnbilled(cancelled: JsonObject): boolean;
}

/** Providers put the input into their answers, and some models a file. */
const answerLimitBytes = 64 * 1024 * 1024;

export function createHosted(host: Host, provider: ProviderClient, clock: Clock): Provider {
  const safeFetch = createSafeFetch({ clock, trusted: provider.origin });
  const fetching = { provider, safeFetch };
  const noText = () => Promise.reject(new UpstreamFailure("misconfigured", "this kind of upstream makes media alone"));

  const ask = async (request: Written, { log }: GenerationCall, signal: AbortSignal): Promise<JsonObject> =>
    parse(await whole(await provider.send(await request, { signal, log }), answerLimitBytes, signal));

  const run = (call: GenerationCall) => {
    let seconds: Promise<number> | undefined;
    const recorded = () => (seconds ??= recordedSeconds(call));
    return runJob(clock, call, {
      async submit() {
        // Before it costs anything: what could not be counted afterwards.
        if (call.task === "speech") charactersOf(call.input);
        if (call.task === "transcription") await recorded();
        const input = await inputFor(call, host.rules);
        call.disconnected.throwIfAborted();
        return ask(host.submit(call.model, input), call, call.signal);
      },
      idOf: (submitted) => host.idOf(call.model, submitted),
      look: (id, signal) => ask(host.look(id), call, signal),
      isOver: (job) => host.isOver(job),
      async fetch(job, id) {
        const more = (request: Written) => again(fetching, call, () => ask(request, call, call.signal));
        return deliver(fetching, call, await host.made(job, id, more), recorded);
      },
      cancel: async (id, signal) => void (await ask(host.cancel(id), call, signal)),
      withdraw: async (job, id, signal) =>
        host.isWaiting(job) && host.isUnbilled(await ask(host.cancel(id), call, signal)),
    });
  };

  return {
    speaks: ["chat"],
    answer: noText,
    stream: () => ({ [Symbol.asyncIterator]: () => ({ next: noText }) }),
    embed: noText,
    async generate(call) {
      try {
        return await run(call);
      } catch (error) {
        throw inCallersNames(error, call);
      }
    },
    takesLinks: true,
    close: async () => {
      await Promise.all([provider.close(), safeFetch.close()]);
    },
  };
}

const callersNames: Readonly<Record<string, string>> = { num_images: "n", num_outputs: "n", image_size: "size" };

/** A provider's refusal names its own field of the input: the caller of the images route knows it without `input`. */
function inCallersNames(error: unknown, { task, input }: GenerationCall): unknown {
  if (!(error instanceof UpstreamFailure) || error.kind !== "refused" || error.param === undefined) return error;
  const field = error.param.replace(/^input\.?/, "");
  const [first = "", ...others] = field.split(".");
  const theirs = callersNames[first];
  const own = task === "images" && theirs !== undefined && theirs in input && !(first in input);
  const param = own ? [theirs, ...others].join(".") : field;
  const { message, status } = error;
  const shown = task === "images" ? param : param ? `input.${param}` : "input";
  return new UpstreamFailure("refused", message, {
    ...(status !== undefined && { status }),
    ...(shown !== "" && { param: shown }),
  });
}
