import { z } from "zod";
import { formatUsd, type LedgerEntry, type Money } from "#money";
import { parse } from "../../http/input.ts";
import { found } from "../../http/json-routes.ts";
import type { AccountHandler } from "./handler.ts";
import { visibleKey } from "./own-key.ts";
import { tokensOfCall } from "./requests.ts";

const generationQuery = z.strictObject({ id: z.string().min(1).max(200) });

const apiTypes: readonly (readonly [endpoint: RegExp, type: string])[] = [
  [/completions$|messages$|responses$|generateContent$/i, "completions"],
  [/embed/i, "embeddings"],
  [/rerank$/, "rerank"],
  [/speech$/, "tts"],
  [/transcriptions$|translations$/, "stt"],
];

/** What this service does not know. Clients want the fields. */
const unknown = {
  cache_discount: null,
  app_id: null,
  moderation_latency: null,
  native_finish_reason: null,
  native_tokens_completion_images: null,
  native_tokens_reasoning: null,
  num_media_prompt: null,
  num_input_audio_prompt: null,
  num_media_completion: null,
  num_search_results: null,
  external_user: null,
  router: null,
  provider_responses: null,
};

/** Their amounts are JSON numbers; the exact ones are in `GET /v1/requests/{id}`. */
function renderGeneration({ id, request, costNanoUsd, createdAt }: LedgerEntry) {
  const { input, output, cached } = tokensOfCall(request ?? {});
  const cost = Number(formatUsd(costNanoUsd));
  const { endpoint = "", model = null, upstream = null, status, answerId, attempts } = request ?? {};
  return {
    ...unknown,
    id,
    upstream_id: answerId ?? null,
    streamed: request?.streamed ?? null,
    finish_reason: request?.finishReason ?? null,
    model,
    provider_name: upstream,
    api_type: apiTypes.find(([pattern]) => pattern.test(endpoint))?.[1] ?? null,
    created_at: createdAt.toISOString(),
    total_cost: cost,
    usage: cost,
    upstream_inference_cost: null,
    is_byok: false,
    cancelled: status === "cancelled",
    origin: "",
    latency: request?.firstTokenMs ?? request?.totalMs ?? null,
    generation_time: attempts?.at(-1)?.durationMs ?? null,
    tokens_prompt: input,
    tokens_completion: output,
    native_tokens_prompt: input,
    native_tokens_completion: output,
    native_tokens_cached: cached,
  };
}

export function generationHandlers({ money }: { money: Money }) {
  return {
    get: async (req, _res, caller) => {
      const { id } = parse(generationQuery, req.query);
      const entry = await money.findAnswer(caller.account, id, visibleKey(caller));
      return { data: renderGeneration(found(entry, "request")) };
    },
  } satisfies Record<string, AccountHandler>;
}
