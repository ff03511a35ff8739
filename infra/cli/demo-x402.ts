import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { address, createKeyPairSignerFromBytes, createSolanaRpc, getBase58Encoder } from "@solana/kit";
import { findAssociatedTokenPda, TOKEN_PROGRAM_ADDRESS } from "@solana-program/token";
import { x402Client, x402HTTPClient } from "@x402/core/client";
import { ExactSvmScheme } from "@x402/svm/exact/client";
import { z } from "zod";
import { readStartConfig } from "./start-config.ts";

/** Pays for an image with the demo's wallet and the official client, as any payer would: no account, no key. */
const demoFile = z.object({
  baseUrl: z.string(),
  x402: z.object({ network: z.string(), rpcUrl: z.string(), payTo: z.string(), wallet: z.string() }),
});
type Demo = z.infer<typeof demoFile>;

const request = { model: "local/image", prompt: process.argv[2] ?? "A lighthouse at dusk" };
const imageAnswer = z.object({ data: z.array(z.object({ url: z.string() })).min(1) });
const timeoutMs = 300_000;
const say = (line: string) => void process.stdout.write(`${line}\n`);

async function buyImage({ baseUrl, x402 }: Demo): Promise<void> {
  const secret = new Uint8Array(getBase58Encoder().encode(x402.wallet));
  const signer = await createKeyPairSignerFromBytes(secret);
  const core = new x402Client().register("solana:*", new ExactSvmScheme(signer, { rpcUrl: x402.rpcUrl }));
  const client = new x402HTTPClient(core);
  const url = `${baseUrl}/v1/images/generations`;
  const ask = (headers: Record<string, string>) =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(timeoutMs),
    });

  const quoted = await ask({});
  const body: unknown = await quoted.json();
  if (quoted.status !== 402) throw new Error(`${url} answered ${quoted.status}: ${JSON.stringify(body)}`);
  const quote = client.getPaymentRequiredResponse((name) => quoted.headers.get(name), body);
  const [offer] = quote.accepts;
  if (!offer) throw new Error("The quote offers no way to pay.");
  say(`An image of ${request.model} costs ${usdc(offer.amount)} USDC, to ${offer.payTo}.`);

  const balance = () => balanceOf(x402.rpcUrl, signer.address, offer.asset);
  const before = await balance();
  const payment = client.encodePaymentSignatureHeader(await client.createPaymentPayload(quote));
  const paid = await ask(payment);
  const answer: unknown = await paid.json();
  if (!paid.ok) throw new Error(`The paid call was answered ${paid.status}: ${JSON.stringify(answer)}`);
  const receipt = client.getPaymentSettleResponse((name) => paid.headers.get(name));
  say(`Paid by transaction ${receipt.transaction}.`);
  say(`The wallet ${signer.address} had ${usdc(before)} USDC and has ${usdc(await balance())}.`);
  say(`The image: ${imageAnswer.parse(answer).data[0]?.url}`);
}

async function balanceOf(rpcUrl: string, owner: string, mint: string): Promise<string> {
  const seeds = { owner: address(owner), mint: address(mint), tokenProgram: TOKEN_PROGRAM_ADDRESS };
  const [account] = await findAssociatedTokenPda(seeds);
  const { value } = await createSolanaRpc(rpcUrl).getTokenAccountBalance(account).send();
  return value.amount;
}

/** Base units as people read them: "40001" -> "0.040001" */
function usdc(units: string): string {
  const digits = units.padStart(7, "0");
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

async function readDemo(): Promise<Demo> {
  const file = join(readStartConfig(process.env).DATA_DIR, "demo.json");
  try {
    return demoFile.parse(JSON.parse(await readFile(file, "utf8")));
  } catch (error) {
    throw new Error(`${file} tells of no demo that takes payments. Run npm start first.`, { cause: error });
  }
}

try {
  await buyImage(await readDemo());
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
}
