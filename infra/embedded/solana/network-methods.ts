import { z } from "zod";
import { feeOf } from "./fee.ts";
import { context, type Method } from "./method.ts";
import { optionsOf, read, text } from "./params.ts";
import { decodeMessage } from "./transactions.ts";

const slotsInEpoch = 432_000n;
const size = z.number().int().min(0).max(10_485_760);

/** What a node says of the network and its blocks. */
export const networkMethods: Readonly<Record<string, Method>> = {
  getHealth: () => "ok",
  getVersion: () => ({ "solana-core": "3.0.0", "feature-set": 0 }),
  getGenesisHash: ({ genesis }) => genesis,
  getSlot: (chain, [given]) => chain.blocks.slot(optionsOf(given).commitment),
  getBlockHeight: (chain, [given]) => chain.blocks.slot(optionsOf(given).commitment),
  getEpochInfo(chain, [given]) {
    const absoluteSlot = chain.blocks.slot(optionsOf(given).commitment);
    const [epoch, slotIndex] = [absoluteSlot / slotsInEpoch, absoluteSlot % slotsInEpoch];
    return { absoluteSlot, blockHeight: absoluteSlot, epoch, slotIndex, slotsInEpoch, transactionCount: 0 };
  },
  getLatestBlockhash(chain, [given]) {
    const { commitment } = optionsOf(given);
    const { hash, lastValidHeight } = chain.blocks.latest(commitment);
    return context(chain, { blockhash: hash, lastValidBlockHeight: lastValidHeight }, commitment);
  },
  isBlockhashValid(chain, [hash, given]) {
    const { commitment } = optionsOf(given);
    return context(chain, chain.blocks.isValid(text(hash), commitment), commitment);
  },
  getMinimumBalanceForRentExemption: ({ svm }, [bytes]) =>
    svm.minimumBalanceForRentExemption(BigInt(read(size, bytes))),
  getFeeForMessage(chain, [base64, given]) {
    const message = decodeMessage(Buffer.from(text(base64), "base64"));
    const isOver = !chain.blocks.isValid(message.lifetimeToken, optionsOf(given).commitment);
    return context(chain, isOver ? null : feeOf(message));
  },
  /** Nobody bids here. */
  getRecentPrioritizationFees: ({ blocks }) => [{ slot: blocks.slot("processed"), prioritizationFee: 0 }],
};
