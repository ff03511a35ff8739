import { type Batches, readLines, type StoredBatch, type StoredLine } from "#batches";
import type { Files } from "#files";
import { customIdOf } from "./refused-line.ts";

/** Longer than a line of results. */
const limitBytes = 128 * 1024 * 1024;

/**
 * Deletes lines in flight whose results are recorded, and returns the others. There are such lines if MongoDB carried out the
 * insert of a process that had lost the batch only after another process had run them, recorded and deleted them. They would
 * run, and be charged, a second time.
 */
export async function withoutLate(
  { batches, files }: { readonly batches: Batches; readonly files: Pick<Files, "batchFiles"> },
  { account, _id, counts, cursor, outputs, failures }: StoredBatch,
  open: readonly StoredLine[],
): Promise<readonly StoredLine[]> {
  const begun = open.filter(({ line }) => line < cursor.line);
  const recorded = Object.values(counts).reduce((sum, count) => sum + count, 0);
  // Each line before the cursor is either recorded or in flight.
  if (begun.length + recorded <= cursor.line) return open;
  const results = new Set<string>();
  const parts = files.batchFiles.openParts(_id, [...outputs, ...failures]);
  for await (const { content } of readLines(parts, { line: 0, byte: 0 }, limitBytes)) results.add(customIdOf(content));
  const late = new Set(begun.filter(({ customId }) => results.has(customId)).map(({ line }) => line));
  await batches.lines.delete(account, _id, [...late]);
  return open.filter(({ line }) => !late.has(line));
}
