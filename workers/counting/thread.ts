/**
 * The worker thread that counts: takes the texts and documents of one prompt, answers with the tokens of the texts and the
 * sizes of the documents. Its first message says that it is ready. Only this file loads the o200k_base ranks (70 MB).
 */
import { parentPort } from "node:worker_threads";
import { countTokens, setMergeCacheSize } from "gpt-tokenizer/encoding/o200k_base";
import { measurePdf } from "./pdf.ts";
import type { Countable, Counted } from "./tokenizer.ts";

// A cache would keep callers' words in memory. Without it 128 KB of code take 25 ms instead of 17.
setMergeCacheSize(0);

/** Text that looks like a control token is text: the caller wrote it. */
const asText = { disallowedSpecial: new Set<string>() };

/** Limits for all documents of a prompt: a part of the thread's time, and more text than the longest context takes. */
const maxDocumentsMs = 300;
const maxInflatedBytes = 32 * 1024 * 1024;

/**
 * Merging is quadratic in the length of a word, and to a tokenizer anything without a break is one word: 100 KB of one
 * letter, emoji or blanks take 4 s. In pieces of 256 they take 0.1 s, and count at most a token more for each piece.
 */
const longRun = /\S{256}|\s{256}/gu;

function* splitLongRuns(text: string): Generator<string> {
  let from = 0;
  for (const { 0: run, index } of text.matchAll(longRun)) {
    const end = index + run.length;
    yield text.slice(from, end);
    from = end;
  }
  if (from < text.length) yield text.slice(from);
}

parentPort?.on("message", ({ texts, documents }: Countable) => {
  let tokens = 0;
  for (const text of texts) for (const piece of splitLongRuns(text)) tokens += countTokens(piece, asText);
  const budget = { untilMs: performance.now() + maxDocumentsMs, inflatedBytes: maxInflatedBytes };
  const sizes = documents.map((base64) => {
    const size = measurePdf(Buffer.from(base64, "base64"), budget);
    return size.pages > 0 ? size : undefined;
  });
  parentPort?.postMessage({ tokens, documents: sizes } satisfies Counted);
});
parentPort?.postMessage("ready");
