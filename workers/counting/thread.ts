/**
 * The tokenizer's own thread: takes the texts of one prompt, answers with their tokens. The first thing it says is that it
 * is ready. The ranks (o200k_base, 70 MB in memory) are loaded here and nowhere else.
 */
import { parentPort } from "node:worker_threads";
import { countTokens, setMergeCacheSize } from "gpt-tokenizer/encoding/o200k_base";
import { inPieces } from "./pieces.ts";

// Nobody's words stay in memory; without the cache 128 KB of code take 25 ms in the place of 17.
setMergeCacheSize(0);

/** What reads like a control token is text: the caller wrote it. */
const asText = { disallowedSpecial: new Set<string>() };

parentPort?.on("message", (texts: readonly string[]) => {
  let tokens = 0;
  for (const text of texts) for (const piece of inPieces(text)) tokens += countTokens(piece, asText);
  parentPort?.postMessage(tokens);
});
parentPort?.postMessage("ready");
