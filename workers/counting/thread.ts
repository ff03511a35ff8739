/**
 * The thread that counts: takes the texts and the documents of one prompt, answers with the tokens of the texts and the
 * sizes of the documents. The first thing it says is that it is ready. The ranks (o200k_base, 70 MB in memory) are loaded here and nowhere else.
 */
import { parentPort } from "node:worker_threads";
import { countTokens, setMergeCacheSize } from "gpt-tokenizer/encoding/o200k_base";
import { type Budget, measurePdf } from "./pdf.ts";
import { inPieces } from "./pieces.ts";
import type { Countable, Counted } from "./tokenizer.ts";

// Nobody's words stay in memory; without the cache 128 KB of code take 25 ms in the place of 17.
setMergeCacheSize(0);

/** What reads like a control token is text: the caller wrote it. */
const asText = { disallowedSpecial: new Set<string>() };

/** Of all documents of a prompt: a part of the time that the thread has for it, and more than the text of the longest context. */
const documentsMs = 300;
const inflatedBytes = 32 * 1024 * 1024;

function measured(documents: readonly string[]): Counted["documents"] {
  const budget: Budget = { untilMs: performance.now() + documentsMs, inflatedBytes };
  return documents.map((base64) => {
    const size = measurePdf(Buffer.from(base64, "base64"), budget);
    return size.pages > 0 ? size : undefined;
  });
}

parentPort?.on("message", ({ texts, documents }: Countable) => {
  let tokens = 0;
  for (const text of texts) for (const piece of inPieces(text)) tokens += countTokens(piece, asText);
  parentPort?.postMessage({ tokens, documents: measured(documents) } satisfies Counted);
});
parentPort?.postMessage("ready");
