/**
 * The names of OpenTelemetry's semantic conventions for generative AI, all of them in this file. They are still in
 * development: https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md, read in
 * November 2026.
 */
import type { Task, Usage } from "#catalog";
import type { PaidCall, PaidJobName } from "#jobs";
import { count, type JsonObject, object } from "#json";
import type { Attributes } from "#platform/observability/tracing";
import { completionTokens, promptTokens } from "../conversion/index.ts";

/** Providers that have a name in the conventions; others use their id in the catalog. */
const providerNames: Readonly<Record<string, string>> = {
  gemini: "gcp.gemini",
  mistral: "mistral_ai",
  moonshot: "moonshot_ai",
  xai: "x_ai",
};

/** The conventions have no names for counts, moderations and reranks. */
const operations: Readonly<Record<PaidJobName, string>> = {
  chat: "chat",
  count: "count_tokens",
  embeddings: "embeddings",
  moderation: "moderation",
  rerank: "rerank",
  image: "generate_content",
  media: "generate_content",
};

function operationOf(job: PaidJobName, { format, framing }: PaidCall): string {
  if (job === "chat" && framing === "completions") return "text_completion";
  if (job === "chat" && format === "gemini") return "generate_content";
  return operations[job];
}

const outputTypes: Partial<Record<Task, string>> = { images: "image", speech: "speech", transcription: "text" };

interface InferenceRequest {
  readonly job: PaidJobName;
  readonly payload: PaidCall;
  readonly upstream: string;
  /** The upstream's own name for the model. */
  readonly model: string;
  readonly task: Task | undefined;
  readonly outputCap: number;
  /** The caller's request. */
  readonly request: JsonObject;
}

const number = (value: unknown) => (typeof value === "number" ? value : undefined);

export function inferenceSpan(made: InferenceRequest): { readonly name: string; readonly attributes: Attributes } {
  const { job, payload, upstream, model, task, outputCap, request } = made;
  const operation = operationOf(job, payload);
  const given = { ...request, ...object(request["generationConfig"]) };
  const choices = number(given["n"]) ?? number(given["candidateCount"]);
  return {
    name: `${operation} ${model}`,
    attributes: {
      "gen_ai.operation.name": operation,
      "gen_ai.provider.name": providerNames[upstream] ?? upstream,
      "gen_ai.request.model": model,
      "gen_ai.output.type": task && outputTypes[task],
      "gen_ai.request.stream": payload.stream || undefined,
      "gen_ai.request.max_tokens": outputCap > 0 ? outputCap : undefined,
      "gen_ai.request.temperature": number(given["temperature"]),
      "gen_ai.request.top_p": number(given["top_p"] ?? given["topP"]),
      "gen_ai.request.top_k": number(given["top_k"] ?? given["topK"]),
      "gen_ai.request.seed": number(given["seed"]),
      "gen_ai.request.frequency_penalty": number(given["frequency_penalty"]),
      "gen_ai.request.presence_penalty": number(given["presence_penalty"]),
      "gen_ai.request.choice.count": choices === 1 ? undefined : choices,
    },
  };
}

/** Token counts, if the call has any. */
export function usageAttributes(usage: Usage): Attributes {
  const input = promptTokens(usage);
  const output = completionTokens(usage);
  const counted = (tokens: number) => (tokens > 0 ? tokens : undefined);
  return {
    "gen_ai.usage.input_tokens": counted(input),
    "gen_ai.usage.output_tokens": counted(output),
    "gen_ai.usage.cache_read.input_tokens": counted(count(usage.cached_input)),
    "gen_ai.usage.cache_creation.input_tokens": counted(count(usage.cache_write) + count(usage.cache_write_1h)),
  };
}

/** Facts that the provider reported about its answer. */
interface AnswerFacts {
  readonly id: string | undefined;
  readonly model: string | undefined;
  readonly finishReasons: readonly string[];
  readonly firstChunkMs: number | undefined;
}

export const answerAttributes = ({ id, model, finishReasons, firstChunkMs }: AnswerFacts): Attributes => ({
  "gen_ai.response.id": id,
  "gen_ai.response.model": model,
  "gen_ai.response.finish_reasons": finishReasons.length > 0 ? [...finishReasons] : undefined,
  "gen_ai.response.time_to_first_chunk": firstChunkMs === undefined ? undefined : firstChunkMs / 1_000,
});

/** JSON, because not every backend accepts OTLP's structured attributes. */
export const contentAttributes = (input: readonly object[], output: readonly object[]): Attributes => ({
  "gen_ai.input.messages": JSON.stringify(input),
  "gen_ai.output.messages": JSON.stringify(output),
});
