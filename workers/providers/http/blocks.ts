/** Bodies as blocks of bytes, in order. */

export const joined = (blocks: readonly Buffer[]): Buffer =>
  blocks.length === 1 ? (blocks[0] as Buffer) : Buffer.concat(blocks);

/** The text of the bytes from one position of all blocks to another. A character must not be cut by either. */
export function textOf(blocks: readonly Buffer[], from = 0, to = Number.POSITIVE_INFINITY): string {
  const pieces: Buffer[] = [];
  let start = 0;
  for (const block of blocks) {
    if (start < to && start + block.length > from) pieces.push(block.subarray(Math.max(0, from - start), to - start));
    start += block.length;
  }
  return joined(pieces).toString();
}
