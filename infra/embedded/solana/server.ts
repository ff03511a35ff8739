import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createProgram, until } from "../program.ts";
import { openFolder, type Server, serverOf } from "../server.ts";
import { networks } from "./networks.ts";
import { storedWallets } from "./stored-wallets.ts";
import { openWallet } from "./wallets.ts";

/** What `demo.json` says of it. `wallet` is the secret key of a payer who has USDC there. */
export interface DemoPayments {
  readonly network: string;
  readonly rpcUrl: string;
  readonly payTo: string;
  readonly wallet: string;
}

const program = fileURLToPath(new URL("main.ts", import.meta.url));

/** A chain of the demo's own as a process beside the service. Its `env` switches payments by x402 on. */
export async function startSolana(options: {
  readonly dataDir: string;
  readonly port?: number;
}): Promise<{ readonly server: Server; readonly payments: DemoPayments }> {
  const folder = await openFolder(options);
  const { feePayer, merchant, payer } = storedWallets(join(folder.data, "wallets.json"));
  const rpcUrl = `http://127.0.0.1:${folder.port}`;
  const { address: payTo } = await openWallet(merchant);
  const chain = createProgram({
    name: "Solana",
    command: process.execPath,
    args: [program, folder.data, String(folder.port)],
    env: process.env,
    output: folder.log,
    onSpawn: (pid) => folder.keep({ pid }),
    ready: (signal) => until(() => health(rpcUrl), signal),
  });
  const { network } = networks.devnet;
  const env = { SOLANA_RPC_URL: rpcUrl, X402_NETWORK: "devnet", X402_PAY_TO: payTo, X402_FEE_PAYER_KEY: feePayer };
  const server = serverOf(chain, folder, env);
  await server.start();
  return { server, payments: { network, rpcUrl, payTo, wallet: payer } };
}

async function health(rpcUrl: string): Promise<void> {
  const response = await fetch(rpcUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getHealth" }),
    signal: AbortSignal.timeout(1_000),
  });
  if (!response.ok) throw new Error(`status ${response.status}`);
  await response.arrayBuffer();
}
