import { z } from "zod";
import { tokensOf } from "#catalog";
import { jobIdOf } from "#detached-calls";
import { errorKinds, isErrorCode } from "#errors";
import type { Caller } from "#keys";
import { attemptOutcomes, formatUsd, type LedgerEntry, requestStatuses } from "#money";
import type { Refusal } from "#refusals";
import { fields, orNull, tag, unixSeconds, usd } from "../../http/fields.ts";
import { label, timeSpan } from "../../http/input.ts";
import { defaultLimit, found, listOf, pageOfCalls, pageQuery, text } from "../../http/page.ts";
import { fileFields, shownFile } from "../file-object.ts";
import { attemptCredential, ownKeyFields, ownKeyOf, shownAttempt } from "../own-key-fields.ts";
import { errorAdvice } from "./error-advice.ts";
import { askedKey, visibleKey } from "./own-key.ts";
import { route } from "./route.ts";

const milliseconds = orNull(z.number());
const streamed = orNull(z.boolean()).describe("Null if no worker took the call");
const finishReason = orNull(z.string()).describe(
  "Why the model stopped: `stop`, `length`, `tool_calls`, `content_filter` or `error`; null if it did not",
);
const status = z.enum(requestStatuses);
const requestFields = {
  id: z.string(),
  object: tag("request"),
  key: orNull(z.string()),
  endpoint: orNull(z.string()),
  model: orNull(z.string()),
  status,
  error: orNull(z.string()).describe("The error code of the response"),
  cost_usd: usd,
  refunded: z.boolean().describe("The cost was refunded to the balance"),
  ...ownKeyFields,
  session_id: orNull(z.string()).describe("The caller's `session_id` or `x-session-id`"),
  user: orNull(z.string()).describe("The caller's `user`, or `metadata.user_id` of Messages"),
  tags: z.array(z.string()).describe("The tags of `x-xm-tags`"),
  batch: orNull(z.string()).describe("The id of the batch whose line it was"),
  usage: z.record(z.string(), z.number()).describe("Counts by price key; `reasoning` is a part of `output`"),
  estimated: z.boolean().describe("The usage is an estimate, because the provider reported none"),
  streamed,
  finish_reason: finishReason,
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int(),
  saved_usd: usd.describe(
    "What the prompt cache took off the cost, by the prices of then; negative if its writes cost more than its reads saved",
  ),
  created_at: unixSeconds.describe("When the call ended"),
  queue_ms: milliseconds,
  first_token_ms: milliseconds,
  total_ms: milliseconds,
};
const requestObject = fields(requestFields).meta({ id: "Request" });

const attempt = fields({
  upstream: orNull(z.string()),
  ...attemptCredential,
  model: z.string().optional(),
  started_ms: milliseconds,
  duration_ms: milliseconds,
  outcome: z.enum(attemptOutcomes),
  status: z.int().optional(),
  code: z.string().optional(),
});
const requestDetail = fields({
  ...requestFields,
  status: z
    .enum([...requestStatuses, "refused"])
    .describe("`refused`: the request got an error before it became a call; available for 24 hours, but not in lists"),
  http_status: orNull(z.int()).describe("HTTP status of the error response"),
  error_message: orNull(z.string()).describe(
    "The message of the error response, of which the first 1,000 characters are kept for 24 hours; null for lines of batches, whose files have it",
  ),
  error_advice: orNull(z.string()).describe("What to do about the error"),
  job: orNull(z.string()).describe("The id of the job that it was, while its result is kept"),
  attempts: z.array(attempt),
  files: z.array(fields(fileFields)).describe("The files that it made and that have not expired"),
}).meta({ id: "RequestDetail" });

