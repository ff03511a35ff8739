import { z } from "zod";
import type { Clock } from "#platform/clock";
import { createHttpClient, type HttpAnswer } from "#platform/http";

export interface JupiterApi {
  /** The best route now. Throws where there is none, or where it is not what was asked for. */
  quote(ask: Ask, signal: AbortSignal): Promise<Quote>;
  /** Base64 of a transaction for the quote, which only the wallet has still to sign. */
  swap(quote: Quote, wallet: string, signal: AbortSignal): Promise<string>;
  close(): Promise<void>;
}

export interface Ask {
  readonly from: string;
  readonly to: string;
  /** Base units. */
  readonly amount: bigint;
  readonly slippageBps: number;
}

/** Sent back as it came; these are the fields that are read. */
const quoteShape = z.looseObject({
  inputMint: z.string(),
  outputMint: z.string(),
  inAmount: z.string().regex(/^\d{1,20}$/),
  outAmount: z.string().regex(/^\d{1,20}$/),
  otherAmountThreshold: z.string().regex(/^\d{1,20}$/),
  swapMode: z.literal("ExactIn"),
  slippageBps: z.number(),
});
const swapShape = z.object({ swapTransaction: z.string().min(1).max(4_096) });
type Quote = z.infer<typeof quoteShape>;

const limitBytes = 512 * 1024;
const timeoutMs = 15_000;
/** The most to pay for being taken soon. */
const maxLamports = 1_000_000;

export function connectJupiter(baseUrl: string, apiKey: string | undefined, clock: Clock): JupiterApi {
  const { origin, pathname } = new URL(baseUrl);
  const http = createHttpClient({ origin, connections: 2, clock });
  const base = pathname.replace(/\/+$/, "");
  const headers = { accept: "application/json", ...(apiKey !== undefined && { "x-api-key": apiKey }) };

  async function ask(path: string, body: string | undefined, signal: AbortSignal): Promise<unknown> {
    const answer = await http.send({
      method: body === undefined ? "GET" : "POST",
      path: base + path,
      headers: body === undefined ? headers : { ...headers, "content-type": "application/json" },
      ...(body !== undefined && { body }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    const text = await textOf(answer);
    if (answer.status !== 200) throw new Error(`Jupiter answered ${answer.status}: ${text.slice(0, 300)}`);
    return JSON.parse(text);
  }

  return {
    async quote({ from, to, amount, slippageBps }, signal) {
      const query = new URLSearchParams({
        inputMint: from,
        outputMint: to,
        amount: String(amount),
        slippageBps: String(slippageBps),
        swapMode: "ExactIn",
      });
      const quote = quoteShape.parse(await ask(`/quote?${query.toString()}`, undefined, signal));
      const asked = { inputMint: from, outputMint: to, inAmount: String(amount), slippageBps };
      for (const [field, value] of Object.entries(asked))
        if (quote[field] !== value) throw new Error(`Jupiter's quote has another ${field} than was asked for`);
      if (BigInt(quote.otherAmountThreshold) < leastOf(quote)) throw new Error("Jupiter's quote allows more slippage");
      return quote;
    },
    async swap(quote, wallet, signal) {
      const body = {
        quoteResponse: quote,
        userPublicKey: wallet,
        // Else what is bought as wrapped SOL would not be a token any more.
        wrapAndUnwrapSol: false,
        dynamicComputeUnitLimit: true,
        prioritizationFeeLamports: { priorityLevelWithMaxLamports: { priorityLevel: "high", maxLamports } },
      };
      return swapShape.parse(await ask("/swap", JSON.stringify(body), signal)).swapTransaction;
    },
    close: () => http.close(),
  };
}

/** Rounded down, as Jupiter rounds. */
const leastOf = ({ outAmount, slippageBps }: Quote): bigint =>
  (BigInt(outAmount) * BigInt(10_000 - slippageBps)) / 10_000n;

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
