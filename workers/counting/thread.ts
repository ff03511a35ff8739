/**
 * The counting thread: receives the texts and documents of one prompt, answers with the tokens of the texts and the sizes
 * of the documents. Its first message says that it is ready. The ranks (o200k_base, 70 MB in memory) are loaded only here.
 */
import { parentPort } from "node:worker_threads";
import { countTokens, setMergeCacheSize } from "gpt-tokenizer/encoding/o200k_base";
import { measureAudio } from "./audio.ts";
import type { Countable, CountedTokens } from "./index.ts";
import type { Measured, Readable } from "./media.ts";
import { type Budget, measurePdf } from "./pdf.ts";

// Disables the cache so that no prompt stays in memory; 128 KB of code then take 25 ms instead of 17.
setMergeCacheSize(0);

/** Text that looks like a control token counts as text: the caller wrote it. */
const asText = { disallowedSpecial: new Set<string>() };

/** Limits for all documents of a prompt: a part of the thread's time limit, and more text than the longest context. */
const documentsMs = 300;
const inflatedBytes = 32 * 1024 * 1024;

/**
 * Merging is quadratic in the length of a word, and to the tokenizer text without a break is one word: 100 KB of one
 * letter, of emoji or of blanks take 4 s. In pieces of 256 they take 0.1 s and count at most one token more per piece.
 */
const longRun = /\S{256}|\s{256}/gu;

/** Splits the text inside long runs, never inside a surrogate pair. */
function* inPieces(text: string): Generator<string> {
  let from = 0;
  for (const { 0: run, index } of text.matchAll(longRun)) {
    const end = index + run.length;
    yield text.slice(from, end);
    from = end;
  }
  if (from < text.length) yield text.slice(from);
}

async function measure({ type, base64 }: Readable, budget: Budget): Promise<Measured> {
  if (performance.now() > budget.untilMs) return undefined;
  const bytes = Buffer.from(base64, "base64");
  if (type !== "application/pdf") return measureAudio(bytes, type);
  const size = measurePdf(bytes, budget);
  return size.pages > 0 ? size : undefined;
}

async function answer({ texts, documents }: Countable): Promise<void> {
  let tokens = 0;
  for (const text of texts) for (const piece of inPieces(text)) tokens += countTokens(piece, asText);
  const budget = { untilMs: performance.now() + documentsMs, inflatedBytes };
  const measured: Measured[] = [];
  for (const document of documents) measured.push(await measure(document, budget));
  parentPort?.postMessage({ tokens, documents: measured } satisfies CountedTokens);
}

parentPort?.on("message", (prompt: Countable) => void answer(prompt));
parentPort?.postMessage("ready");
