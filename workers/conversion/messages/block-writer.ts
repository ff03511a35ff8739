import type { JsonObject } from "#formats";

export const event = (type: string, fields: JsonObject): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** One content block of an answer in progress. */
export interface Block {
  /** The `content_block` of its start event; the name of a tool may arrive late. */
  start: JsonObject;
  /** Whether `start` is complete. */
  isReady: boolean;
  isComplete(): boolean;
}

interface QueuedBlock {
  readonly block: Block;
  readonly pending: JsonObject[];
  /** Set when the start event is written. */
  index?: number;
}

/**
 * Writes blocks one after another, as the format requires, although chat servers may interleave the deltas of several tool
 * calls: deltas of a later block wait until all blocks before it are complete.
 */
export function blockWriter() {
  const queue: QueuedBlock[] = [];
  let count = 0;

  const open = (queued: QueuedBlock): string => {
    const index = count++;
    queued.index = index;
    const started = event("content_block_start", { index, content_block: queued.block.start });
    return started + queued.pending.map((delta) => event("content_block_delta", { index, delta })).join("");
  };
  const close = ({ index }: QueuedBlock): string => event("content_block_stop", { index });

  /** Closes completed blocks that others follow, and opens the next. */
  const advance = (): string => {
    let events = "";
    for (let head = queue[0]; head; head = queue[0]) {
      if (head.index === undefined) {
        if (!head.block.isReady) break;
        events += open(head);
      }
      if (queue.length === 1 || !head.block.isComplete()) break;
      events += close(head);
      queue.shift();
    }
    return events;
  };

  return {
    last: (): Block | undefined => queue.at(-1)?.block,
    begin(block: Block): string {
      queue.push({ block, pending: [] });
      return advance();
    },
    /** Deltas of a closed block are dropped. */
    add(block: Block, delta: JsonObject): string {
      const queued = queue.find((each) => each.block === block);
      if (!queued) return "";
      if (queued.index !== undefined) return event("content_block_delta", { index: queued.index, delta }) + advance();
      queued.pending.push(delta);
      return advance();
    },
    /** Writes and closes all blocks. */
    end: (): string =>
      queue
        .splice(0)
        .map((each) => (each.index === undefined ? open(each) : "") + close(each))
        .join(""),
  };
}

export type BlockWriter = ReturnType<typeof blockWriter>;
