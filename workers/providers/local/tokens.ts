import { setImmediate } from "node:timers/promises";

/**
 * The tokens of the local models: up to 8 blanks and then up to 8 other characters. "Hello there" has 2, any text of n
 * bytes at most n. Concatenated, the tokens of a text are the text.
 */
const maxLength = 8;
const isBlank = (code: number) => code <= 32;
const isHighSurrogate = (code: number) => code >= 0xd800 && code <= 0xdbff;

/** The end of the token that begins at `start`. */
function tokenEnd(text: string, start: number): number {
  const blanksUntil = Math.min(text.length, start + maxLength);
  let at = start;
  while (at < blanksUntil && isBlank(text.charCodeAt(at))) at++;
  const wordUntil = Math.min(text.length, at + maxLength);
  while (at < wordUntil && !isBlank(text.charCodeAt(at))) at++;
  if (at < text.length && isHighSurrogate(text.charCodeAt(at - 1))) at++;
  return at;
}

/** The first tokens of the text, at most `cap`. */
export function tokenize(text: string, cap: number): readonly string[] {
  const tokens: string[] = [];
  for (let at = 0; at < text.length && tokens.length < cap; ) {
    const end = tokenEnd(text, at);
    tokens.push(text.slice(at, end));
    at = end;
  }
  return tokens;
}

/** A megabyte takes about 2 ms; the event loop gets a turn after each. */
const turnCharacters = 1024 * 1024;

export async function countTokens(texts: Iterable<string>): Promise<number> {
  let count = 0;
  let sinceTurn = 0;
  for (const text of texts) {
    for (let at = 0; at < text.length; count++) {
      const end = tokenEnd(text, at);
      sinceTurn += end - at;
      at = end;
      if (sinceTurn < turnCharacters) continue;
      sinceTurn = 0;
      await setImmediate();
    }
  }
  return count;
}
