import { type Address, getSignatureFromTransaction, isAddress, type Signature } from "@solana/kit";
import { z } from "zod";
import { accountJson, amountOfMint, decodeMint, decodeTokenAccount } from "./accounts.ts";
import { type Commitment, commitments } from "./blocks.ts";
import type { Chain } from "./chain.ts";
import { signatureJson, statusJson, transactionEncodings, transactionJson } from "./transaction-json.ts";
import { type DecodedTransaction, decodeTransaction, type LandedTransaction, type Outcome } from "./transactions.ts";

/** A JSON-RPC error with the code that a validator uses. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

type Method = (chain: Chain, params: readonly unknown[]) => unknown;

/** Defines a method by the types of its positional parameters. */
const method =
  <T extends readonly z.ZodType[]>(
    types: readonly [...T],
    run: (chain: Chain, ...params: { [N in keyof T]: z.output<T[N]> }) => unknown,
  ): Method =>
  (chain, given) => {
    const params = types.map((type, n) => {
      const parsed = type.safeParse(given[n]);
      if (parsed.success) return parsed.data;
      throw invalidParams(parsed.error.issues.map(({ path, message }) => [...path, message].join(" ")).join("; "));
    });
    return run(chain, ...(params as { [N in keyof T]: z.output<T[N]> }));
  };

const invalidParams = (message: string) => new RpcError(-32602, `Invalid params: ${message}`);
const badSignature = () => new RpcError(-32003, "Transaction signature verification failure");

const text = z.string();
const address = text.refine(isAddress, { error: ({ input }) => `${String(input)} is not an address` });
const encoding = z.literal("base64");

/** Some clients send null for absent options. */
const withoutNulls = (given: unknown) =>
  typeof (given ?? {}) === "object"
    ? Object.fromEntries(Object.entries(given ?? {}).filter(([, each]) => each !== null))
    : given;
const options = <T extends z.ZodRawShape>(shape: T) =>
  z.preprocess(withoutNulls, z.object({ commitment: z.enum(commitments).default("finalized"), ...shape }));
const atCommitment = options({});
const accountOptions = options({ encoding });

function decode(wire: string): DecodedTransaction {
  try {
    return decodeTransaction(wire);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RpcError(-32602, `failed to deserialize transaction: ${reason}`);
  }
}

const withContext = (chain: Chain, value: unknown, commitment: Commitment = "processed") => ({
  context: { apiVersion: "3.0.0", slot: chain.blocks.slot(commitment) },
  value,
});

function accountAt({ svm }: Chain, at: Address) {
  const account = svm.getAccount(at);
  return account.exists ? accountJson(account) : null;
}

const simulationJson = ({ err, logs, units }: Outcome, accounts: unknown = null) => ({
  err,
  logs,
  unitsConsumed: units,
  accounts,
  returnData: null,
  innerInstructions: null,
});

function send(chain: Chain, sent: DecodedTransaction, skipPreflight = false): Signature {
  // The first signature is the fee payer's and identifies the transaction.
  if (!Object.values(sent.transaction.signatures)[0]) throw badSignature();
  if (!skipPreflight) {
    const simulated = chain.simulate(sent, { sigVerify: true });
    if (simulated.err === "SignatureFailure") throw badSignature();
    const message = `Transaction simulation failed: ${JSON.stringify(simulated.err)}`;
    if (simulated.err !== null) throw new RpcError(-32002, message, simulationJson(simulated));
  }
  chain.send(sent);
  return getSignatureFromTransaction(sent.transaction);
}

const hasReached = ({ blocks }: Chain, { slot }: LandedTransaction, commitment: Commitment): boolean =>
  commitments.indexOf(blocks.commitmentOf(slot)) >= commitments.indexOf(commitment);

const getSlot = method([atCommitment], ({ blocks }, { commitment }) => blocks.slot(commitment));

