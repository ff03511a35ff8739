import { randomBytes } from "node:crypto";
import { blockhash, getBase58Decoder } from "@solana/kit";

/** Ordered from weakest to strongest. */
export const commitments = ["processed", "confirmed", "finalized"] as const;
export type Commitment = (typeof commitments)[number];

type Block = ReturnType<typeof blockAt>;

/** A transaction may reference the hash of a block at most this far back. */
const blockhashLifetime = 150n;
/** Number of finalized blocks whose signatures are found without `searchTransactionHistory`. */
const recentBlocks = 300n;

const blockAt = (slot: bigint) => ({ slot, hash: blockhash(getBase58Decoder().decode(randomBytes(32))) });

/** Blocks without skipped slots, so that a block's height equals its slot. */
export function createBlocks(firstSlot: bigint) {
  let known: Block[] = [blockAt(firstSlot)];
  const newest: Record<Commitment, bigint> = { processed: firstSlot, confirmed: firstSlot, finalized: firstSlot };
  let heldAt: Commitment = "finalized";

  function commit(): void {
    if (heldAt !== "processed") newest.confirmed = newest.processed;
    if (heldAt === "finalized") newest.finalized = newest.processed;
  }

  return {
    next(): Block {
      const block = blockAt(newest.processed + 1n);
      known = [...known.filter(({ slot }) => slot > block.slot - 2n * recentBlocks), block];
      newest.processed = block.slot;
      commit();
      return block;
    },
    /** No block gets past this commitment; "finalized" also finalizes all earlier blocks. */
    holdAt: (level: Commitment): void => {
      heldAt = level;
      commit();
    },
    slot: (level: Commitment): bigint => newest[level],
    /** Returns the newest block of that commitment whose hash is known. */
    latest(level: Commitment): Block & { readonly lastValidHeight: bigint } {
      const block = known.findLast(({ slot }) => slot <= newest[level]) ?? (known[0] as Block);
      return { ...block, lastValidHeight: block.slot + blockhashLifetime };
    },
    commitmentOf(slot: bigint): Commitment {
      if (slot <= newest.finalized) return "finalized";
      return slot <= newest.confirmed ? "confirmed" : "processed";
    },
    /** As on a validator, the hash of a block that has not reached the commitment is not valid. */
    isValid(hash: string, level: Commitment): boolean {
      const block = known.find((each) => each.hash === hash);
      return block !== undefined && block.slot <= newest[level] && newest[level] <= block.slot + blockhashLifetime;
    },
    isRecent: (slot: bigint): boolean => slot > newest.finalized - recentBlocks,
  };
}
