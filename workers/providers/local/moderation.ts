import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import type { JsonObject } from "#json";
import { type Clock, sleep } from "#platform/clock";
import type { UpstreamCall } from "../provider.ts";
import { parseRequest, triggerOf } from "./request.ts";

const textPart = z.object({ type: z.literal("text", "this model classifies text, not images"), text: z.string() });
const request = z.object({
  model: z.string(),
  input: z.union([z.string(), z.array(z.string()), z.array(textPart)], "this model classifies text, not images"),
});

/**
 * Words and phrases by category, as `plain` normalizes them. This is a test model: it shows what an answer looks like, and
 * flags only obvious cases.
 */
const phrases = {
  harassment: ["idiot", "moron", "you are worthless", "nobody likes you", "shut up", "loser"],
  "harassment/threatening": ["i will hurt you", "i will kill you", "i will find you", "watch your back"],
  hate: ["hate all", "inferior race", "subhuman", "vermin"],
  "hate/threatening": ["kill all", "exterminate them", "wipe them out"],
  illicit: ["buy drugs", "sell drugs", "steal a car", "launder money", "fake passport", "hack into"],
  "illicit/violent": ["build a bomb", "make a bomb", "buy an illegal gun", "hire an assassin"],
  "self-harm": ["kill myself", "suicide", "cut myself", "hurt myself", "self harm"],
  "self-harm/intent": ["i want to die", "i will kill myself", "i want to kill myself", "end my life"],
  "self-harm/instructions": ["how to kill myself", "ways to kill yourself", "how to cut myself"],
  sexual: ["porn", "naked", "nude", "sex scene", "erotic"],
  "sexual/minors": ["child porn", "underage sex", "naked child", "nude child"],
  violence: ["kill", "murder", "stab", "shoot", "bomb", "strangle", "beat him up"],
  "violence/graphic": ["blood everywhere", "severed", "guts", "gore", "dismembered"],
} as const;

/** `plain` lowercases, removes accents, replaces digits that stand for letters, and leaves single blanks between words. */
const letters: Readonly<Record<string, string>> = { "0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t" };
const plain = (text: string): string =>
  text
    // Accents are removed first: normalizing sorts the accents of a letter, which takes minutes if a letter has a million.
    .replace(/\p{M}/gu, "")
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[@$]/g, (sign) => (sign === "@" ? "a" : "s"))
    .replace(/(?<=\p{L})[013457]|[013457](?=\p{L})/gu, (digit) => letters[digit] ?? digit)
    .replace(/[^\p{L}\p{N}]+/gu, " ");

/** Every further phrase halves the distance to 1; one phrase is enough to flag. */
const flaggedFrom = 0.5;
const scoreOf = (found: number): number => 1 - 0.5 ** Math.min(found, 20);

/** A few milliseconds of work: the event loop gets a turn between pieces. */
const pieceCharacters = 8 * 1024;
/** Longer than any phrase. */
const overlap = 64;

/** The phrases that a text contains. */
async function phrasesIn(text: string, signal: AbortSignal): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const all = Object.values(phrases).flat();
  let tail = " ";
  for (let at = 0; at < text.length; at += pieceCharacters) {
    const isLast = at + pieceCharacters >= text.length;
    const joined = `${tail}${plain(text.slice(at, at + pieceCharacters))}${isLast ? " " : ""}`.replace(/ +/g, " ");
    for (const phrase of all) if (joined.includes(` ${phrase} `)) found.add(phrase);
    tail = joined.slice(-overlap);
    await setImmediate();
    signal.throwIfAborted();
  }
  return found;
}

async function classify(text: string, signal: AbortSignal): Promise<JsonObject> {
  const found = await phrasesIn(text, signal);
  const scored = Object.entries(phrases).map(
    ([category, list]) => [category, scoreOf(list.filter((phrase) => found.has(phrase)).length)] as const,
  );
  return {
    flagged: scored.some(([, score]) => score >= flaggedFrom),
    categories: Object.fromEntries(scored.map(([category, score]) => [category, score >= flaggedFrom])),
    category_scores: Object.fromEntries(scored),
    category_applied_input_types: Object.fromEntries(scored.map(([category]) => [category, ["text"]])),
  };
}

/** The parts of an input are classified together, texts one by one. */
export async function moderate(clock: Clock, { body, signal }: UpstreamCall): Promise<JsonObject> {
  const { model, input } = parseRequest(request, body);
  const [first] = input;
  const texts =
    typeof input === "string"
      ? [input]
      : typeof first === "object"
        ? [input.map((part) => (typeof part === "object" ? part.text : part)).join("\n")]
        : input.map(String);
  const { delayMs } = triggerOf(texts[0] ?? "", "input");
  if (delayMs) await sleep(clock, delayMs, signal);
  const results: JsonObject[] = [];
  for (const text of texts) results.push(await classify(text, signal));
  return { model, results };
}
