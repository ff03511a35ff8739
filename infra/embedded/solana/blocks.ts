import { randomBytes } from "node:crypto";
import { type Blockhash, blockhash, getBase58Decoder } from "@solana/kit";

/** How sure a block is. Each is true of fewer blocks than the one before. */
export type Commitment = "processed" | "confirmed" | "finalized";

export interface Block {
  readonly slot: bigint;
  readonly hash: Blockhash;
}

/** A transaction may name a block this far back. */
const lifetime = 150n;
/** A node looks no further back for a signature unless it is asked to search its history. */
const remembered = 300n;

const blockAt = (slot: bigint): Block => ({ slot, hash: blockhash(getBase58Decoder().decode(randomBytes(32))) });

/** Blocks without gaps, so that a block's height is its slot. What is held back becomes sure only when it is let go. */
export function createBlocks(firstSlot: bigint) {
  let recent: Block[] = [blockAt(firstSlot)];
  const sure: Record<Commitment, bigint> = { processed: firstSlot, confirmed: firstSlot, finalized: firstSlot };
  let heldAt: Commitment = "finalized";

  function next(): Block {
    const block = blockAt(sure.processed + 1n);
    recent = [...recent.filter(({ slot }) => slot > block.slot - 2n * remembered), block];
    sure.processed = block.slot;
    follow();
    return block;
  }

  function follow(): void {
    if (heldAt !== "processed") sure.confirmed = sure.processed;
    if (heldAt === "finalized") sure.finalized = sure.processed;
  }

  const find = (hash: string) => recent.find((block) => block.hash === hash);

  return {
    next,
    /** From now on blocks get no further than this by themselves; "finalized" lets everything go. */
    holdAt: (level: Commitment): void => {
      heldAt = level;
      follow();
    },
    slot: (level: Commitment): bigint => sure[level],
    /** The newest block of that level whose hash is known. */
    latest(level: Commitment): Block & { readonly lastValidHeight: bigint } {
      const block = recent.findLast(({ slot }) => slot <= sure[level]) ?? (recent[0] as Block);
      return { ...block, lastValidHeight: block.slot + lifetime };
    },
    levelOf(slot: bigint): Commitment {
      if (slot <= sure.finalized) return "finalized";
      return slot <= sure.confirmed ? "confirmed" : "processed";
    },
    /** As a validator answers: no also for a block that is too new for the level. */
    isValid(hash: string, level: Commitment): boolean {
      const block = find(hash);
      return block !== undefined && block.slot <= sure[level] && sure[level] <= block.slot + lifetime;
    },
    isRemembered: (slot: bigint): boolean => slot > sure.finalized - remembered,
  };
}
