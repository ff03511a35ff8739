import { address, createSolanaRpc } from "@solana/kit";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { ExactSvmScheme } from "@x402/svm/exact/client";
import { z } from "zod";
import { openWallet, tokenAccountOf } from "../embedded/solana/index.ts";
import { type PaidDemo, readPaidDemo } from "./paid-demo.ts";

const request = { model: "local/image", prompt: process.argv.slice(2).join(" ") || "A lighthouse at dusk" };
const imageAnswer = z.object({ data: z.array(z.object({ url: z.string() })).min(1) });
const timeoutMs = 300_000;
const say = (line: string) => void process.stdout.write(`${line}\n`);

/** Pays for an image with the demo's wallet and the official x402 client, without an account or a key. */
async function buyImage({ baseUrl, x402 }: PaidDemo): Promise<void> {
  const { signer: wallet } = await openWallet(x402.wallet);
  const client = new x402Client().register("solana:*", new ExactSvmScheme(wallet, { rpcUrl: x402.rpcUrl }));
  const sayBalance = async (mint: string) =>
    say(`The wallet ${wallet.address} has ${usdc(await balanceOf(x402.rpcUrl, wallet.address, mint))} USDC.`);
  let mint = "";
  client.onBeforePaymentCreation(async ({ selectedRequirements: { amount, asset, payTo } }) => {
    say(`An image of ${request.model} costs ${usdc(amount)} USDC, to ${payTo}.`);
    await sayBalance(asset);
    mint = asset;
  });

  const answer = await wrapFetchWithPayment(fetch, client)(`${baseUrl}/v1/images/generations`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
    signal: AbortSignal.timeout(timeoutMs),
  });
  const body: unknown = await answer.json();
  if (!answer.ok) throw new Error(`The service responded with ${answer.status}: ${JSON.stringify(body)}`);
  const { transaction } = decodePaymentResponseHeader(answer.headers.get("PAYMENT-RESPONSE") ?? "");
  say(`Paid by transaction ${transaction}.`);
  await sayBalance(mint);
  say(`The image: ${imageAnswer.parse(body).data[0]?.url}`);
}

async function balanceOf(rpcUrl: string, owner: string, mint: string): Promise<string> {
  const account = await tokenAccountOf(address(mint), address(owner));
  const { value } = await createSolanaRpc(rpcUrl).getTokenAccountBalance(account).send();
  return value.amount;
}

/** Formats base units, so that "40001" becomes "0.040001". */
function usdc(units: string): string {
  const digits = units.padStart(7, "0");
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

try {
  await buyImage(await readPaidDemo());
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
}
