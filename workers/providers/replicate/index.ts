/**
 * Replicate (https://replicate.com/docs/reference/http): predictions of `owner/name`, whose version the provider chooses, and of
 * `owner/name:version`. The provider stores outputs for an hour.
 */
import type { IncomingHttpHeaders } from "node:http";
import { isObject, type JsonObject } from "#json";
import type { Clock } from "#platform/clock";
import { failureOf, withRetryAfter } from "../http/failures.ts";
import { connectProvider, type ProviderRequest, versioned } from "../http/provider-client.ts";
import { createPredictionApi, type Host } from "../prediction-apis/index.ts";
import type { Provider, UpstreamEndpoint, UpstreamFailure } from "../provider.ts";

export function createReplicate(target: UpstreamEndpoint, { clock }: { clock: Clock }): Provider {
  const { apiKey, concurrency } = target;
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const baseUrl = versioned(target.baseUrl, "v1");
  const client = connectProvider({ baseUrl, concurrency, headers, failureOf: replicateFailure }, clock);

  const host: Host = {
    rules: {
      // Predictions with more than about 6 MB inline are interrupted.
      inlineLimitBytes: 4 * 1024 * 1024,
      privateHosts: /\bapi\.replicate\.com\b/i,
      rename: ({ n, ...input }) => (typeof n === "number" && n > 1 ? { num_outputs: n, ...input } : input),
    },
    submit,
    idOf: (_, { id }) => (typeof id === "string" && /^[a-z0-9]{1,64}$/i.test(id) ? id : undefined),
    poll: (id) => ({ path: `/predictions/${id}` }),
    running: ["starting", "processing", "queued"],
    ended: ["succeeded", "failed", "canceled", "aborted"],
    progressOf: ({ logs }) => (typeof logs === "string" ? lastPercent(logs) : undefined),
    outputOf(prediction) {
      if (prediction.status !== "succeeded") throw predictionFailure(prediction, clock);
      return Promise.resolve({ output: prediction.output, seconds: secondsBilled(prediction) });
    },
    cancel: (id) => ({ method: "POST", path: `/predictions/${id}/cancel` }),
    // A prediction that never started is not charged; one that did is charged for the time until it was canceled
    // (https://replicate.com/docs/topics/predictions/lifecycle, https://replicate.com/docs/topics/billing).
    isWaiting: ({ status }) => status === "starting" || status === "queued",
    isUnbilled: ({ started_at }) => started_at == null,
  };
  return { ...createPredictionApi(host, client, clock), check: (call) => client.probe("/account", call) };
}

function submit(model: string, input: JsonObject): ProviderRequest {
  const [name, version] = model.split(":");
  return version === undefined
    ? { path: `/models/${name}/predictions`, json: { input } }
    : { path: "/predictions", json: { version, input } };
}

/** Logs may be long, and their last lines tell the most. */
const logTailCharacters = 2_000;
/** A line of a progress bar, as Replicate's own clients read it: ` 42%|████▏     | 21/50 [00:03<00:04]`. */
const progressBar = /^\s{0,10}(\d{1,3})%\|/;

function lastPercent(logs: string): number | undefined {
  const lines = logs.slice(-logTailCharacters).split(/[\r\n]/);
  return lines.reduce<number | undefined>((last, line) => {
    const percent = progressBar.exec(line)?.[1];
    return percent === undefined ? last : Number(percent);
  }, undefined);
}

/** The length by which models of video and audio are billed. */
function secondsBilled({ metrics }: JsonObject): number | undefined {
  const { video_output_duration_seconds: video, audio_output_duration_seconds: audio } = isObject(metrics)
    ? metrics
    : {};
  return [video, audio].find((seconds): seconds is number => typeof seconds === "number" && seconds > 0);
}

/** Errors have the shape `{title, detail, status, invalid_fields: [{type, field, description}], retry_after}`. */
function replicateFailure(status: number, headers: IncomingHttpHeaders, body: unknown, clock: Clock): UpstreamFailure {
  const { title, detail, invalid_fields, retry_after } = isObject(body) ? body : {};
  const fields = Array.isArray(invalid_fields) ? invalid_fields.filter(isObject) : [];
  const described = fields.map(({ description }) => description).filter((each) => typeof each === "string");
  const text = described.length > 0 ? described.join("; ") : [detail, title].find((each) => typeof each === "string");
  const message = typeof text === "string" ? text : "";
  // The catalog sets the version, so the caller is not at fault.
  const isModel = typeof title === "string" && /^invalid version/i.test(title);
  const retryAfter = typeof retry_after === "number" ? retry_after : /resets in ~?(\d+)s/i.exec(message)?.[1];
  const error = { message, param: paramOf(fields[0]) };
  return failureOf(isModel ? 404 : status, withRetryAfter(headers, retryAfter), { error }, clock);
}

/** Only the text names a missing field. */
function paramOf({ field, description }: JsonObject = {}): string | undefined {
  if (typeof field !== "string") return undefined;
  const missing = typeof description === "string" ? /^(\w+) is required$/.exec(description)?.[1] : undefined;
  return missing === undefined ? field : `${field}.${missing}`;
}

/**
 * The error texts of failed predictions; the first match counts. Codes of four digits are the platform's
 * (https://replicate.com/docs/reference/error-codes), those of three the models'; the rest are exceptions of models.
 */
const errors: readonly (readonly [text: RegExp, status: number])[] = [
  [/\bE005\b|nsfw|flagged as|safety|content polic|moderat/i, 422],
  [/\bE003\b|high demand|rate limit|too many requests/i, 429],
  // Out of memory: the input is too large.
  [/\bE1001\b/, 422],
  [/\bE\d{4}\b|\bE00[1-4]\b|interrupted|code: PA|please (retry|try again later)|timed? ?out|cuda/i, 503],
  [
    /\bE006\b|invalid|unsupported|not supported|must be|too (long|large|many|short|small)|exceeds|cannot identify/i,
    422,
  ],
  [/(failed|unable|could not) to? ?(download|load|fetch|decode|open|read)/i, 422],
];

/** The text may be the log of the whole prediction. */
const maxErrorCharacters = 2_000;
/** Only the beginning and the end are searched: searching more would block the event loop. */
const searchedCharacters = 16 * 1024;

function withoutQuery(word: string): string {
  const link = word.search(/https?:\/\//);
  const query = link < 0 ? -1 : word.indexOf("?", link);
  return query < 0 ? word : word.slice(0, query);
}

function predictionFailure({ status, error }: JsonObject, clock: Clock): UpstreamFailure {
  const text = typeof error === "string" ? error : "";
  const searched =
    text.length > 2 * searchedCharacters
      ? `${text.slice(0, searchedCharacters)}\n${text.slice(-searchedCharacters)}`
      : text;
  const found = status === "failed" ? errors.find(([pattern]) => pattern.test(searched)) : undefined;
  // Links in the text are signed: the signature must not reach the caller.
  const message = text.slice(0, maxErrorCharacters).replace(/[^\s"']+/g, withoutQuery);
  const ended = `a prediction that is ${String(status)}`;
  const code = found?.[1] ?? 500;
  return failureOf(code, code === 429 ? { "retry-after": "10" } : {}, { error: { message: message || ended } }, clock);
}
