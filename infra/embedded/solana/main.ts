import { join } from "node:path";
import { startChain } from "./index.ts";
import { storedWallets } from "./stored-wallets.ts";

/** The demo's chain as a program: `node main.ts <folder> <port>`. Goes on from what the folder holds. */
const [folder = "", port = ""] = process.argv.slice(2);
const { feePayer, merchant, payer } = storedWallets(join(folder, "wallets.json"));
const kept = { journal: join(folder, "journal"), feePayer, merchant, payer: { secret: payer, usd: "100.00" } };
const chain = await startChain({ network: "devnet", port: Number(port), slotMs: 400, kept });
process.once("SIGTERM", () => void chain.close());
