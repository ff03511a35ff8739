import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { z } from "zod";
import type { DemoPayments } from "../embedded/solana/server.ts";
import { demoShape } from "./demo.ts";
import { readStartConfig } from "./start-config.ts";

const demoFile = demoShape.partial({
  accountId: true,
  adminToken: true,
  apiKey: true,
  mongodbUri: true,
  metrics: true,
});
export type PaidDemo = Readonly<z.infer<typeof demoFile>> & { readonly x402: DemoPayments };

/** Throws if the demo does not run, or does not accept payments on its own chain. */
export async function readPaidDemo(): Promise<PaidDemo> {
  const file = join(readStartConfig(process.env).DATA_DIR, "demo.json");
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new Error(`There is no ${file}: run npm start first.`, { cause });
  });
  const { x402, ...demo } = demoFile.parse(JSON.parse(text));
  if (!x402)
    throw new Error(
      "The service was started with your own payment settings, for which the demo's wallet has no funds.",
    );
  const isUp = await fetch(`${demo.baseUrl}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  );
  if (!isUp) throw new Error(`${demo.baseUrl} does not respond. Is npm start running?`);
  return { ...demo, x402 };
}
