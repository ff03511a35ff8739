import { expect, test } from "vitest";
import { createPayments } from "../../shared/payments/index.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createMovableClock, startMoney } from "../support/money-setup.ts";
import { quoteRequest, settingsOf } from "../support/payments-setup.ts";
import { testStores } from "../support/servers.ts";
import { type SolanaChain, testChain } from "../support/solana.ts";

type Settings = Readonly<Record<string, string>>;
type SettingsOn = (chain: SolanaChain) => Promise<Settings>;

/** Payments with these settings, on a working chain. */
async function open(change: Settings | SettingsOn) {
  const chain = await testChain();
  const stores = await testStores();
  const clock = createMovableClock();
  const { money, mongo } = await startMoney(stores.MONGODB_URI, clock);
  const settings = typeof change === "function" ? await change(chain) : change;
  const config = loadConfig({ ...stores, ...settingsOf(chain), ...settings });
  const create = () => createPayments({ config, mongo, money, clock, log: createLogger("test", "silent") });
  return { chain, create };
}

async function openOn(change: SettingsOn) {
  const { chain, create } = await open(change);
  const { x402 } = create();
  if (!x402) throw new Error("payments are off");
  return { chain, x402 };
}

test("without X402_PAY_TO only payments by x402 are off", async () => {
  const { create } = await open({ X402_PAY_TO: "" });
  const payments = create();
  expect(payments.x402).toBeUndefined();
  expect(await payments.unused.total()).toEqual({ nanoUsd: 0n, payments: 0 });
});

test.each([
  ["no RPC", { SOLANA_RPC_URL: "" }, /SOLANA_RPC_URL/],
  ["two settlers", { X402_FACILITATOR_URL: "http://127.0.0.1:1" }, /only one of them can settle payments/],
  [
    "a password in an address",
    { SOLANA_RPC_URL: "http://user:secret@127.0.0.1:1" },
    /^(?![^]*secret)[^]*SOLANA_RPC_URL: must/,
  ],
  [
    "a password in the facilitator's address",
    { X402_FEE_PAYER_KEY: "", X402_FACILITATOR_URL: "http://u:secret@127.0.0.1:1" },
    /^(?![^]*secret)[^]*X402_FACILITATOR_URL: must/,
  ],
  ["a network of one's own without an asset", { X402_NETWORK: `solana:${"1".repeat(32)}` }, /X402_ASSET/],
  ["a wallet that is none", { X402_PAY_TO: "1".repeat(44) }, /X402_PAY_TO/],
  ["a token that is none", { BUYBACK_TOKEN: "1".repeat(44) }, /BUYBACK_TOKEN:/],
  ["a list with a token that is none", { BUYBACK_TOKENS: "abc" }, /BUYBACK_TOKENS:/],
])("settings with %s are refused", async (_, change, line) => {
  const { create } = await open(change);
  expect(create).toThrow(line);
});

const nobody = "4uQeVj5tqViQh7yWWGStvkEG1Zmhx6uasJtWCJziofM";

test.each<[string, SettingsOn, RegExp]>([
  ["a payee without a token account", async () => ({ X402_PAY_TO: nobody }), /has no token account .* open it at/],
  [
    "a payee that is a token account",
    async (chain) => ({ X402_PAY_TO: await chain.tokenAccountOf(chain.payTo) }),
    /X402_PAY_TO: .* is a token account or a mint/,
  ],
  [
    "a fee payer that is the payee",
    async (chain) => ({ X402_FEE_PAYER_KEY: chain.merchant.secret }),
    /X402_FEE_PAYER_KEY: is the key of X402_PAY_TO/,
  ],
  ["an asset that is no mint", async () => ({ X402_ASSET: nobody }), /is not a mint/],
  [
    "an asset of the newer token program, which may take a fee out of each payment",
    async (chain) => {
      const owner = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb";
      const account = { owner, data: ["", "base64"], executable: false, lamports: 1, rentEpoch: 0, space: 0 };
      chain.faults.next("getAccountInfo", { answer: { context: { slot: 1 }, value: account } }, 2);
      return {};
    },
    /is not a mint of the token program/,
  ],
  [
    "an asset without six decimals",
    async (chain) => ({ X402_ASSET: await chain.createMint(9) }),
    /does not have 6 decimals/,
  ],
  ["the chain of another network", async () => ({ X402_NETWORK: "mainnet" }), /SOLANA_RPC_URL: its network is not/],
  ["no settler", async () => ({ X402_FEE_PAYER_KEY: "" }), /X402_FEE_PAYER_KEY or X402_FACILITATOR_URL is missing/],
  ["a key that is none", async () => ({ X402_FEE_PAYER_KEY: "secret" }), /^(?!.*secret key.*: secret)[^]*64 bytes/],
])("%s is found at the start, and no quote is given", async (_, change, line) => {
  const { x402 } = await openOn(change);
  await expect(x402.start()).rejects.toMatchObject({ name: "ConfigError", message: expect.stringMatching(line) });
  await expect(quoteRequest({ x402 })).rejects.toMatchObject({
    status: 503,
    cause: { message: expect.stringMatching(line) },
  });
});

test("the process starts while the network is unavailable; quotes are 503 until it is back", async () => {
  const { x402, chain } = await openOn(async () => ({}));
  chain.faults.next("getGenesisHash", { status: 503 }, 2);
  await x402.start();
  await expect(quoteRequest({ x402 })).rejects.toMatchObject({ status: 503, code: "no_capacity" });
  expect((await quoteRequest({ x402 })).body.accepts).toHaveLength(1);
});

test("the key of the fee payer may have the JSON form of Solana's key files", async () => {
  const { x402 } = await openOn(async (chain) => {
    const { getBase58Encoder } = await import("@solana/kit");
    return { X402_FEE_PAYER_KEY: JSON.stringify([...getBase58Encoder().encode(chain.feePayer.secret)]) };
  });
  await expect(x402.start()).resolves.toBeUndefined();
});
