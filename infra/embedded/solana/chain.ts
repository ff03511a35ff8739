import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { deserialize, serialize } from "node:v8";
import {
  type Address,
  type EncodedAccount,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  lamports,
  type Transaction,
} from "@solana/kit";
import { FailedTransactionMetadata, LiteSVM, type TransactionMetadata } from "litesvm";
import type { Clock } from "#platform/clock";
import { tokenBalances } from "./accounts.ts";
import { createBlocks } from "./blocks.ts";
import {
  type Balances,
  type DecodedTransaction,
  decodeTransaction,
  type LandedTransaction,
  type Outcome,
  systemProgram,
  type TransactionError,
} from "./transactions.ts";

export type Chain = ReturnType<typeof createChain>;

export interface ChainDeps {
  readonly clock: Clock;
  readonly genesis: string;
  /** The chain is restored from this file and written to it. */
  readonly journalFile?: string | undefined;
  /** Time between blocks; 400 on the real networks. When undefined, each landed transaction makes its own block. */
  readonly slotMs?: number | undefined;
  /** Delays or drops sent transactions in tests: a transaction lands when `land` is called, if it is still valid. */
  readonly deliver?: ((land: () => void) => void) | undefined;
}

/**
 * LiteSVM runs the transactions. This adds the rest of a validator: blocks, expiring blockhashes, and the history.
 * Accounts are always read as of the newest block, at any commitment.
 */
export function createChain({ clock, genesis, journalFile, slotMs, deliver = (land) => land() }: ChainDeps) {
  const svm = new LiteSVM();
  svm.withBlockhashCheck(false);
  const journal = journalFile === undefined ? undefined : openJournal(journalFile);
  const restored = journal?.entries ?? [];
  const slotNow = () => (slotMs === undefined ? 0n : BigInt(Math.floor(clock.now() / slotMs)));
  const firstSlots = [svm.getClock().slot, slotNow(), (restored.at(-1)?.landed.slot ?? -1n) + 1n];
  const blocks = createBlocks(firstSlots.reduce((a, b) => (a > b ? a : b)));
  const landed = new Map<string, LandedTransaction>();
  const landedMessages = new Set<string>();

  function nextBlock(): void {
    const time = svm.getClock();
    time.slot = blocks.next().slot;
    time.unixTimestamp = BigInt(Math.floor(clock.now() / 1000));
    svm.setClock(time);
  }

  const stop =
    slotMs === undefined
      ? () => {}
      : clock.every(slotMs, () => {
          while (blocks.slot("processed") < slotNow()) nextBlock();
        });

  const isExpired = ({ message }: DecodedTransaction) => !blocks.isValid(message.lifetimeToken, "processed");
  const hasLanded = ({ transaction }: DecodedTransaction) => landedMessages.has(messageKey(transaction));

  function record(entry: LandedTransaction): void {
    landedMessages.add(messageKey(entry.transaction));
    landed.set(entry.signature, entry);
  }

  /** Runs a transaction and puts it into a block, unless it has already landed or has expired. */
  function process(sent: DecodedTransaction): void {
    if (hasLanded(sent) || isExpired(sent)) return;
    const addresses = sent.message.staticAccounts;
    const before = balancesOf(svm, addresses);
    const outcome = outcomeOf(svm.sendTransaction(sent.transaction));
    // A transaction gets into a block only if its instructions were run.
    if (outcome.err !== null && !(typeof outcome.err === "object" && "InstructionError" in outcome.err)) return;
    if (slotMs === undefined) nextBlock();
    const block = { slot: blocks.slot("processed"), blockTime: Number(svm.getClock().unixTimestamp) };
    const signature = getSignatureFromTransaction(sent.transaction);
    const entry = { ...sent, ...outcome, ...block, signature, before, after: balancesOf(svm, addresses) };
    journal?.append({ landed: entry, accounts: accountsAfter(svm, addresses) });
    record(entry);
  }

  return {
    genesis,
    svm,
    blocks,
    nextBlock,
    stop,
    /** Must be called after the initial accounts are set, because the journal's accounts overwrite them. */
    restore(): void {
      for (const { landed: entry, accounts } of restored) {
        for (const account of accounts) svm.setAccount(account);
        record(entry);
      }
    },
    send: (sent: DecodedTransaction): void => deliver(() => process(sent)),
    /**
     * Also returns the accounts after the transaction. Accepts a transaction that the fee payer has not signed yet,
     * unless `sigVerify` is set.
     */
    simulate(decoded: DecodedTransaction, { sigVerify = false, replaceBlockhash = false }) {
      svm.withSigverify(sigVerify);
      try {
        const result = svm.simulateTransaction(decoded.transaction);
        const failed = result instanceof FailedTransactionMetadata;
        const outcome = outcomeOf(failed ? result : result.meta());
        const accounts = failed ? [] : result.postAccounts();
        const refused = (err: string) => ({ err, logs: [], units: 0n, accounts: [] as EncodedAccount[] });
        if (outcome.err === "SignatureFailure") return refused(outcome.err);
        if (hasLanded(decoded)) return refused("AlreadyProcessed");
        if (!replaceBlockhash && isExpired(decoded)) return refused("BlockhashNotFound");
        return { ...outcome, accounts };
      } finally {
        svm.withSigverify(true);
      }
    },
    find: (signature: string): LandedTransaction | undefined => landed.get(signature),
    /** Newest first. */
    transactionsOf: (address: Address): LandedTransaction[] =>
      [...landed.values()].filter(({ message }) => message.staticAccounts.includes(address)).toReversed(),
  };
}

