import { AccountRole, type Address, address, type Instruction } from "@solana/kit";
import {
  AuthorityType,
  getApproveInstruction,
  getCloseAccountInstruction,
  getCreateAssociatedTokenIdempotentInstruction,
  getSetAuthorityInstruction,
  getTransferCheckedInstruction,
} from "@solana-program/token";
import { expect, test } from "vitest";
import { market, untouched } from "../support/executors-setup.ts";
import type { Behavior, Swap } from "../support/mock-jupiter.ts";

type Market = Awaited<ReturnType<typeof market>>;

const system = address("11111111111111111111111111111111");

/** Sends lamports from the wallet, through the system program. */
const drain =
  (lamports: bigint): Behavior["more"] =>
  ({ owner, pool }) => {
    const data = Buffer.alloc(12);
    data.writeUInt32LE(2);
    data.writeBigUInt64LE(lamports, 4);
    const accounts = [
      { address: owner.address, role: AccountRole.WRITABLE_SIGNER },
      { address: pool.address, role: AccountRole.WRITABLE },
    ];
    return [{ programAddress: system, data, accounts } satisfies Instruction];
  };

const swapsThatLie: readonly [string, (market: Market) => Partial<Behavior>, string][] = [
  ["spends more", () => ({ amounts: (swap) => ({ ...swap, amountIn: swap.amountIn + 1n }) }), "spends 12000001"],
  [
    "buys less than the quote allows",
    () => ({ amounts: (swap) => ({ ...swap, amountOut: 35_639_999n }) }),
    "buys 35639999",
  ],
  ["takes the wallet's SOL by another program", () => ({ more: drain(1n) }), `runs ${system}`],
  [
    "only takes",
    () => ({ quote: (quote) => ({ ...quote, setupInstructions: [], otherInstructions: [] }) }),
    "buys for another wallet",
  ],
  [
    "opens accounts for others at the wallet's cost",
    ({ chain }) => ({
      async more({ owner: payer }: Swap) {
        const others = await Promise.all(Array.from({ length: 5 }, async () => (await chain.wallet()).address));
        return Promise.all(
          others.map(async (owner) => {
            const ata = await chain.tokenAccountOf(owner);
            return getCreateAssociatedTokenIdempotentInstruction({ payer, owner, ata, mint: chain.mint });
          }),
        );
      },
    }),
    "lamports",
  ],
  [
    "changes the owner of the wallet's USDC account",
    ({ chain, wallet }) => ({
      async more({ owner, pool }: Swap) {
        const owned = await chain.tokenAccountOf(wallet.address);
        const authorityType = AuthorityType.AccountOwner;
        return [getSetAuthorityInstruction({ owned, owner, authorityType, newAuthority: pool.address })];
      },
    }),
    "transfers rights over an account",
  ],
  [
    "closes an account of the wallet's, for its rent",
    ({ chain, wallet }) => ({
      async more({ owner, pool }: Swap) {
        const other = await chain.createMint();
        await chain.setBalance(wallet.address, 0n, other);
        const account = await chain.tokenAccountOf(wallet.address, other);
        return [getCloseAccountInstruction({ account, destination: pool.address, owner })];
      },
    }),
    "transfers rights over an account",
  ],
  [
    "takes another token of the wallet",
    ({ chain, wallet }) => ({
      async more({ owner, pool }: Swap) {
        const other = await chain.createMint();
        await chain.setBalance(wallet.address, 100n, other);
        await chain.setBalance(pool.address, 0n, other);
        const [source, destination] = await between(chain, wallet.address, pool.address, other);
        return [
          getTransferCheckedInstruction({
            source,
            destination,
            mint: other,
            authority: owner,
            amount: 1n,
            decimals: 6,
          }),
        ];
      },
    }),
    "spends 1 of",
  ],
  [
    "approves a delegate for the wallet's USDC",
    ({ chain, wallet }) => ({
      async more({ owner, pool }: Swap) {
        const source = await chain.tokenAccountOf(wallet.address);
        return [getApproveInstruction({ source, delegate: pool.address, owner, amount: 1_000_000n })];
      },
    }),
    "transfers rights over an account",
  ],
  [
    "takes back what it has bought",
    ({ chain, wallet, token }) => ({
      async more({ owner, pool }: Swap) {
        const [source, destination] = await between(chain, wallet.address, pool.address, token);
        return [
          getTransferCheckedInstruction({
            source,
            destination,
            mint: token,
            authority: owner,
            amount: 36_000_000n,
            decimals: 6,
          }),
        ];
      },
    }),
    "buys 0",
  ],
  [
    "needs a signature that is not there",
    ({ chain, wallet }) => ({
      async more({ pool }: Swap) {
        const [source, destination] = await between(chain, pool.address, wallet.address, chain.mint);
        const accounts = [
          { address: source, role: AccountRole.WRITABLE },
          { address: destination, role: AccountRole.WRITABLE },
          { address: pool.address, role: AccountRole.READONLY_SIGNER },
        ];
        return [{ programAddress: address("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"), accounts }];
      },
    }),
    "needs another signature",
  ],
];

const between = async (chain: Market["chain"], from: Address, to: Address, mint: Address) =>
  Promise.all([chain.tokenAccountOf(from, mint), chain.tokenAccountOf(to, mint)]);

test.each(swapsThatLie)("a swap that %s is refused: nothing is recorded or sent", async (_, lie, why) => {
  const given = await market();
  Object.assign(given.jupiter.behavior, lie(given));
  const recordSent = () => Promise.reject(new Error("was recorded"));
  await expect(given.execute(undefined, recordSent)).rejects.toThrow(why);
  expect(given.countSent()).toBe(0);
  expect(await given.has()).toEqual(untouched);
});

const quotesThatLie: readonly [string, Record<string, unknown>, string][] = [
  ["for another amount", { inAmount: "12000001" }, "another inAmount"],
  ["for another token", { outputMint: system }, "another outputMint"],
  ["with more slippage", { slippageBps: 5_000 }, "another slippageBps"],
  ["whose least is less than its slippage allows", { otherAmountThreshold: "1" }, "allows more slippage"],
  ["that is no quote", { outAmount: "-1" }, "outAmount"],
  ["that brings nothing", { outAmount: "0", otherAmountThreshold: "0" }, "brings nothing"],
  ["far worse than the market", { priceImpactPct: "0.0101" }, "moves the price"],
  ["that hides what it does to the price", { priceImpactPct: "little" }, "priceImpactPct"],
];

test.each(quotesThatLie)("a quote %s is refused", async (_, lie, why) => {
  const { execute, has, jupiter, countSent } = await market();
  jupiter.behavior.quote = (quote) => ({ ...quote, ...lie });
  await expect(execute()).rejects.toThrow(why);
  expect(countSent()).toBe(0);
  expect(await has()).toEqual(untouched);
});

test("the priority fee is capped at a thousandth of a SOL", async () => {
  const { execute, jupiter, chain, wallet } = await market();
  const lamports = chain.lamports(wallet.address);
  jupiter.behavior.price = 2n ** 63n;
  expect((await execute()).execution).toMatchObject({ kind: "bought" });
  const rent = 2_039_280n;
  expect(lamports - chain.lamports(wallet.address) - rent).toBeLessThanOrEqual(1_005_000n);
});
