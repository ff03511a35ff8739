import { type FileLine, maxLineBytes, readLines, type StoredBatch, type StoredLine } from "#batches";
import type { Files } from "#files";

/** The lines that are read at once, and the bytes after which reading stops. One line may be longer. */
const readCount = 256;
const readBytes = 1024 * 1024;

interface NextLine {
  readonly read: FileLine;
  /** The line as it was postponed. */
  readonly tried?: StoredLine;
}

/** Reads a batch's file piece by piece, so that no connection to storage is held while lines wait for their turn. */
export function createInput(files: Pick<Files, "batchFiles">, { account, inputFile, cursor, lines }: StoredBatch) {
  let waiting: FileLine[] = [];
  /** The line after the last one that was read. */
  let read = cursor;
  /** The line after the last one that was taken. */
  let taken = cursor;

  async function readMore(): Promise<void> {
    const file = await files.batchFiles.find(account, inputFile);
    let bytes = 0;
    for await (const line of readLines(files.batchFiles.open(file, read.byte), read, maxLineBytes)) {
      waiting.push(line);
      read = { line: line.line + 1, byte: line.byte + line.bytes };
      bytes += line.bytes;
      if (waiting.length >= readCount || bytes >= readBytes) return;
    }
  }

  /** The next lines, at most `count`. Throws 410 if the file was deleted or has expired, and 503. */
  async function peek(count: number): Promise<readonly FileLine[]> {
    if (waiting.length === 0 && taken.line < lines) await readMore();
    return waiting.slice(0, count);
  }

  /** Reads one line again. */
  async function again({ byte, bytes, line }: StoredLine): Promise<FileLine | undefined> {
    const file = await files.batchFiles.find(account, inputFile);
    for await (const each of readLines(files.batchFiles.open(file, byte), { line, byte }, maxLineBytes))
      return each.byte + each.bytes === byte + bytes ? each : undefined;
    return undefined;
  }

  return {
    /** The place of the next line. */
    cursor: () => taken,
    isAtEnd: () => taken.line >= lines,
    peek,
    /** The lines to begin next, at most `count`: the postponed ones that are due first. Throws as `peek`. */
    async next(postponed: Iterable<StoredLine>, count: number, now: number): Promise<NextLine[]> {
      const due: StoredLine[] = [];
      let bytes = 0;
      for (const line of postponed) {
        if ((line.retryAt?.getTime() ?? 0) > now) continue;
        due.push(line);
        bytes += line.bytes;
        if (due.length === count || bytes >= readBytes) break;
      }
      const found = await Promise.all(due.map(async (tried) => ({ read: await again(tried), tried })));
      const tried = found.flatMap(({ read, tried }) => (read ? [{ read, tried }] : []));
      const fresh = tried.length < count ? await peek(count - tried.length) : [];
      return [...tried, ...fresh.map((read) => ({ read }))];
    },
    /** Goes on after a line that was peeked. */
    take({ line, byte, bytes }: FileLine): void {
      waiting = waiting.filter((each) => each.line > line);
      taken = { line: line + 1, byte: byte + bytes };
    },
    /** Goes on after the lines that another process has taken already. */
    skipTo(place: { readonly line: number; readonly byte: number }): void {
      if (place.line <= taken.line) return;
      [read, taken, waiting] = [place, place, []];
    },
  };
}
