/**
 * Shared by Replicate and fal: they run models of many vendors, each with its own input and output, as jobs that are polled.
 * The input is passed to the model unchanged, except for `n` and `size` of the images route, which get the provider's names;
 * an upload is passed as a link, or as its bytes if it is small. Files that an output names are stored, and the rest of the
 * output is passed to the caller. Usage, by task: images `image`; video `second`; speech `character`; transcription
 * `minute`; music, which providers sell by the piece or by started minutes, `request`.
 */
import type { JsonObject } from "#json";
import type { Clock } from "#platform/clock";
import type { ProviderClient, ProviderRequest } from "../http/provider-client.ts";
import { type JobProtocol, runJob } from "../http/run-job.ts";
import { fieldsIn, providerFileRefusal } from "../http/untrusted-json.ts";
import { type GenerationCall, generatesOnly, type Provider, UpstreamFailure } from "../provider.ts";
import { charactersOf, fetchWithRetry, type JobOutput, recordedSeconds, storeOutput } from "./store-output.ts";

/** One provider: its requests, and how its answers are read. */
export interface Host extends Pick<JobProtocol, "running" | "ended" | "progressOf"> {
  readonly rules: InputRules;
  submit(model: string, input: JsonObject): ProviderRequest;
  /** The id with which another worker can continue the job. */
  idOf(model: string, submitted: JsonObject): string | undefined;
  poll(id: string): ProviderRequest;
  /** Throws if the job failed. `send` makes further requests for the output. */
  outputOf(job: JsonObject, id: string, send: (request: ProviderRequest) => Promise<JsonObject>): Promise<JobOutput>;
  cancel(id: string): ProviderRequest;
  /** Tells whether work is still to begin: a job that is canceled in this state is not billed. */
  isWaiting(job: JsonObject): boolean;
  /** Tells whether the answer to the cancellation confirms that work had not begun. */
  isUnbilled(canceled: JsonObject): boolean;
}

export function createPredictionApi(host: Host, client: ProviderClient, clock: Clock): Provider {
  const noText = generatesOnly("media");

  const run = (call: GenerationCall) => {
    const send = (request: ProviderRequest, signal = call.signal) => client.sendForJson(request, { ...call, signal });
    const cancel = (id: string, signal: AbortSignal) => send(host.cancel(id), signal);
    let seconds: Promise<number> | undefined;
    const recorded = () => (seconds ??= recordedSeconds(call));
    return runJob(clock, call, {
      async submit() {
        // Refuse anything that cannot be counted before it costs money.
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
      ...(host.progressOf && { progressOf: host.progressOf }),
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

interface InputRules {
  /** Limit of the uploads that are sent inside one request, if storage cannot be reached from outside. */
  readonly inlineLimitBytes: number;
  /** Hosts where the operator's key opens stored files, which may be another tenant's. */
  readonly privateHosts: RegExp;
  /** The input with `n` and `size` of the images route under this provider's names. */
  rename(input: JsonObject): JsonObject;
}

const isPrivate = (text: string, privateHosts: RegExp): boolean =>
  (privateHosts.test(text) && hasAddress(text, privateHosts)) || privateHosts.test(URL.parse(text)?.hostname ?? "");

/**
 * Finds an address anywhere in a text: two slashes of either kind, then a host before the next slash, as any URL parser may
 * read it.
 */
function hasAddress(text: string, hosts: RegExp): boolean {
  let at = 0;
  return text.split(/[\s/]/).some((segment) => {
    const before = text.slice(Math.max(0, at - 2), at);
    at += segment.length + 1;
    const run = before + segment;
    const slashes = run.search(/[\\/]{2}/);
    return slashes >= 0 && hosts.test(run.slice(slashes));
  });
}

/** The input for the provider, with each upload as a link or a data URL. */
async function prepareInput({ task, input, uploads }: GenerationCall, rules: InputRules): Promise<JsonObject> {
  const { response_format: _, stream: __, partial_images: ___, ...fields } = input;
  const given = task === "images" ? rules.rename(fields) : input;
  for (const { param, value } of fieldsIn(given, task === "images" ? "" : "input"))
    if (typeof value === "string" && isPrivate(value, rules.privateHosts)) throw providerFileRefusal(param, param);
  const urls = new Map<string, string>();
  let remainingBytes = rules.inlineLimitBytes;
  for (const file of uploads.values()) {
    if (file.link !== undefined) {
      urls.set(file.id, file.link);
      continue;
    }
    const copies = countOf(given, file.id);
    const base64 = await file.base64(Math.floor(remainingBytes / copies), copies);
    urls.set(file.id, `data:${file.mime};base64,${base64}`);
    remainingBytes -= copies * file.bytes;
  }
  return withUrls(given, urls) as JsonObject;
}

function countOf(value: unknown, id: string): number {
  if (typeof value !== "object" || value === null) return value === id ? 1 : 0;
  return Object.values(value).reduce((count: number, each) => count + countOf(each, id), 0);
}

function withUrls(value: unknown, urls: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string") return urls.get(value) ?? value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => withUrls(each, urls));
  return Object.fromEntries(Object.entries(value).map(([field, each]) => [field, withUrls(each, urls)]));
}
