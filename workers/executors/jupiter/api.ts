import type { Address, Instruction } from "@solana/kit";
import type { Clock } from "#platform/clock";
import { createHttpClient, type HttpAnswer } from "#platform/http";
import { type Build, buildShape, instructionOf } from "./build.ts";

export interface JupiterApi {
  /** The best route now. Throws where there is none, or where it is not what was asked for. */
  build(ask: Ask, signal: AbortSignal): Promise<Swap>;
  close(): Promise<void>;
}

export interface Ask {
  readonly wallet: Address;
  readonly from: Address;
  readonly to: Address;
  /** Base units. */
  readonly amount: bigint;
  /** How much worse than the market it may be quoted, and how much less than quoted it may bring. */
  readonly slippageBps: number;
}

/** What somebody else proposes to sign. */
export interface Swap {
  readonly instructions: readonly Instruction[];
  /** To look up the instructions' accounts in, so that they fit. */
  readonly tables: readonly Address[];
  /** What is offered to be taken soon. */
  readonly fees: readonly Instruction[];
  /** Base units that it must bring. */
  readonly least: bigint;
}

const limitBytes = 512 * 1024;
const timeoutMs = 15_000;

/** Jupiter's Swap API, version 2. */
export function connectJupiter(baseUrl: string, apiKey: string | undefined, clock: Clock): JupiterApi {
  const { origin, pathname } = new URL(baseUrl);
  const http = createHttpClient({ origin, connections: 2, clock });
  const base = pathname.replace(/\/+$/, "");
  const headers = { accept: "application/json", ...(apiKey !== undefined && { "x-api-key": apiKey }) };

  async function get(path: string, query: Record<string, string>, signal: AbortSignal): Promise<unknown> {
    const answer = await http.send({
      method: "GET",
      path: `${base}${path}?${new URLSearchParams(query).toString()}`,
      headers,
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    const text = await textOf(answer);
    if (answer.status !== 200) throw new Error(`Jupiter answered ${answer.status}: ${text.slice(0, 300)}`);
    return JSON.parse(text);
  }

  return {
    async build(ask, signal) {
      const { wallet, from, to, amount, slippageBps } = ask;
      const query = {
        inputMint: from,
        outputMint: to,
        amount: String(amount),
        taker: wallet,
        slippageBps: String(slippageBps),
        // Else what is bought as wrapped SOL would not be a token any more.
        wrapAndUnwrapSol: "false",
        computeUnitPricePercentile: "high",
        // Of 64: leaves room for the memo.
        maxAccounts: "60",
      };
      const build = buildShape.parse(await get("/build", query, signal));
      checkQuote(build, ask);
      const { setupInstructions, swapInstruction, otherInstructions, cleanupInstruction } = build;
      const all = [...setupInstructions, swapInstruction, ...otherInstructions, cleanupInstruction ?? []].flat();
      return {
        instructions: all.map(instructionOf),
        tables: Object.keys(build.addressesByLookupTableAddress ?? {}) as Address[],
        fees: build.computeBudgetInstructions.map(instructionOf),
        least: BigInt(build.otherAmountThreshold),
      };
    },
    close: () => http.close(),
  };
}

function checkQuote(build: Build, { from, to, amount, slippageBps }: Ask): void {
  const asked = { inputMint: from, outputMint: to, inAmount: String(amount), slippageBps };
  for (const [field, value] of Object.entries(asked))
    if (build[field as keyof Build] !== value)
      throw new Error(`Jupiter's quote has another ${field} than was asked for`);
  const least = BigInt(build.otherAmountThreshold);
  // Rounded down, as Jupiter rounds.
  if (least < (BigInt(build.outAmount) * BigInt(10_000 - slippageBps)) / 10_000n)
    throw new Error("Jupiter's quote allows more slippage");
  if (least === 0n) throw new Error("Jupiter's quote brings nothing");
  // Better or worse: its sign is not the same everywhere.
  if (Math.abs(Number(build.priceImpactPct)) * 10_000 > slippageBps)
    throw new Error(`Jupiter's quote moves the price by ${build.priceImpactPct}`);
}

async function textOf({ body }: HttpAnswer): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limitBytes) throw new Error("Jupiter's answer is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