const messageKey = ({ messageBytes }: Transaction): string => Buffer.from(messageBytes).toString("base64");

const balancesOf = (svm: LiteSVM, addresses: readonly Address[]): Balances => ({
  lamports: addresses.map((address) => svm.getBalance(address) ?? 0n),
  tokens: tokenBalances(svm, addresses),
});

const closedAccount = {
  data: new Uint8Array(),
  executable: false,
  lamports: lamports(0n),
  programAddress: systemProgram,
  space: 0n,
};

/** A closed account is stored without lamports, so that a restart does not restore it. */
const accountsAfter = (svm: LiteSVM, addresses: readonly Address[]): EncodedAccount[] =>
  addresses.flatMap((address) => {
    const account = svm.getAccount(address);
    if (!account.exists) return { address, ...closedAccount };
    return account.executable ? [] : account;
  });

function outcomeOf(result: FailedTransactionMetadata | TransactionMetadata): Outcome {
  const failed = result instanceof FailedTransactionMetadata;
  const meta = failed ? result.meta() : result;
  return { err: failed ? errorOf(result) : null, logs: meta.logs(), units: meta.computeUnitsConsumed() };
}

/**
 * LiteSVM exports its errors only as numbers. Their names are in its debug text, for example `InstructionError(2,
 * Custom(1))` or `InsufficientFundsForRent { account_index: 1 }`.
 */
function errorOf(failed: FailedTransactionMetadata): TransactionError {
  const [, rest = ""] = /\berr: (.*)/s.exec(failed.toString()) ?? [];
  const [text = ""] = rest.split(", meta: ", 1);
  const [, index, name = "", code] = /^InstructionError\((\d+), (\w+)(?:\((\d+)\))?/.exec(text) ?? [];
  if (index !== undefined)
    return { InstructionError: [Number(index), code === undefined ? name : { [name]: Number(code) }] };
  const [, kind = text, duplicate, account] = /^(\w+)(?:\((\d+)\)| \{ account_index: (\d+) \})$/.exec(text) ?? [];
  if (duplicate !== undefined) return { [kind]: Number(duplicate) };
  return account === undefined ? kind : { [kind]: { account_index: Number(account) } };
}

interface JournalEntry {
  readonly landed: LandedTransaction;
  /** The transaction's accounts after it ran. */
  readonly accounts: readonly EncodedAccount[];
}

/**
 * A file with one line per landed transaction, written before the transaction is visible. Blockhashes are not stored: a
 * transaction that was signed but not sent before a restart cannot land after it.
 */
function openJournal(file: string) {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  if (text !== "" && !text.endsWith("\n")) appendFileSync(file, "\n");
  // A line without its final full stop was cut off by a crash; its transaction was never visible.
  const lines = text.split("\n").filter((line) => line.endsWith("."));
  return {
    entries: lines.map((line): JournalEntry => {
      const { fields, accounts } = deserialize(Buffer.from(line.slice(0, -1), "base64"));
      const decoded = decodeTransaction(fields.wire);
      const signature = getSignatureFromTransaction(decoded.transaction);
      return { landed: { ...decoded, ...fields, signature }, accounts };
    }),
    append({ landed, accounts }: JournalEntry): void {
      const { transaction, message: _, signature: __, ...outcome } = landed;
      const fields = { ...outcome, wire: getBase64EncodedWireTransaction(transaction) };
      appendFileSync(file, `${serialize({ fields, accounts }).toString("base64")}.\n`, { mode: 0o600 });
    },
  };
}
