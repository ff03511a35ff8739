import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { deserialize, serialize } from "node:v8";
import type { EncodedAccount } from "@solana/kit";
import { asSent, decodeTransaction, type LandedTransaction } from "./transactions.ts";

export interface JournalEntry {
  readonly landed: LandedTransaction;
  /** The transaction's accounts after it. */
  readonly accounts: readonly EncodedAccount[];
}

/**
 * A file with one line per landed transaction, written before the transaction is visible. Blockhashes are not stored:
 * what was signed but not sent before a restart cannot land after it.
 */
export function openJournal(file: string) {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  if (text !== "" && !text.endsWith("\n")) appendFileSync(file, "\n");
  return {
    entries: text.split("\n").flatMap((line) => decode(line) ?? []),
    append: ({ landed, accounts }: JournalEntry): void => {
      const { transaction: _, message: __, signature: ___, ...fields } = landed;
      appendFileSync(file, `${serialize({ fields, accounts }).toString("base64")}.\n`, { mode: 0o600 });
    },
  };
}

/** A line without its final full stop was cut off by a crash; its transaction was never visible. */
function decode(line: string): JournalEntry | undefined {
  if (!line.endsWith(".")) return undefined;
  const { fields, accounts } = deserialize(Buffer.from(line.slice(0, -1), "base64"));
  const sent = asSent(decodeTransaction(fields.wire));
  return sent && { landed: { ...sent, ...fields }, accounts };
}
