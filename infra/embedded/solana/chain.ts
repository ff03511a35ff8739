import type { Address, Transaction } from "@solana/kit";
import { FailedTransactionMetadata, LiteSVM } from "litesvm";
import type { Clock } from "#platform/clock";
import { createBlocks } from "./blocks.ts";
import { left } from "./closed-accounts.ts";
import { leavesTrace } from "./failures.ts";
import type { Journal } from "./journal.ts";
import { outcomeOf, refused, type Simulated, withoutSignatures } from "./outcome.ts";
import { tokenBalances } from "./tokens.ts";
import type { Landed, Sent, Unsigned } from "./transactions.ts";

export type Chain = ReturnType<typeof createChain>;

interface ChainDeps {
  readonly clock: Clock;
  readonly genesis: string;
  readonly journal?: Journal | undefined;
  /** A block comes each so many milliseconds; without it only with a transaction, or when it is made. */
  readonly slotMs?: number | undefined;
}

/**
 * LiteSVM runs transactions; what a validator has and LiteSVM has not is here: blocks, the lifetime of their hashes,
 * the history, and transactions that wait. Accounts are always as the newest block left them, whatever level is asked.
 */
export function createChain({ clock, genesis, journal, slotMs }: ChainDeps) {
  const svm = new LiteSVM();
  svm.withBlockhashCheck(false);
  const before = journal?.entries ?? [];
  const slotNow = () => (slotMs === undefined ? 0n : BigInt(Math.floor(clock.now() / slotMs)));
  const slots = [svm.getClock().slot, slotNow(), ...before.slice(-1).map(({ landed }) => landed.slot + 1n)];
  const blocks = createBlocks(slots.toSorted((a, b) => Number(b - a))[0] as bigint);
  const landed = new Map<string, Landed>();
  const byMessage = new Set<string>();
  let waiting: Sent[] | undefined;

  function nextBlock() {
    const block = blocks.next();
    const time = svm.getClock();
    time.slot = block.slot;
    time.unixTimestamp = BigInt(Math.floor(clock.now() / 1000));
    svm.setClock(time);
    return { ...block, time: Number(time.unixTimestamp) };
  }

  const newest = () => ({ slot: blocks.slot("processed"), time: Number(svm.getClock().unixTimestamp) });
  const isExpired = ({ message }: Unsigned): boolean => !blocks.isValid(message.lifetimeToken, "processed");
  const isDone = ({ transaction }: Unsigned): boolean => byMessage.has(messageKey(transaction));

  /** Runs it, if it may be in a block: in the one of this time, or else in one of its own. */
  function land(sent: Sent): void {
    if (isDone(sent) || isExpired(sent)) return;
    const addresses = sent.message.staticAccounts;
    const state = () => ({ lamports: balances(svm, addresses), tokens: tokenBalances(svm, addresses) });
    const before = state();
    const result = svm.sendTransaction(sent.transaction);
    const outcome = outcomeOf(result);
    if (outcome.err !== null && !leavesTrace(outcome.err)) return;
    const block = slotMs === undefined ? nextBlock() : newest();
    const after = state();
    const entry: Landed = {
      ...sent,
      ...outcome,
      slot: block.slot,
      blockTime: block.time,
      lamports: { before: before.lamports, after: after.lamports },
      tokens: { before: before.tokens, after: after.tokens },
    };
    journal?.append({ landed: entry, accounts: left(svm, addresses) });
    keep(entry);
  }

  function keep(entry: Landed): void {
    byMessage.add(messageKey(entry.transaction));
    landed.set(entry.signature, entry);
  }

  const stop =
    slotMs === undefined
      ? () => {}
      : clock.every(slotMs, () => {
          while (blocks.slot("processed") < slotNow()) nextBlock();
        });

  return {
    genesis,
    svm,
    blocks,
    nextBlock,
    stop,
    /** Brings back what the journal holds: last of all, over what every start puts there. */
    restore: (): void => {
      for (const { landed: entry, accounts } of before) {
        for (const account of accounts) svm.setAccount(account);
        keep(entry);
      }
    },
    land(sent: Sent): void {
      if (waiting) waiting.push(sent);
      else land(sent);
    },
    simulate(asked: Unsigned, freshBlockhash: boolean): Simulated {
      if (isDone(asked)) return refused("AlreadyProcessed");
      if (!freshBlockhash && isExpired(asked)) return refused("BlockhashNotFound");
      return withoutSignatures(svm, () => {
        const result = svm.simulateTransaction(asked.transaction);
        if (result instanceof FailedTransactionMetadata) return { ...outcomeOf(result), accounts: [] };
        return { ...outcomeOf(result.meta()), accounts: result.postAccounts() };
      });
    },
    find: (signature: string): Landed | undefined => landed.get(signature),
    /** Newest first. */
    of: (address: string): Landed[] =>
      [...landed.values()].filter((each) => each.message.staticAccounts.includes(address as Address)).toReversed(),
    /** Transactions that are sent from now on wait. */
    hold: (): void => {
      waiting ??= [];
    },
    /** What waits lands, as far as it still may, and nothing waits any more. */
    release: (): void => {
      const all = waiting ?? [];
      waiting = undefined;
      for (const sent of all) land(sent);
    },
    /** What waits never lands, and nothing waits any more. */
    drop: (): void => {
      waiting = undefined;
    },
    get waiting(): number {
      return waiting?.length ?? 0;
    },
  };
}

const messageKey = ({ messageBytes }: Transaction): string => Buffer.from(messageBytes).toString("base64");

const balances = (svm: LiteSVM, addresses: readonly Address[]): bigint[] =>
  addresses.map((address) => svm.getBalance(address) ?? 0n);
