import { join } from "node:path";
import { startChain } from "./index.ts";
import { storedWallets } from "./server.ts";

/** Runs the demo's chain as a process: `node main.ts <folder> <port>`. The chain is restored from the folder. */
const [folder = "", port = ""] = process.argv.slice(2);
const { feePayer, merchant, payer } = storedWallets(folder);
const stored = {
  journal: join(folder, "transactions.journal"),
  feePayer,
  merchant,
  payer: { secret: payer, usd: "100.00" },
};
const chain = await startChain({ network: "devnet", port: Number(port), slotMs: 400, stored });
process.once("SIGTERM", () => void chain.close());
