import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { deserialize, serialize } from "node:v8";
import type { EncodedAccount } from "@solana/kit";
import { decodeSent, type Landed } from "./transactions.ts";

/** A landed transaction, with the accounts that it named as it left them. */
export interface Entry {
  readonly landed: Landed;
  readonly accounts: readonly EncodedAccount[];
}

export interface Journal {
  readonly entries: readonly Entry[];
  append(entry: Entry): void;
}

/**
 * Keeps a chain over restarts: a line for each transaction, written before anybody hears of it. Hashes of blocks are not
 * kept: what was signed before a restart and not sent can land no more.
 */
export function openJournal(file: string): Journal {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  if (text !== "" && !text.endsWith("\n")) appendFileSync(file, "\n");
  return {
    entries: text.split("\n").flatMap((line) => decode(line) ?? []),
    append: ({ landed, accounts }) => {
      const { transaction: _, message: __, signature: ___, ...kept } = landed;
      appendFileSync(file, `${serialize({ kept, accounts }).toString("base64")}.\n`, { mode: 0o600 });
    },
  };
}

/** A line that a crash cut off has no full stop, and nobody was told of it. */
function decode(line: string): Entry | undefined {
  if (!line.endsWith(".")) return undefined;
  const { kept, accounts } = deserialize(Buffer.from(line.slice(0, -1), "base64"));
  return { landed: { ...decodeSent(kept.wire), ...kept }, accounts };
}
