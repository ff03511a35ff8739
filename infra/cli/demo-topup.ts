import { z } from "zod";
import { sleep, systemClock } from "#platform/clock";
import { openWallet } from "../embedded/solana/index.ts";
import { parseTransferRequest, payTransferRequest } from "../embedded/solana/wallet.ts";
import { createAdminClient } from "./admin-client.ts";
import { type PaidDemo, readPaidDemo } from "./paid-demo.ts";

const amountUsd = process.argv[2] ?? "5.00";
const waitMs = 60_000;
const pollMs = 500;
const say = (line: string) => void process.stdout.write(`${line}\n`);

const topupShape = z.object({
  id: z.string(),
  status: z.string(),
  received_usd: z.string(),
  transaction: z.string().nullable(),
  solana_pay_url: z.string(),
});
const keyShape = z.object({ id: z.string(), key: z.string() });
const balanceShape = z.object({ available_usd: z.string() });

/** Tops up the demo's account from the demo's wallet: requests a payment, pays it, and waits for the credit. */
async function topUp({ baseUrl, adminToken = "", accountId = "", x402 }: PaidDemo): Promise<void> {
  const admin = createAdminClient({ url: baseUrl, token: adminToken });
  const fields = { name: "demo:topup", scopes: ["manage"] };
  const { id: keyId, key } = keyShape.parse(await admin("POST", `/accounts/${accountId}/keys`, fields));
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  async function call<T extends z.ZodType>(shape: T, path: string, body?: object): Promise<z.infer<T>> {
    const request = body ? { method: "POST", body: JSON.stringify(body) } : {};
    const answer = await fetch(`${baseUrl}/v1${path}`, { headers, ...request });
    const json: unknown = await answer.json();
    if (!answer.ok) throw new Error(`The service responded with ${answer.status}: ${JSON.stringify(json)}`);
    return shape.parse(json);
  }

  try {
    const asked = await call(topupShape, "/topups", { amount_usd: amountUsd });
    say(`Wallets can read this as a QR code: ${asked.solana_pay_url}`);
    const { signer } = await openWallet(x402.wallet);
    const signature = await payTransferRequest(parseTransferRequest(asked.solana_pay_url), {
      rpcUrl: x402.rpcUrl,
      signer,
    });
    say(`Paid by transaction ${signature}.`);
    for (const until = Date.now() + waitMs; Date.now() < until; await sleep(systemClock, pollMs)) {
      const { status, received_usd } = await call(topupShape, `/topups/${asked.id}`);
      if (status !== "completed") continue;
      const { available_usd } = await call(balanceShape, "/balance");
      return say(`Credited ${received_usd} USD. The account has ${available_usd} USD.`);
    }
    throw new Error(
      `The payment was not credited within ${waitMs / 1_000} seconds. Does a worker serve the maintenance pool?`,
    );
  } finally {
    await admin("DELETE", `/keys/${keyId}`);
  }
}

try {
  await topUp(await readPaidDemo());
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
}
