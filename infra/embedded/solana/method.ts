import type { Commitment } from "./blocks.ts";
import type { Chain } from "./chain.ts";

export type Method = (chain: Chain, params: readonly unknown[]) => unknown;

export const context = (chain: Chain, value: unknown, level: Commitment = "processed") => ({
  context: { apiVersion: "3.0.0", slot: chain.blocks.slot(level) },
  value,
});
