import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { expectOk } from "../program.ts";
import { openFolder, startServer } from "../server.ts";
import { networks, newSecret, openWallet } from "./accounts.ts";

/** The chain's part of `demo.json`. `wallet` is the secret key of a wallet with USDC. */
export const demoPayments = z.object({
  network: z.string(),
  rpcUrl: z.string(),
  payTo: z.string(),
  wallet: z.string(),
});
export type DemoPayments = Readonly<z.infer<typeof demoPayments>>;

/** Starts the demo's chain as a process alongside the service. Its `env` enables x402 payments in the service. */
export async function startSolana(dataDir: string) {
  const folder = await openFolder(dataDir);
  const { feePayer, merchant, payer } = storedWallets(folder.data);
  const rpcUrl = `http://127.0.0.1:${folder.port}`;
  const { address: payTo } = await openWallet(merchant);
  const server = await startServer(folder, {
    name: "Solana",
    command: process.execPath,
    args: [fileURLToPath(new URL("main.ts", import.meta.url)), folder.data, String(folder.port)],
    env: {
      SOLANA_RPC_URL: rpcUrl,
      X402_NETWORK: "devnet",
      X402_PAY_TO: payTo,
      X402_FEE_PAYER_KEY: feePayer,
    },
    isReady: () => expectOk(`${rpcUrl}/health`),
  });
  const payments: DemoPayments = { network: networks.devnet.network, rpcUrl, payTo, wallet: payer };
  return { server, payments };
}

const walletsShape = z.object({ feePayer: z.string(), merchant: z.string(), payer: z.string() });

/**
 * Returns the secret keys of the demo's wallets, which are created on first use. They are worthless on any other chain.
 */
export function storedWallets(folder: string): z.infer<typeof walletsShape> {
  const file = join(folder, "wallets.json");
  if (existsSync(file)) return walletsShape.parse(JSON.parse(readFileSync(file, "utf8")));
  const created = { feePayer: newSecret(), merchant: newSecret(), payer: newSecret() };
  writeFileSync(file, JSON.stringify(created), { mode: 0o600 });
  return created;
}
