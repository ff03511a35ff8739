/** A line of a JSON Lines file. */
export interface FileLine {
  /** Counts from 0. Lines of white space are not counted. */
  readonly line: number;
  /** The place in the file at which it begins, after any white space. */
  readonly byte: number;
  /** Its length with the end of the line. */
  readonly bytes: number;
  /** The line is undefined if it is longer than the limit. */
  readonly content: Buffer | undefined;
}

const lineFeed = 0x0a;
const isWhite = (byte: number | undefined) => byte === 0x20 || byte === 0x09 || byte === 0x0d || byte === lineFeed;

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

  function take(): FileLine {
    const content = kept > limitBytes ? undefined : Buffer.concat(parts, kept);
    const taken = { line: number, byte: start, bytes: at - start, content };
    [parts, kept, start] = [[], 0, at];
    number++;
    return taken;
  }

  for await (const chunk of source) {
    let from = 0;
    while (from < chunk.length) {
      if (kept === 0 && isWhite(chunk[from])) {
        from++;
        start = ++at;
        continue;
      }
      const end = chunk.indexOf(lineFeed, from);
      const to = end < 0 ? chunk.length : end;
      kept += to - from;
      if (kept <= limitBytes) parts.push(Buffer.from(chunk.subarray(from, to)));
      else parts = [];
      at += (end < 0 ? to : to + 1) - from;
      from = to + 1;
      if (end < 0) break;
      yield take();
    }
  }
  if (at > start) yield take();
}