/** The validator methods that payments, buybacks and the clients of x402 use. */
export const methods: Readonly<Record<string, Method>> = {
  getHealth: () => "ok",
  getVersion: () => ({ "solana-core": "3.0.0", "feature-set": 0 }),
  getGenesisHash: ({ genesis }) => genesis,
  getSlot,
  getBlockHeight: getSlot,
  getLatestBlockhash: method([atCommitment], (chain, { commitment }) => {
    const { hash, lastValidHeight } = chain.blocks.latest(commitment);
    return withContext(chain, { blockhash: hash, lastValidBlockHeight: lastValidHeight }, commitment);
  }),
  isBlockhashValid: method([text, atCommitment], (chain, hash, { commitment }) =>
    withContext(chain, chain.blocks.isValid(hash, commitment), commitment),
  ),

  getBalance: method([address], (chain, at) => withContext(chain, chain.svm.getBalance(at) ?? 0n)),
  getAccountInfo: method([address, accountOptions], (chain, at) => withContext(chain, accountAt(chain, at))),
  getMultipleAccounts: method([z.array(address).max(100), accountOptions], (chain, addresses) => {
    const accounts = addresses.map((at) => accountAt(chain, at));
    return withContext(chain, accounts);
  }),
  getTokenAccountBalance: method([address], (chain, at) => {
    const token = decodeTokenAccount(chain.svm.getAccount(at));
    if (!token) throw new RpcError(-32602, "Invalid param: could not find account");
    return withContext(chain, amountOfMint(chain.svm, token.mint, token.amount));
  }),
  getTokenSupply: method([address], (chain, at) => {
    const mint = decodeMint(chain.svm.getAccount(at));
    if (!mint) throw invalidParams("could not find mint");
    return withContext(chain, amountOfMint(chain.svm, at, mint.supply));
  }),

  simulateTransaction: method(
    [
      text,
      options({
        encoding,
        accounts: z.object({ addresses: z.array(address).max(64), encoding }).optional(),
        replaceRecentBlockhash: z.boolean().default(false),
        sigVerify: z.boolean().default(false),
      }),
    ],
    (chain, wire, { accounts, replaceRecentBlockhash: replaceBlockhash, sigVerify }) => {
      const simulated = chain.simulate(decode(wire), { replaceBlockhash, sigVerify });
      if (simulated.err === "SignatureFailure") throw badSignature();
      const after = accounts?.addresses.map((at) => {
        const changed = simulated.accounts.find((account) => account.address === at);
        return changed ? accountJson(changed) : accountAt(chain, at);
      });
      return withContext(chain, simulationJson(simulated, simulated.err === null ? after : null));
    },
  ),
  sendTransaction: method(
    [text, options({ encoding, skipPreflight: z.boolean().default(false) })],
    (chain, wire, { skipPreflight }) => send(chain, decode(wire), skipPreflight),
  ),
  getSignatureStatuses: method(
    [z.array(text).max(256), options({ searchTransactionHistory: z.boolean().default(false) })],
    (chain, signatures, { searchTransactionHistory }) => {
      const statuses = signatures.map((signature) => {
        const found = chain.find(signature);
        const isVisible = found && (searchTransactionHistory || chain.blocks.isRecent(found.slot));
        return isVisible ? statusJson(chain, found) : null;
      });
      return withContext(chain, statuses);
    },
  ),
  getTransaction: method(
    [
      text,
      options({
        encoding: z.enum(transactionEncodings).default("json"),
        maxSupportedTransactionVersion: z.number().optional(),
      }),
    ],
    (chain, signature, { commitment, encoding, maxSupportedTransactionVersion }) => {
      const found = chain.find(signature);
      if (commitment === "processed") throw invalidParams("Method does not support commitment below `confirmed`");
      if (!found || !hasReached(chain, found, commitment)) return null;
      if (found.message.version !== "legacy" && maxSupportedTransactionVersion === undefined)
        throw new RpcError(-32015, "Transaction version (0) is not supported by the requesting client");
      return transactionJson(found, encoding);
    },
  ),
  getSignaturesForAddress: method(
    [
      address,
      options({
        limit: z.number().int().min(1).max(1000).default(1000),
        before: text.optional(),
        until: text.optional(),
        minContextSlot: z.number().int().optional(),
      }),
    ],
    (chain, at, { commitment, limit, before, until, minContextSlot = 0 }) => {
      if (chain.blocks.slot(commitment) < BigInt(minContextSlot))
        throw new RpcError(-32016, "Minimum context slot has not been reached");
      const all = chain.transactionsOf(at).filter((each) => hasReached(chain, each, commitment));
      const start = before === undefined ? 0 : all.findIndex(({ signature }) => signature === before) + 1;
      const end = until === undefined ? -1 : all.findIndex(({ signature }) => signature === until);
      const page = all.slice(start, end === -1 ? undefined : end).slice(0, limit);
      return page.map((each) => signatureJson(chain, each));
    },
  ),
};
