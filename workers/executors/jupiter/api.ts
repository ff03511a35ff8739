import { AccountRole, type Address, type Instruction, isAddress, upgradeRoleToSigner } from "@solana/kit";
import { z } from "zod";
import type { Clock } from "#platform/clock";
import { createHttpClient, type HttpAnswer } from "#platform/http";

/** Amounts are base units of the two tokens. */
interface SwapRequest {
  readonly wallet: Address;
  readonly from: Address;
  readonly to: Address;
  readonly amount: bigint;
  /** Bounds both the price impact of the quote and the loss between quote and execution. */
  readonly slippageBps: number;
}

/** A transaction that Jupiter proposes. */
export type Swap = Awaited<ReturnType<ReturnType<typeof connectJupiter>["build"]>>;

const address = z.custom<Address>((value) => typeof value === "string" && isAddress(value), "no address");
const amount = z.string().regex(/^\d{1,20}$/);
const account = z
  .object({ pubkey: address, isSigner: z.boolean(), isWritable: z.boolean() })
  .transform(({ pubkey, isSigner, isWritable }) => {
    const role = isWritable ? AccountRole.WRITABLE : AccountRole.READONLY;
    return { address: pubkey, role: isSigner ? upgradeRoleToSigner(role) : role };
  });
const instruction = z
  .object({ programId: address, accounts: z.array(account).max(256), data: z.base64() })
  .transform(({ programId, accounts, data }): Instruction => {
    return { programAddress: programId, accounts, data: Buffer.from(data, "base64") };
  });
const instructions = z.array(instruction).max(32);

/** `GET /build`: a quote and the instructions for it. */
const buildShape = z.object({
  inputMint: z.string(),
  outputMint: z.string(),
  inAmount: amount,
  outAmount: amount,
  otherAmountThreshold: amount,
  swapMode: z.literal("ExactIn"),
  slippageBps: z.number(),
  /** A ratio, despite its name: "0.001" is 0.1 %. */
  priceImpactPct: z.string().regex(/^-?\d+(\.\d+)?(e-?\d+)?$/i),
  computeBudgetInstructions: instructions,
  setupInstructions: instructions,
  swapInstruction: instruction,
  cleanupInstruction: instruction.nullish(),
  otherInstructions: instructions.default([]),
  /** Only the keys are used; the contents are read from the chain. */
  addressesByLookupTableAddress: z.record(address, z.unknown()).nullish(),
});
type Build = z.infer<typeof buildShape>;

const limitBytes = 512 * 1024;
const timeoutMs = 15_000;

export function connectJupiter(baseUrl: string, apiKey: string | undefined, clock: Clock) {
  const { origin, pathname } = new URL(baseUrl);
  const http = createHttpClient({ origin, connections: 2, clock });
  const base = pathname.replace(/(?<!\/)\/+$/, "");
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
    /** The best route now. Rejects if there is none, or if the quote differs from the request. */
    async build(request: SwapRequest, signal: AbortSignal) {
      const { wallet, from, to, amount, slippageBps } = request;
      const query = {
        inputMint: from,
        outputMint: to,
        amount: String(amount),
        taker: wallet,
        slippageBps: String(slippageBps),
        // Otherwise SOL would arrive unwrapped, which is not the token.
        wrapAndUnwrapSol: "false",
        computeUnitPricePercentile: "high",
        // A transaction has at most 64; the memo needs some.
        maxAccounts: "60",
      };
      const build = buildShape.parse(await get("/build", query, signal));
      checkQuote(build, request);
      const { setupInstructions, swapInstruction, otherInstructions, cleanupInstruction } = build;
      return {
        instructions: [...setupInstructions, swapInstruction, ...otherInstructions, cleanupInstruction ?? []].flat(),
        /** Lookup tables that shorten the list of accounts. */
        tables: Object.keys(build.addressesByLookupTableAddress ?? {}) as Address[],
        /** The priority fee. */
        fees: build.computeBudgetInstructions,
        /** The minimum amount that the swap must yield. */
        minReceived: BigInt(build.otherAmountThreshold),
      };
    },
    close: (): Promise<void> => http.close(),
  };
}

function checkQuote(build: Build, { from, to, amount, slippageBps }: SwapRequest): void {
  const expected = { inputMint: from, outputMint: to, inAmount: String(amount), slippageBps };
  for (const [field, value] of Object.entries(expected))
    if (build[field as keyof Build] !== value) throw new Error(`Jupiter's quote has another ${field} than requested`);
  const minReceived = BigInt(build.otherAmountThreshold);
  // Rounds down, as Jupiter does.
  if (minReceived < (BigInt(build.outAmount) * BigInt(10_000 - slippageBps)) / 10_000n)
    throw new Error("Jupiter's quote allows more slippage");
  if (minReceived === 0n) throw new Error("Jupiter's quote brings nothing");
  // Uses the absolute value, because Jupiter does not use the sign consistently.
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
