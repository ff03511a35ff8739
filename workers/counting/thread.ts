/**
 * The thread that counts: takes the texts and the documents of one prompt, answers with the tokens of the texts and the
 * sizes of the documents. The first thing it says is that it is ready. The ranks (o200k_base, 70 MB in memory) are loaded
 * here and nowhere else.
 */
import { parentPort } from "node:worker_threads";
import { countTokens, setMergeCacheSize } from "gpt-tokenizer/encoding/o200k_base";
import { measurePdf } from "./pdf.ts";
import type { Countable, Counted } from "./tokenizer.ts";

// No prompt stays in memory; without the cache 128 KB of code take 25 ms in the place of 17.
setMergeCacheSize(0);

/** What reads like a control token is text: the caller wrote it. */
const asText = { disallowedSpecial: new Set<string>() };

/** For all documents of a prompt: a part of the time that the thread has for it, and more than the text of the longest context. */
const documentsMs = 300;
const inflatedBytes = 32 * 1024 * 1024;

/**
 * Merging takes the square of a word's length, and to a tokenizer all that has no break in it is one word: 100 KB of one
 * letter, of emoji or of blanks take 4 s. In pieces of 256 they take 0.1 s, and count at most a token more for each piece.
 */
const longRun = /\S{256}|\s{256}/gu;

/** The text, cut inside its long runs; never between the halves of a character. */
function* inPieces(text: string): Generator<string> {
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
  for (const text of texts) for (const piece of inPieces(text)) tokens += countTokens(piece, asText);
  const budget = { untilMs: performance.now() + documentsMs, inflatedBytes };
  const measured = documents.map((base64) => {
    const size = measurePdf(Buffer.from(base64, "base64"), budget);
    return size.pages > 0 ? size : undefined;
  });
  parentPort?.postMessage({ tokens, documents: measured } satisfies Counted);
});
parentPort?.postMessage("ready");