/** Fields that OpenRouter's clients expect, and that this service does not know. */
const unknown = [
  "app_id",
  "moderation_latency",
  "native_finish_reason",
  "native_tokens_completion_images",
  "native_tokens_reasoning",
  "num_media_prompt",
  "num_input_audio_prompt",
  "num_media_completion",
  "num_search_results",
  "external_user",
  "router",
  "provider_responses",
];
const nothing = orNull(z.null());
const generation = fields({
  id: z.string(),
  upstream_id: orNull(z.string()).describe("The id of the response, if the provider assigned it"),
  model: orNull(z.string()),
  provider_name: orNull(z.string()),
  api_type: orNull(z.string()),
  streamed,
  finish_reason: finishReason,
  created_at: z.string(),
  total_cost: z.number(),
  usage: z.number(),
  upstream_inference_cost: nothing,
  cache_discount: orNull(z.number()),
  is_byok: z.boolean(),
  cancelled: z.boolean(),
  origin: z.string(),
  latency: milliseconds,
  generation_time: milliseconds,
  tokens_prompt: z.int(),
  tokens_completion: z.int(),
  native_tokens_prompt: z.int(),
  native_tokens_completion: z.int(),
  native_tokens_cached: z.int(),
  ...Object.fromEntries(unknown.map((field) => [field, nothing])),
}).meta({ id: "Generation" });

type Call = Pick<LedgerEntry, "id" | "request" | "costNanoUsd" | "createdAt">;

const callOf = ({ request, ...entry }: Call, refunded: boolean) => ({
  ...entry,
  ...tokensOf(request?.usage ?? {}),
  status: "failed" as const,
  usage: {},
  estimated: false,
  ...request,
  ...ownKeyOf(request, entry.costNanoUsd),
  savedNanoUsd: request?.savedNanoUsd ?? 0n,
  tags: request?.tags ?? [],
  refunded,
});

/** A refused request was never a call: nothing ran, and nothing was held. */
const refusalOf = (refusal: Refusal) => ({
  ...callOf({ ...refusal, id: refusal.requestId, costNanoUsd: 0n }, false),
  key: refusal.key,
  endpoint: refusal.endpoint,
  ...errorOf(refusal.code, refusal),
  status: "refused" as const,
  attempts: [],
  files: [],
});

/** The error of a request, with what is kept of the response. */
function errorOf(code: string | undefined, answered: Pick<Refusal, "message"> | undefined) {
  const known = code !== undefined && isErrorCode(code) ? code : undefined;
  return {
    error: code,
    errorMessage: answered?.message,
    errorAdvice: known && errorAdvice[known],
    httpStatus: known && errorKinds[known].status,
  };
}

const apiTypes: readonly (readonly [endpoint: RegExp, type: string])[] = [
  [/completions$|messages$|responses$|generateContent$/i, "completions"],
  [/embed/i, "embeddings"],
  [/rerank$/, "rerank"],
  [/speech$/, "tts"],
  [/transcriptions$|translations$/, "stt"],
];

function generationOf({ id, request, costNanoUsd, createdAt }: LedgerEntry) {
  const { inputTokens, outputTokens, cachedTokens } = tokensOf(request?.usage ?? {});
  const cost = Number(formatUsd(costNanoUsd));
  return {
    id,
    upstreamId: request?.answerId,
    model: request?.model,
    providerName: request?.upstream,
    apiType: apiTypes.find(([pattern]) => pattern.test(request?.endpoint ?? ""))?.[1],
    streamed: request?.streamed,
    finishReason: request?.finishReason,
    createdAt: createdAt.toISOString(),
    totalCost: cost,
    usage: cost,
    cacheDiscount: request?.savedNanoUsd === undefined ? undefined : Number(formatUsd(request.savedNanoUsd)),
    isByok: request?.byok !== undefined,
    cancelled: request?.status === "cancelled",
    origin: "",
    latency: request?.firstTokenMs ?? request?.totalMs,
    generationTime: request?.attempts?.at(-1)?.durationMs,
    tokensPrompt: inputTokens,
    tokensCompletion: outputTokens,
    nativeTokensPrompt: inputTokens,
    nativeTokensCompletion: outputTokens,
    nativeTokensCached: cachedTokens,
  };
}

