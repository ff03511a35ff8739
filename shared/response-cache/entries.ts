import { z } from "zod";
import { compress, decompress } from "#platform/compression";

/** A stored answer. Its text is a template (`toTemplate` in #formats). */
export interface CachedAnswer {
  readonly text: string;
  /** The request that was charged for the answer. */
  readonly requestId: string;
  /** The model that answered. */
  readonly model: string;
  /** The headers that came with it. */
  readonly headers: Readonly<Record<string, string>>;
  readonly costNanoUsd: bigint;
  /** Unix milliseconds. */
  readonly storedAt: number;
  readonly expiresAt: number;
}

const storedHead = z.object({
  version: z.string(),
  requestId: z.string(),
  model: z.string(),
  headers: z.record(z.string(), z.string()),
  cost: z.string().transform(BigInt),
  storedAt: z.number(),
  expiresAt: z.number(),
  bytes: z.number(),
  isCompressed: z.boolean(),
  /** The text is in object storage, under this name. */
  object: z.string().optional(),
});
export type EntryHead = z.infer<typeof storedHead>;

/** Shorter texts are stored as they are. */
const compressedBytes = 2 * 1024;
/** Compressed texts up to this size are stored in Redis. */
const inlineBytes = 1024 * 1024;
/** Larger answers are not stored. */
export const maxAnswerBytes = 16 * 1024 * 1024;

const lineFeed = 0x0a;

/** An entry is a line of JSON followed by the text. `putObject` stores a text that is too large for Redis, and names it. */
export async function encodeEntry(
  { text, costNanoUsd, ...head }: CachedAnswer,
  version: string,
  putObject: (bytes: Buffer) => Promise<string>,
): Promise<Buffer> {
  const bytes = Buffer.byteLength(text);
  const isCompressed = bytes > compressedBytes;
  const content = isCompressed ? await compress(text) : Buffer.from(text);
  const object = content.length > inlineBytes ? await putObject(content) : undefined;
  const line = { ...head, version, cost: String(costNanoUsd), bytes, isCompressed, object } satisfies z.input<
    typeof storedHead
  >;
  const first = Buffer.from(`${JSON.stringify(line)}\n`);
  return object === undefined ? Buffer.concat([first, content]) : first;
}

export function decodeHead(entry: Buffer): { head: EntryHead; content: Buffer } | undefined {
  const end = entry.indexOf(lineFeed);
  if (end < 0) return undefined;
  // An entry that another version of the service wrote may have another form.
  const head = storedHead.safeParse(JSON.parse(entry.toString("utf8", 0, end)));
  return head.success ? { head: head.data, content: entry.subarray(end + 1) } : undefined;
}

export const textOf = async ({ isCompressed, bytes }: EntryHead, content: Buffer): Promise<string> =>
  isCompressed ? decompress(content, bytes) : content.toString("utf8");
