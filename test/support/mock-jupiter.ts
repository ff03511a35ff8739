import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type Address,
  appendTransactionMessageInstructions,
  createSolanaRpc,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  type Instruction,
  partiallySignTransactionMessageWithSigners,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  type TransactionSigner,
} from "@solana/kit";
import { getCreateAssociatedTokenIdempotentInstruction, getTransferCheckedInstruction } from "@solana-program/token";
import { onTestFinished } from "vitest";
import type { SolanaChain, Wallet } from "../../infra/embedded/solana/index.ts";

/** A swap that is asked for, with the accounts that it goes between. */
export interface Swap {
  readonly owner: TransactionSigner;
  readonly pool: Wallet;
  readonly token: Address;
  readonly amountIn: bigint;
  readonly amountOut: bigint;
}

export interface Behaviour {
  /** The quote as it is answered. */
  quote: (quote: Record<string, unknown>) => unknown;
  /** What the transaction does before what an honest one does. */
  first: (swap: Swap) => Instruction[];
  /** And after it. */
  more: (swap: Swap) => Promise<Instruction[]> | Instruction[];
  /** What an honest transaction moves. */
  amounts: (swap: Swap) => Swap;
  feePayer: (owner: Address) => Address;
  /** Answered in place of anything else. */
  status: number | undefined;
}

/** Jupiter's swap interface: a pool that gives `price` units of a token for a unit of USDC. */
export async function startMockJupiter(chain: SolanaChain, token: Address, price = 3n) {
  const pool = await chain.wallet("0");
  await chain.setBalance(pool.address, 10n ** 12n, token);
  const behaviour: Behaviour = {
    quote: (quote) => quote,
    first: () => [],
    more: () => [],
    amounts: (swap) => swap,
    feePayer: (owner) => owner,
    status: undefined,
  };
  const requests: { readonly path: string; readonly key: string | undefined }[] = [];

  function quote(query: URLSearchParams): unknown {
    const amount = BigInt(query.get("amount") ?? 0);
    const slippageBps = Number(query.get("slippageBps"));
    return behaviour.quote({
      inputMint: query.get("inputMint"),
      inAmount: String(amount),
      outputMint: query.get("outputMint"),
      outAmount: String(amount * price),
      otherAmountThreshold: String((amount * price * BigInt(10_000 - slippageBps)) / 10_000n),
      swapMode: "ExactIn",
      slippageBps,
      platformFee: null,
      priceImpactPct: "0",
      routePlan: [{ swapInfo: { label: "Mock" }, percent: 100 }],
      contextSlot: 1,
      timeTaken: 0.001,
    });
  }

  async function swap(body: { quoteResponse: Record<string, string>; userPublicKey: Address }): Promise<unknown> {
    const { quoteResponse, userPublicKey } = body;
    if (!quoteResponse.routePlan) throw new Error("the quote is not whole");
    // Named as a signer; whose key it is, its owner has.
    const owner = { address: userPublicKey, signTransactions: () => Promise.resolve([{}]) } as TransactionSigner;
    const [amountIn, amountOut] = [BigInt(quoteResponse.inAmount ?? 0), BigInt(quoteResponse.outAmount ?? 0)];
    const asked: Swap = { owner, pool, token, amountIn, amountOut };
    const { value } = await createSolanaRpc(chain.rpcUrl).getLatestBlockhash({ commitment: "confirmed" }).send();
    const instructions = [
      ...behaviour.first(asked),
      ...(await honest(chain, behaviour.amounts(asked))),
      ...(await behaviour.more(asked)),
    ];
    const message = pipe(
      createTransactionMessage({ version: 0 }),
      (each) => setTransactionMessageFeePayer(behaviour.feePayer(userPublicKey), each),
      (each) => setTransactionMessageLifetimeUsingBlockhash(value, each),
      (each) => appendTransactionMessageInstructions(instructions, each),
    );
    const signed = await partiallySignTransactionMessageWithSigners(message);
    return { swapTransaction: getBase64EncodedWireTransaction(signed), lastValidBlockHeight: 1 };
  }

  const server = createServer((request, response) => {
    void (async () => {
      const url = new URL(request.url ?? "/", "http://localhost");
      const key = request.headers["x-api-key"];
      requests.push({ path: url.pathname, key: typeof key === "string" ? key : undefined });
      let text = "";
      for await (const chunk of request) text += String(chunk);
      if (behaviour.status !== undefined) return response.writeHead(behaviour.status).end('{"error":"No route found"}');
      const answer = url.pathname.endsWith("/quote") ? quote(url.searchParams) : await swap(JSON.parse(text));
      return response.end(JSON.stringify(answer));
    })().catch((error: unknown) => response.writeHead(400).end(String(error)));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/swap/v1`, pool, behaviour, requests };
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
      authority: pool.signer,
      amount: amountOut,
      decimals: 6,
    }),
  ];
}
