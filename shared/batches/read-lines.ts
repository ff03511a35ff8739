/** A line of a JSON Lines file. */
export interface FileLine {
  /** Counts from 0. Lines of white space are not counted. */
  readonly line: number;
  /** Its place in the file. */
  readonly byte: number;
  /** Its length with the end of the line. */
  readonly bytes: number;
  /** The line is undefined if it is longer than the limit. */
  readonly content: Buffer | undefined;
}

const lineFeed = 0x0a;
const isWhite = (byte: number) => byte === 0x20 || byte === 0x09 || byte === 0x0d;

/**
 * Yields the lines of a file from a place on. Holds one line at a time, of at most `limitBytes`; the rest of a longer one is
 * read and forgotten.
 */
export async function* readLines(
  source: AsyncIterable<Uint8Array>,
  { line, byte }: { readonly line: number; readonly byte: number },
  limitBytes: number,
): AsyncGenerator<FileLine> {
  let parts: Buffer[] = [];
  let kept = 0;
  let start = byte;
  let at = byte;
  let number = line;

  function take(): FileLine | undefined {
    const content = kept > limitBytes ? undefined : Buffer.concat(parts, kept);
    const taken = { line: number, byte: start, bytes: at - start, content };
    [parts, kept, start] = [[], 0, at];
    if (content?.every(isWhite)) return undefined;
    number++;
    return taken;
  }

  for await (const chunk of source) {
    let from = 0;
    while (from < chunk.length) {
      const end = chunk.indexOf(lineFeed, from);
      const to = end < 0 ? chunk.length : end;
      kept += to - from;
      if (kept <= limitBytes) parts.push(Buffer.from(chunk.subarray(from, to)));
      else parts = [];
      at += (end < 0 ? to : to + 1) - from;
      from = to + 1;
      if (end < 0) break;
      const taken = take();
      if (taken) yield taken;
    }
  }
  const last = at > start ? take() : undefined;
  if (last) yield last;
}
