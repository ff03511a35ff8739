import type { JsonObject } from "#json";
import { createLogger } from "../../shared/platform/logger.ts";
import { createCounting } from "../../workers/counting/index.ts";
import { createLocal } from "../../workers/providers/local/index.ts";
import { createManualClock } from "./manual-clock.ts";

const log = createLogger("test", "silent");

export const clock = createManualClock();
const provider = createLocal({ clock, counting: createCounting({ clock, log }) });

export interface Completion {
  readonly id: string;
  readonly choices: readonly {
    readonly message: {
      readonly content: string | null;
      readonly tool_calls?: readonly { id: string; type: string; function: { name: string; arguments: string } }[];
    };
    readonly finish_reason: string;
  }[];
  readonly usage: {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
    prompt_tokens_details?: { audio_tokens: number };
  };
}

export interface Chunk {
  readonly choices: readonly {
    readonly index: number;
    readonly delta: {
      role?: string;
      content?: string;
      tool_calls?: { index: number; id?: string; function: { name?: string; arguments: string } }[];
    };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: Completion["usage"];
}

const request = (prompt: unknown, rest: JsonObject) => ({
  model: "chat",
  messages: [{ role: "user", content: prompt }],
  ...rest,
});
const asChat = { format: "chat", model: "chat", headers: {} } as const;
const none = new AbortController().signal;
const undisturbed = { signal: none, reserveMemory: () => {}, log };

export const chat = async (prompt: unknown, rest: JsonObject = {}, signal = none) =>
  (await provider.answer({ ...asChat, body: request(prompt, rest), ...undisturbed, signal })) as unknown as Completion;

export async function* stream(prompt: unknown, rest: JsonObject = {}, signal = none): AsyncGenerator<Chunk> {
  for await (const chunks of provider.stream({ ...asChat, body: request(prompt, rest), ...undisturbed, signal }))
    yield* chunks as unknown as Chunk[];
}

export const embed = async (body: JsonObject) =>
  (await provider.embed({
    model: "embeddings",
    body: { model: "embeddings", ...body },
    ...undisturbed,
  })) as unknown as {
    data: { index: number; embedding: number[] | string }[];
    usage: { prompt_tokens: number; total_tokens: number };
  };

const asJson = (model: string, body: JsonObject) => ({ model, body: { model, ...body }, ...undisturbed });

export const rerank = async (body: JsonObject) =>
  (await provider.rerank?.(asJson("rerank", body))) as unknown as {
    results: { index: number; relevance_score: number }[];
    meta: { billed_units: { search_units: number } };
    usage: { total_tokens: number };
  };

export const moderate = async (body: JsonObject) =>
  (await provider.moderate?.(asJson("moderation", body))) as unknown as {
    results: {
      categories: Record<string, boolean>;
      category_scores: Record<string, number>;
      category_applied_input_types: Record<string, string[]>;
    }[];
  };

export const sayOf = ({ choices }: Completion) => choices[0]?.message.content ?? "";
export const callsOf = ({ choices }: Completion) =>
  (choices[0]?.message.tool_calls ?? []).map(({ function: { name, arguments: given } }) => ({
    name,
    arguments: JSON.parse(given) as JsonObject,
  }));

/** Assembles a stream as a client does. */
export async function assembled(chunks: AsyncIterable<Chunk>) {
  const choices: {
    content: string;
    calls: { id: string; name: string; arguments: string }[];
    finish: string | null;
  }[] = [];
  let usage: Completion["usage"] | undefined;
  for await (const chunk of chunks) {
    usage = chunk.usage ?? usage;
    for (const { index, delta, finish_reason } of chunk.choices) {
      choices[index] ??= { content: "", calls: [], finish: null };
      const choice = choices[index];
      choice.content += delta.content ?? "";
      choice.finish = finish_reason ?? choice.finish;
      for (const call of delta.tool_calls ?? []) {
        choice.calls[call.index] ??= { id: call.id ?? "", name: call.function.name ?? "", arguments: "" };
        const known = choice.calls[call.index];
        if (known) known.arguments += call.function.arguments;
      }
    }
  }
  return { choices, usage };
}
