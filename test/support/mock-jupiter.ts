import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type Address,
  appendTransactionMessageInstructions,
  createSolanaRpc,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  type Instruction,
  isSignerRole,
  isWritableRole,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
  type TransactionSigner,
} from "@solana/kit";
import {
  getApproveInstruction,
  getCreateAssociatedTokenIdempotentInstruction,
  getTransferCheckedInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from "@solana-program/token";
import { onTestFinished } from "vitest";
import type { Wallet } from "../../infra/embedded/solana/index.ts";
import type { SolanaChain } from "./solana.ts";

/** A requested swap, with the accounts that it transfers between. */
export interface Swap {
  readonly owner: TransactionSigner;
  readonly pool: Wallet;
  readonly token: Address;
  readonly amountIn: bigint;
  readonly amountOut: bigint;
}

export interface Behavior {
  /** Changes the response except its instructions. */
  quote: (quote: Record<string, unknown>) => Record<string, unknown>;
  /** Adds instructions to those of an honest swap. */
  more: (swap: Swap) => Promise<Instruction[]> | Instruction[];
  /** Changes the amounts of an honest swap. */
  amounts: (swap: Swap) => Swap;
  /** Micro-lamports per compute unit. */
  price: bigint;
  /** Returned in place of any other response. */
  status: number | undefined;
}

/**
 * Jupiter's swap interface, version 2: a pool that gives `price` units of a token for a unit of USDC. Its program on
 * chain is the token program, and the wallet may take the pool's payment.
 */
export async function startMockJupiter(chain: SolanaChain, token: Address, wallet: Address, price = 3n) {
  const pool = await chain.wallet("0");
  await chain.setBalance(pool.address, 10n ** 12n, token);
  await letTake(chain, pool, token, wallet);
  const behavior: Behavior = {
    quote: (quote) => quote,
    more: () => [],
    amounts: (swap) => swap,
    price: 25_715n,
    status: undefined,
  };
  const requests: { readonly path: string; readonly key: string | undefined }[] = [];

  async function build(query: URLSearchParams): Promise<unknown> {
    const taker = query.get("taker") as Address;
    const amountIn = BigInt(query.get("amount") ?? 0);
    const slippageBps = Number(query.get("slippageBps"));
    const inAmount = String(amountIn);
    const amountOut = amountIn * price;
    const outAmount = String(amountOut);
    // The owner is only named as a signer, and signs itself.
    const owner = { address: taker, signTransactions: () => Promise.resolve([{}]) } as TransactionSigner;
    const asked: Swap = { owner, pool, token, amountIn, amountOut };
    const [setup, ...swap] = await honest(chain, behavior.amounts(asked));
    const quoted = behavior.quote({
      inputMint: query.get("inputMint"),
      outputMint: query.get("outputMint"),
      inAmount,
      outAmount,
      otherAmountThreshold: String((amountOut * BigInt(10_000 - slippageBps)) / 10_000n),
      swapMode: "ExactIn",
      slippageBps,
      priceImpactPct: "0.0001",
      routePlan: [
        { swapInfo: { ammKey: pool.address, label: "Mock", inAmount, outAmount }, percent: 100, bps: 10_000 },
      ],
    });
    const cost = Buffer.alloc(9);
    cost[0] = 3;
    cost.writeBigUInt64LE(behavior.price, 1);
    const budget = {
      programId: "ComputeBudget111111111111111111111111111111",
      accounts: [],
      data: cost.toString("base64"),
    };
    return {
      computeBudgetInstructions: [budget],
      setupInstructions: [setup].map(shown),
      swapInstruction: shown(swap[0]),
      cleanupInstruction: null,
      otherInstructions: [...swap.slice(1), ...(await behavior.more(asked))].map(shown),
      tipInstruction: null,
      addressesByLookupTableAddress: {},
      blockhashWithMetadata: { blockhash: Array.from({ length: 32 }, () => 7), lastValidBlockHeight: 1 },
      ...quoted,
    };
  }

  const server = createServer((request, response) => {
    void (async () => {
      const url = new URL(request.url ?? "/", "http://localhost");
      const key = request.headers["x-api-key"];
      requests.push({ path: url.pathname, key: typeof key === "string" ? key : undefined });
      if (behavior.status !== undefined) return response.writeHead(behavior.status).end('{"error":"No route found"}');
      return response.end(JSON.stringify(await build(url.searchParams)));
    })().catch((error: unknown) => response.writeHead(400).end(String(error)));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/swap/v2`,
    program: TOKEN_PROGRAM_ADDRESS,
    pool,
    behavior,
    requests,
  };
}

const shown = (instruction: Instruction | undefined) => ({
  programId: instruction?.programAddress,
  accounts: (instruction?.accounts ?? []).map(({ address, role }) => ({
    pubkey: address,
    isSigner: isSignerRole(role),
    isWritable: isWritableRole(role),
  })),
  data: Buffer.from(instruction?.data ?? []).toString("base64"),
});

async function letTake(chain: SolanaChain, pool: Wallet, token: Address, wallet: Address): Promise<void> {
  const source = await chain.tokenAccountOf(pool.address, token);
  const rpc = createSolanaRpc(chain.rpcUrl);
  const { value } = await rpc.getLatestBlockhash({ commitment: "confirmed" }).send();
  const approval = getApproveInstruction({ source, delegate: wallet, owner: pool.signer, amount: 10n ** 12n });
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (each) => setTransactionMessageFeePayerSigner(chain.feePayer.signer, each),
    (each) => setTransactionMessageLifetimeUsingBlockhash(value, each),
    (each) => appendTransactionMessageInstructions([approval], each),
  );
  const wire = getBase64EncodedWireTransaction(await signTransactionMessageWithSigners(message));
  await rpc.sendTransaction(wire, { encoding: "base64" }).send();
}

async function honest(chain: SolanaChain, { owner, pool, token, amountIn, amountOut }: Swap): Promise<Instruction[]> {
  const at = (holder: Address, mint?: Address) => chain.tokenAccountOf(holder, mint);
  return [
    getCreateAssociatedTokenIdempotentInstruction({
      payer: owner,
      ata: await at(owner.address, token),
      owner: owner.address,
      mint: token,
    }),
    getTransferCheckedInstruction({
      source: await at(owner.address),
      mint: chain.mint,
      destination: await at(pool.address),
      authority: owner,
      amount: amountIn,
      decimals: 6,
    }),
    getTransferCheckedInstruction({
      source: await at(pool.address, token),
      mint: token,
      destination: await at(owner.address, token),
      authority: owner,
      amount: amountOut,
      decimals: 6,
    }),
  ];
}
