import type { JsonObject } from "#json";

export const event = (type: string, fields: JsonObject): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** One content block of an answer in progress. */
export const newBlock = (start: JsonObject, isReady = true) => ({
  /** The `content_block` of its start event; the name of a tool may arrive late. */
  start,
  /** Set once `start` is complete. */
  isReady,
  /** Thinking, or the arguments of a call. */
  content: "",
  isSigned: false,
  /** Deltas that wait for the blocks before this one. */
  pending: [] as JsonObject[],
  /** Set when the start event is written. */
  index: undefined as number | undefined,
  checked: { length: 0, isComplete: false },
});

export type Block = ReturnType<typeof newBlock>;

function isJson(args: string): boolean {
  // The cheap test avoids parsing long arguments again for each delta.
  if (!["}", "]"].includes(args.trimEnd().at(-1) ?? "")) return false;
  try {
    JSON.parse(args);
    return true;
  } catch {
    return false;
  }
}

/** A call is complete when its arguments are. */
function isComplete(block: Block): boolean {
  const { start, content, checked } = block;
  if (start["type"] !== "tool_use") return true;
  if (checked.length !== content.length) block.checked = { length: content.length, isComplete: isJson(content) };
  return block.checked.isComplete;
}

/**
 * Writes blocks one after another, as the format requires, although chat servers may interleave the deltas of several tool
 * calls: deltas of a later block wait until all blocks before it are complete.
 */
export function blockWriter() {
  const queue: Block[] = [];
  let count = 0;

  const open = (block: Block): string => {
    const index = count++;
    block.index = index;
    const started = event("content_block_start", { index, content_block: block.start });
    return started + block.pending.map((delta) => event("content_block_delta", { index, delta })).join("");
  };
  const close = ({ index }: Block): string => event("content_block_stop", { index });

  /** Closes completed blocks that others follow, and opens the next. */
  const advance = (): string => {
    let events = "";
    for (let head = queue[0]; head; head = queue[0]) {
      if (head.index === undefined) {
        if (!head.isReady) break;
        events += open(head);
      }
      if (queue.length === 1 || !isComplete(head)) break;
      events += close(head);
      queue.shift();
    }
    return events;
  };

  return {
    last: () => queue.at(-1),
    begin(block: Block): string {
      queue.push(block);
      return advance();
    },
    /** Deltas of a closed block are dropped. */
    add(block: Block, delta: JsonObject): string {
      if (!queue.includes(block)) return "";
      if (block.index !== undefined) return event("content_block_delta", { index: block.index, delta }) + advance();
      block.pending.push(delta);
      return advance();
    },
    end: (): string =>
      queue
        .splice(0)
        .map((block) => (block.index === undefined ? open(block) : "") + close(block))
        .join(""),
  };
}
