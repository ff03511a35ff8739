import { expect, test } from "vitest";
import { market } from "../support/executors-setup.ts";
import { openMaintenance } from "../support/maintenance-setup.ts";
import { times } from "../support/money-setup.ts";
import { testStores } from "../support/servers.ts";
import { type Client, type Customer, startService } from "../support/service.ts";
import { asking, localModel, nanoUsd } from "../support/service-setup.ts";

const own = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
const jobs = ["gather-buybacks", "execute-buybacks"];

interface Batch {
  readonly id: string;
  readonly token: string;
  readonly state: string;
  readonly amount_usd: string;
  readonly entries: number;
  readonly executor: string | null;
  readonly transaction: string | null;
  readonly spent_usd: string | null;
  readonly received: string | null;
}
interface Charge {
  readonly amount_usd: string;
  readonly buyback?: { readonly token: string; readonly amount_usd: string; readonly batch: string | null };
}

const batchesOf = async (service: Client) =>
  (await service.admin<{ data: Batch[] }>("GET", "/buyback/batches?limit=200")).data;
const accrualsOf = async (service: Client) =>
  (await service.admin<{ data: { token: string; entries: number }[] }>("GET", "/buyback/accruals")).data;
const chargesOf = async (customer: Customer) => (await customer.ledger("usage")) as unknown as Charge[];
const call = (customer: Customer) => customer.openai.chat.completions.create(asking(localModel));
const sum = (amounts: readonly string[]) => amounts.reduce((total, each) => total + nanoUsd(each), 0n);

test("without an executor for the chain the jobs record each batch", async () => {
  const stores = await testStores();
  const env = { BUYBACK_BPS: "1000", BUYBACK_TOKEN: own, BUYBACK_MINIMUM_USD: "0.000000001" };
  const service = await startService(stores, { env });
  const { runUntil } = await openMaintenance(stores);
  const customer = await service.account("1.00");
  await call(customer);
  await service.settled();
  const batch = await runUntil(jobs, async () => (await batchesOf(service)).find(({ state }) => state === "done"));
  const [charge] = await chargesOf(customer);
  const amount_usd = charge?.buyback?.amount_usd;
  expect(batch).toMatchObject({ token: own, state: "done", executor: "record", transaction: null, amount_usd });
  expect(charge?.buyback).toMatchObject({ token: own, batch: batch?.id });
});

test("concurrent jobs buy each charge once on chain while calls are charged", async () => {
  const { chain, token, wallet, jupiter, has } = await market();
  const env = {
    BUYBACK_BPS: "10000",
    BUYBACK_TOKEN: token,
    BUYBACK_MINIMUM_USD: "0.00001",
    BUYBACK_EXECUTOR: "jupiter",
    BUYBACK_WALLET_KEY: wallet.secret,
    JUPITER_BASE_URL: jupiter.baseUrl,
    JUPITER_PROGRAMS: jupiter.program,
    SOLANA_RPC_URL: chain.rpcUrl,
    X402_NETWORK: chain.network,
  };
  const stores = await testStores();
  const [service] = await Promise.all([startService(stores, { env }), startService(stores, { env })]);
  const { add, runUntil } = await openMaintenance(stores);
  const customer = await service.account("1.00");
  for (let round = 0; round < 3; round++) {
    await Promise.all(times(5, () => call(customer)));
    await Promise.all(times(6, (at) => add(jobs[at % 2] as string)));
  }
  await service.settled();
  const batches = await runUntil(jobs, async () => {
    const all = await batchesOf(service);
    const waits = (await accrualsOf(service)).some(({ entries }) => entries > 0);
    return !waits && all.every(({ state, entries }) => state === "done" || entries === 0) && all;
  });
  const bought = batches.filter(({ state }) => state === "done");
  const charged = -sum((await chargesOf(customer)).map(({ amount_usd }) => amount_usd));
  expect(sum(bought.map(({ amount_usd }) => amount_usd))).toBe(charged);
  expect(new Set(bought.map(({ transaction }) => transaction)).size).toBe(bought.length);
  const spent = sum(bought.map(({ spent_usd }) => spent_usd ?? "0.00")) / 1_000n;
  const received = bought.reduce((total, each) => total + BigInt(each.received ?? 0), 0n);
  expect(await has()).toEqual({ usdc: 50_000_000n - spent, token: received });
  expect(received).toBe(3n * spent);
});
