import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { newSecret } from "./wallets.ts";

const shape = z.object({ feePayer: z.string(), merchant: z.string(), payer: z.string() });

/** The secret keys of a demo chain's wallets: made once, then the same at every start. Worth nothing elsewhere. */
export function storedWallets(file: string): z.infer<typeof shape> {
  if (existsSync(file)) return shape.parse(JSON.parse(readFileSync(file, "utf8")));
  const made = { feePayer: newSecret(), merchant: newSecret(), payer: newSecret() };
  writeFileSync(file, JSON.stringify(made), { mode: 0o600 });
  return made;
}
