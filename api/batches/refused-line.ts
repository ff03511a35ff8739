import { type FileLine, lineIdOf, type StoredBatch, type StoredLine } from "#batches";
import type { ErrorFields } from "#errors";
import { newRequestId } from "#platform/ids";

/** The custom_id of a line that was validated. */
export function customIdOf(content: Buffer | undefined): string {
  const { custom_id: customId } = JSON.parse(content?.toString() ?? "{}") as { readonly custom_id?: unknown };
  return typeof customId === "string" ? customId : "";
}

export type Refusal = readonly [
  place: Pick<FileLine, "line" | "byte" | "bytes">,
  named: Pick<StoredLine, "customId" | "model">,
  error: ErrorFields,
];

/** A line whose call was not admitted: it has its result at once. */
export const refusedLineOf = (
  { batch, instance, now }: { readonly batch: StoredBatch; readonly instance: string; readonly now: number },
  { line, byte, bytes }: Refusal[0],
  named: Refusal[1],
  error: ErrorFields,
): StoredLine => ({
  _id: lineIdOf(batch._id, line),
  account: batch.account,
  batch: batch._id,
  line,
  byte,
  bytes,
  ...named,
  requestId: newRequestId(),
  tries: 1,
  instance,
  deadlineAt: new Date(now),
  held: 0n,
  error,
});
