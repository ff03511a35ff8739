/**
 * What replicate and fal have in common: they run models of many vendors, each with its own input and output, as jobs that
 * are polled. The input goes to the model unchanged, but for `n` and `size` of the images route, which get the provider's
 * names; an upload goes as a link, or as its bytes if it is small. Files that an output names are stored, and the rest of it
 * goes to the caller. Usage, by task: images `image`; video `second`; speech `character`; transcription `minute`; music, which
 * providers sell by the piece or by started minutes, `request`.
 */
import type { Clock } from "#platform/clock";
import { type GenerationCall, generatesOnly, type JsonObject, type Provider, UpstreamFailure } from "../provider.ts";
import type { ProviderClient, ProviderRequest } from "../wire/provider-client.ts";
import { type JobProtocol, runJob } from "../wire/run-job.ts";
import { type InputRules, prepareInput } from "./request.ts";
import { charactersOf, fetchWithRetry, type JobOutput, recordedSeconds, storeOutput } from "./store-output.ts";

/** One provider: its requests, and how its answers are read. */
export interface Host extends Pick<JobProtocol, "running" | "ended"> {
  readonly rules: InputRules;
  submit(model: string, input: JsonObject): ProviderRequest;
  /** What another worker needs to continue the job. */
  idOf(model: string, submitted: JsonObject): string | undefined;
  poll(id: string): ProviderRequest;
  /** Throws if the job failed. `send` fetches more of it. */
  outputOf(job: JsonObject, id: string, send: (request: ProviderRequest) => Promise<JsonObject>): Promise<JobOutput>;
  cancel(id: string): ProviderRequest;
  /** Work has not begun: a job that is canceled in this state is not billed. */
  isWaiting(job: JsonObject): boolean;
  /** Whether the answer to the cancellation says that work had still not begun. */
  isUnbilled(canceled: JsonObject): boolean;
}

export function createHosted(host: Host, client: ProviderClient, clock: Clock): Provider {
  const noText = generatesOnly("media");

  const run = (call: GenerationCall) => {
    const send = (request: ProviderRequest, signal = call.signal) =>
      client.sendForJson(request, { signal, log: call.log, span: call.span });
    const cancel = (id: string, signal: AbortSignal) => send(host.cancel(id), signal);
    let seconds: Promise<number> | undefined;
    const recorded = () => (seconds ??= recordedSeconds(call));
    return runJob(clock, call, {
      async submit() {
        // What cannot be counted must be refused before it costs anything.
        if (call.task === "speech") charactersOf(call.input);
        if (call.task === "transcription") await recorded();
        const input = await prepareInput(call, host.rules);
        call.disconnected.throwIfAborted();
        return send(host.submit(call.model, input));
      },
      idOf: (submitted) => host.idOf(call.model, submitted),
      poll: (id, signal) => send(host.poll(id), signal),
      running: host.running,
      ended: host.ended,
      async collect(job, id) {
        const output = await host.outputOf(job, id, (request) => fetchWithRetry(client, call, () => send(request)));
        return storeOutput(client, call, output, recorded);
      },
      cancel: async (id, signal) => void (await cancel(id, signal)),
      cancelUnbilled: async (job, id, signal) => host.isWaiting(job) && host.isUnbilled(await cancel(id, signal)),
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
    close: () => client.close(),
  };
}

const callersNames: Readonly<Record<string, string>> = { num_images: "n", num_outputs: "n", image_size: "size" };

/** A provider's refusal names its own field of the input. Callers of the images route know it without `input`. */
function inCallersNames(error: unknown, { task, input }: GenerationCall): unknown {
  if (!(error instanceof UpstreamFailure) || error.kind !== "refused" || error.param === undefined) return error;
  const param = error.param.replace(/^input\.?/, "");
  if (task !== "images") return error.withParam(param ? `input.${param}` : "input");
  const [first = "", ...others] = param.split(".");
  const name = callersNames[first];
  const isRenamed = name !== undefined && name in input && !(first in input);
  return error.withParam((isRenamed ? [name, ...others].join(".") : param) || undefined);
}