/** A key without `manage` sees its own calls only. */
const isVisible = (caller: Caller, key: string | null | undefined) => [undefined, key].includes(visibleKey(caller));

export const requestRoutes = [
  route({
    method: "get",
    path: "/v1/requests",
    operationId: "listRequests",
    summary: "Calls that ended, newest first, without prompts and responses",
    description:
      "Lists the calls of the key itself or, with the scope `manage`, of the whole account. Running calls are not included. A page may have fewer calls than `limit`, or none, although `has_more` is true, because each page compares a bounded number of calls with the filters. Continue with `next`.",
    query: {
      status: status.optional(),
      model: text.optional(),
      endpoint: text.optional().meta({ example: "/v1/chat/completions" }),
      key: text.optional(),
      session_id: label.optional(),
      user: label.optional(),
      tag: label.optional().describe("One of the tags"),
      provider_key: text.optional().describe("The id of a provider key of the account"),
      from: timeSpan.from.describe("Ended at this time or later, in unix seconds"),
      to: timeSpan.to.describe("Ended before this time, in unix seconds"),
      ...pageQuery,
    },
    answers: { 200: "The calls" },
    answer: listOf(requestObject),
    // The key of the filter may be another key (403), or unknown (404).
    errors: [403, 404],
    async handle({ keys, money }, { who: caller, query: { key, limit = defaultLimit, ...query } }) {
      const own = { account: caller.account, key: await askedKey(keys, caller, key) };
      const page = await money.findCalls({ ...query, limit, ...own });
      const refunded = await money.refundedAmong(page.calls);
      return pageOfCalls(page, (entry) => callOf(entry, refunded.has(entry)));
    },
  }),
  route({
    method: "get",
    path: "/v1/requests/{id}",
    operationId: "getRequest",
    summary: "One call, with its attempts at upstreams, or a refused request",
    params: { id: z.string().describe("The id of the request or of the response").meta({ example: "req_..." }) },
    answers: { 200: "The call" },
    answer: requestDetail,
    async handle({ money, refusals, files, detachedCalls, publicUrl }, { who: caller, params: { id } }) {
      const { account } = caller;
      const call = await money.findAnswer(account, id, visibleKey(caller));
      const { status, error, totalMs = 0, attempts = [] } = call?.request ?? {};
      // A call that succeeded has no error.
      const answered = status === "succeeded" ? undefined : await refusals.find(account, call?.id ?? id);
      if (!call) return refusalOf(found(answered && isVisible(caller, answered.key) ? answered : undefined, "request"));
      const span = { from: new Date(call.createdAt.getTime() - totalMs), to: call.createdAt };
      const [refunded, made, job] = await Promise.all([
        money.refundedAmong([call]),
        files.generated.madeBy(account, call.id, span),
        detachedCalls.find(account, call.id),
      ]);
      return {
        ...callOf(call, refunded.has(call)),
        ...errorOf(error, [job?.error, answered].find((each) => each?.code === error) ?? undefined),
        job: job && jobIdOf(job.requestId),
        attempts: attempts.map(shownAttempt),
        files: made.map((file) => shownFile(file, publicUrl())),
      };
    },
  }),
  route({
    method: "get",
    path: "/v1/generation",
    operationId: "getGeneration",
    summary: "One call, with OpenRouter's field names",
    description: "Amounts are JSON numbers here; the exact ones are in `GET /v1/requests/{id}`.",
    query: { id: text.describe("The id of the request or of the response").meta({ example: "req_..." }) },
    answers: { 200: "The call" },
    answer: z.object({ data: generation }),
    errors: [404],
    async handle({ money }, { who: caller, query: { id } }) {
      const entry = await money.findAnswer(caller.account, id, visibleKey(caller));
      return { data: generationOf(found(entry, "request")) };
    },
  }),
];
