import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import type { JsonObject } from "#json";
import { type Clock, sleep } from "#platform/clock";
import type { UpstreamCall } from "../provider.ts";
import { parseRequest, triggerOf } from "./request.ts";
import { tokenize } from "./tokens.ts";

const request = z.object({
  model: z.string(),
  query: z.string(),
  documents: z.array(z.string()),
  top_n: z.int().positive(),
  max_tokens_per_doc: z.int().positive().nullish(),
});

/** At most this many tokens of a document are read. */
const contextTokens = 4_096;
/** Cohere counts this way (https://docs.cohere.com/docs/how-does-cohere-pricing-work). */
const chunkTokens = 500;
const searchDocuments = 100;

/** BM25 (Okapi, by Robertson and others, 1994) over the words of the given documents, as numbers from 0 to less than 1. */
export async function rerank(clock: Clock, { body, signal }: UpstreamCall): Promise<JsonObject> {
  const { model, query, documents, top_n, max_tokens_per_doc } = parseRequest(request, body);
  const { delayMs } = triggerOf(query, "query");
  if (delayMs) await sleep(clock, delayMs, signal);
  const queryRead = tokenize(query, contextTokens);
  const queryTokens = queryRead.length;
  const limit = Math.min(contextTokens, max_tokens_per_doc ?? contextTokens);
  const read: ReadonlyMap<string, number>[] = [];
  let tokens = 0;
  let chunks = 0;
  for (const document of documents) {
    const own = tokenize(document, limit);
    tokens += own.length + queryTokens;
    chunks += Math.max(1, Math.ceil((own.length + queryTokens) / chunkTokens));
    read.push(countWords(own.join("")));
    await setImmediate();
    signal.throwIfAborted();
  }
  const results = (await scores([...countWords(queryRead.join("")).keys()], read, signal))
    .map((score, index) => ({ index, relevance_score: score / (score + 1) }))
    .toSorted((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    .slice(0, top_n);
  return {
    model,
    results,
    meta: { billed_units: { search_units: Math.ceil(chunks / searchDocuments) } },
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}

function countWords(text: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{M}\p{N}]{1,64}/gu))
    counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** The usual parameters of BM25: the saturation of repeated words, and the weight of a document's length. */
const saturation = 1.2;
const lengthWeight = 0.75;

async function scores(
  words: readonly string[],
  documents: readonly ReadonlyMap<string, number>[],
  signal: AbortSignal,
): Promise<readonly number[]> {
  const lengths = documents.map((document) => [...document.values()].reduce((sum, count) => sum + count, 0));
  const average = lengths.reduce((sum, length) => sum + length, 0) / documents.length || 1;
  const having = new Map(words.map((word) => [word, 0]));
  for (const document of documents) {
    for (const word of words) if (document.has(word)) having.set(word, (having.get(word) ?? 0) + 1);
    await setImmediate();
    signal.throwIfAborted();
  }
  const weightOf = (count: number) => Math.log(1 + (documents.length - count + 0.5) / (count + 0.5));
  const weights = words.map((word) => weightOf(having.get(word) ?? 0));
  const scored: number[] = [];
  for (const [at, document] of documents.entries()) {
    const penalty = saturation * (1 - lengthWeight + (lengthWeight * (lengths[at] ?? 0)) / average);
    scored.push(
      words.reduce((sum, word, w) => {
        const count = document.get(word) ?? 0;
        return sum + ((weights[w] ?? 0) * count * (saturation + 1)) / (count + penalty);
      }, 0),
    );
    await setImmediate();
    signal.throwIfAborted();
  }
  return scored;
}
