import type { Address } from "@solana/kit";
import type { Commitment } from "./blocks.ts";
import type { Chain } from "./chain.ts";
import { RpcError } from "./failures.ts";
import { feeOf } from "./fee.ts";
import { invalid, type Options } from "./params.ts";
import { asParsed } from "./parsed-instructions.ts";
import { base58 } from "./tokens.ts";
import { asJson, type Landed, memoOf } from "./transactions.ts";

const order: readonly Commitment[] = ["processed", "confirmed", "finalized"];

const reached = (chain: Chain, { slot }: Landed, level: Commitment): boolean =>
  order.indexOf(chain.blocks.levelOf(slot)) >= order.indexOf(level);

export function statusOf(chain: Chain, signature: string, history: boolean) {
  const found = chain.find(signature);
  if (!found || !(history || chain.blocks.isRemembered(found.slot))) return null;
  const { slot, err } = found;
  const level = chain.blocks.levelOf(slot);
  const confirmations = level === "finalized" ? null : chain.blocks.slot("processed") - slot;
  return { slot, err, confirmations, confirmationStatus: level, status: err === null ? { Ok: null } : { Err: err } };
}

function written(found: Landed, encoding = "json") {
  switch (encoding) {
    case "json":
      return asJson(found);
    case "jsonParsed":
      return asParsed(found);
    case "base64":
      return [found.wire, "base64"];
    case "base58":
      return [base58(Buffer.from(found.wire, "base64")), "base58"];
    default:
      throw invalid(`encoding ${encoding} is not served here`);
  }
}

export function transactionOf(chain: Chain, signature: string, given: Options) {
  const found = chain.find(signature);
  if (given.commitment === "processed") throw invalid("Method does not support commitment below `confirmed`");
  if (!found || !reached(chain, found, given.commitment)) return null;
  const { message, slot, blockTime, err, logs, units, lamports, tokens } = found;
  if (message.version !== "legacy" && given.maxSupportedTransactionVersion === undefined)
    throw new RpcError(-32015, "Transaction version (0) is not supported by the requesting client");
  return {
    slot,
    blockTime,
    version: message.version,
    transaction: written(found, given.encoding),
    meta: {
      err,
      status: err === null ? { Ok: null } : { Err: err },
      fee: feeOf(message),
      preBalances: lamports.before,
      postBalances: lamports.after,
      preTokenBalances: tokens.before,
      postTokenBalances: tokens.after,
      logMessages: logs,
      innerInstructions: [],
      loadedAddresses: { writable: [], readonly: [] },
      rewards: [],
      computeUnitsConsumed: units,
    },
  };
}

export function signaturesFor(chain: Chain, at: Address, { commitment, limit, before, until }: Options) {
  const all = chain.of(at).filter((each) => reached(chain, each, commitment));
  const from = before === undefined ? 0 : all.findIndex(({ signature }) => signature === before) + 1;
  const end = until === undefined ? -1 : all.findIndex(({ signature }) => signature === until);
  return all
    .slice(from, end === -1 ? undefined : end)
    .slice(0, limit)
    .map((each) => ({
      signature: each.signature,
      slot: each.slot,
      err: each.err,
      memo: memoOf(each),
      blockTime: each.blockTime,
      confirmationStatus: chain.blocks.levelOf(each.slot),
    }));
}
