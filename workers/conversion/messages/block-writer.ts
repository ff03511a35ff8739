import type { JsonObject } from "#formats";

export const event = (type: string, fields: JsonObject): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** One block of an answer that is being written. */
export interface Block {
  /** As `content_block_start` has it; a tool's name may come after its first words. */
  start: JsonObject;
  /** It has what its start needs. */
  isReady: boolean;
  /** All of it is here. */
  isWhole(): boolean;
}

interface Waiting {
  readonly block: Block;
  readonly held: JsonObject[];
  index?: number;
}

/**
 * Writes blocks one after the other, as the format has them, though chat servers may send the pieces of several calls in
 * turns: what belongs to a later block waits until the ones before it are whole.
 */
export function blockWriter() {
  const waiting: Waiting[] = [];
  let count = 0;

  const open = (each: Waiting): string => {
    each.index = count++;
    const started = event("content_block_start", { index: each.index, content_block: each.block.start });
    return started + each.held.map((delta) => event("content_block_delta", { index: each.index, delta })).join("");
  };
  const close = ({ index }: Waiting): string => event("content_block_stop", { index });

  /** Closes what is whole and followed by another, and opens what is next. */
  const settle = (): string => {
    let text = "";
    for (;;) {
      const [head] = waiting;
      if (!head) return text;
      if (head.index === undefined) {
        if (!head.block.isReady) return text;
        text += open(head);
      }
      if (waiting.length === 1 || !head.block.isWhole()) return text;
      text += close(head);
      waiting.shift();
    }
  };

  return {
    /** The block that was begun last. */
    last: (): Block | undefined => waiting.at(-1)?.block,
    begin(block: Block): string {
      waiting.push({ block, held: [] });
      return settle();
    },
    say(block: Block, delta: JsonObject): string {
      const of = waiting.find((each) => each.block === block);
      // Of a block that is closed: nothing can be added to it.
      if (!of) return "";
      if (of.index !== undefined) return event("content_block_delta", { index: of.index, delta }) + settle();
      of.held.push(delta);
      return settle();
    },
    /** The rest of all blocks. */
    end(): string {
      let text = "";
      for (const each of waiting.splice(0)) text += (each.index === undefined ? open(each) : "") + close(each);
      return text;
    },
  };
}

export type BlockWriter = ReturnType<typeof blockWriter>;
