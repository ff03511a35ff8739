import { execFile } from "node:child_process";
import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Address, address, createSolanaRpc, type Signature } from "@solana/kit";
import { expect, onTestFinished, test } from "vitest";
import { networks, openWallet, tokenAccountOf } from "../../infra/embedded/solana/index.ts";
import { startSolana } from "../../infra/embedded/solana/server.ts";
import { startMockPaid } from "../support/mock-paid.ts";
import { createMovableClock } from "../support/money-setup.ts";
import { openPayments } from "../support/payments-setup.ts";
import { testStores } from "../support/servers.ts";
import { facilitatorOf, type Parties, payFrom } from "../support/solana-setup.ts";

const run = promisify(execFile);
const command = fileURLToPath(new URL("../../infra/cli/demo-x402.ts", import.meta.url));

async function demoChain() {
  const dataDir = await mkdtemp(join(tmpdir(), "inference-solana-"));
  const started = await startSolana(dataDir);
  onTestFinished(async () => {
    await started.server.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
  const { server, payments } = started;
  const { usdc: mint, network } = networks.devnet;
  const feePayer = await openWallet(server.env.X402_FEE_PAYER_KEY ?? "");
  const payTo = address(payments.payTo);
  const chain: Parties = { rpcUrl: payments.rpcUrl, network, mint, payTo, feePayer };
  const rpc = createSolanaRpc(payments.rpcUrl);
  const payer = await openWallet(payments.wallet);
  return {
    dataDir,
    server,
    payments,
    chain,
    rpc,
    payer,
    balance: async (owner: Address) =>
      (await rpc.getTokenAccountBalance(await tokenAccountOf(mint, owner)).send()).value.amount,
  };
}

test("the demo's chain has the same wallets, balances and history after a restart and after a crash", async () => {
  const { dataDir, server, payments, chain, rpc, payer, balance } = await demoChain();
  const facilitator = facilitatorOf(chain);
  const names: Signature[] = [];
  for (const stop of [server.kill, server.stop]) {
    const { payload, requirements } = await payFrom(chain, payer, 40_000n, `memo-${names.length}`);
    const settled = await facilitator.settle(payload, requirements);
    expect(settled).toMatchObject({ success: true });
    names.unshift(settled.transaction as Signature);
    await stop();
    // A crash may cut off the last line; its transaction was never visible.
    if (stop === server.kill) await appendFile(join(dataDir, "data", "transactions.journal"), "AAAA");
    await server.start();
    expect(await balance(chain.payTo)).toBe(String(40_000 * names.length));
    expect(await balance(payer.address)).toBe(String(100_000_000 - 40_000 * names.length));
    const account = await tokenAccountOf(chain.mint, chain.payTo);
    const listed = await rpc.getSignaturesForAddress(account).send();
    expect(listed.map(({ signature }) => signature)).toEqual(names);
  }
  await server.stop();
  const again = await startSolana(dataDir);
  onTestFinished(again.server.stop);
  expect(again.payments).toEqual(payments);
});

test("the demo's chain makes blocks without transactions, and its settings are sufficient for the service", async () => {
  const { server, rpc } = await demoChain();
  const first = await rpc.getBlockHeight().send();
  const { MONGODB_URI } = await testStores();
  const { x402 } = await openPayments(MONGODB_URI, createMovableClock(), server.env);
  await expect(x402.start()).resolves.toBeUndefined();
  await expect.poll(() => rpc.getBlockHeight().send()).toBeGreaterThan(first + 2n);
});

test("the demo's command pays for an image with the demo's wallet, and prints what it paid", async () => {
  const { dataDir, payments, chain, payer, balance } = await demoChain();
  const { requirements } = await payFrom(chain, payer, 40_000n);
  const service = await startMockPaid(facilitatorOf(chain), requirements);
  await writeFile(join(dataDir, "demo.json"), JSON.stringify({ baseUrl: service.url, x402: payments }));
  const { stdout } = await run(process.execPath, [command, "A red door"], {
    env: { ...process.env, DATA_DIR: dataDir },
  });
  expect(stdout).toContain("costs 0.040000 USDC");
  expect(stdout).toMatch(/has 100[.]000000 USDC[^]*has 99[.]960000 USDC/);
  expect(stdout).toContain("http://localhost/media/one.png");
  expect(await balance(chain.payTo)).toBe("40000");
  expect(service.bodies()).toEqual(Array(2).fill({ model: "local/image", prompt: "A red door" }));
});

test.each([
  ["there is no demo", undefined, "run npm start first"],
  ["the demo's wallet has no funds", { baseUrl: "http://127.0.0.1:1" }, "the demo's wallet has no funds"],
])("the demo's command fails: %s", async (_, demo, said) => {
  const dataDir = await mkdtemp(join(tmpdir(), "inference-solana-"));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  if (demo) await writeFile(join(dataDir, "demo.json"), JSON.stringify(demo));
  const failed = run(process.execPath, [command], { env: { ...process.env, DATA_DIR: dataDir } });
  await expect(failed).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining(said) });
});
