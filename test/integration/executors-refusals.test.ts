import { AccountRole, type Address, address, type Instruction } from "@solana/kit";
import { getApproveInstruction, getTransferCheckedInstruction } from "@solana-program/token";
import { expect, test } from "vitest";
import type { Behaviour, Swap } from "../support/mock-jupiter.ts";
import { market, untouched } from "./executors-setup.ts";

type Market = Awaited<ReturnType<typeof market>>;

const system = address("11111111111111111111111111111111");

/** Of the system program: 2 sends lamports, 4 advances a nonce. */
function systemInstruction(kind: number, lamports: bigint, accounts: Instruction["accounts"]): Instruction {
  const data = Buffer.alloc(lamports > 0n ? 12 : 4);
  data.writeUInt32LE(kind);
  if (lamports > 0n) data.writeBigUInt64LE(lamports, 4);
  return { programAddress: system, data, ...(accounts && { accounts }) };
}

const drain =
  (lamports: bigint): Behaviour["more"] =>
  ({ owner, pool }) => [
    systemInstruction(2, lamports, [
      { address: owner.address, role: AccountRole.WRITABLE_SIGNER, signer: owner } as never,
      { address: pool.address, role: AccountRole.WRITABLE },
    ]),
  ];

const swapsThatLie: readonly [string, (market: Market) => Partial<Behaviour>, string][] = [
  ["spends more", () => ({ amounts: (swap) => ({ ...swap, amountIn: swap.amountIn + 1n }) }), "spends 12000001"],
  [
    "buys less than the quote allows",
    () => ({ amounts: (swap) => ({ ...swap, amountOut: 35_639_999n }) }),
    "buys 35639999",
  ],
  ["takes the wallet's SOL", () => ({ more: drain(20_000_000n) }), "lamports"],
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
    "gives away a right over the wallet's USDC",
    ({ chain, wallet }) => ({
      async more({ owner, pool }: Swap) {
        const source = await chain.tokenAccountOf(wallet.address);
        return [getApproveInstruction({ source, delegate: pool.address, owner, amount: 1_000_000n })];
      },
    }),
    "gives an account away",
  ],
  [
    "takes what it has bought away again",
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
    "lives by a nonce, so that it never expires",
    ({ chain }) => ({
      first: ({ owner }: Swap) => [
        systemInstruction(4, 0n, [
          { address: chain.payTo, role: AccountRole.WRITABLE },
          { address: address("SysvarRecentB1ockHashes11111111111111111111"), role: AccountRole.READONLY },
          { address: owner.address, role: AccountRole.READONLY_SIGNER },
        ]),
      ],
    }),
    "lives by a nonce",
  ],
  ["is paid by somebody else", ({ jupiter }) => ({ feePayer: () => jupiter.pool.address }), "not paid by our wallet"],
  [
    "needs a signature that is not there",
    ({ chain }) => ({
      more: ({ owner }: Swap) => [
        systemInstruction(2, 1n, [
          { address: owner.address, role: AccountRole.WRITABLE_SIGNER },
          { address: chain.payTo, role: AccountRole.WRITABLE_SIGNER },
        ]),
      ],
    }),
    "needs another signature",
  ],
];

const between = async (chain: Market["chain"], from: Address, to: Address, mint: Address) =>
  Promise.all([chain.tokenAccountOf(from, mint), chain.tokenAccountOf(to, mint)]);

test.each(swapsThatLie)("a swap that %s is not signed away: nothing is remembered or sent", async (_, lie, why) => {
  const given = await market();
  Object.assign(given.jupiter.behaviour, lie(given));
  const remember = () => Promise.reject(new Error("was remembered"));
  await expect(given.execute(undefined, remember)).rejects.toThrow(why);
  expect(given.chain.calls.sendTransaction).toBeUndefined();
  expect(await given.has()).toEqual(untouched);
});

const quotesThatLie: readonly [string, Record<string, unknown>, string][] = [
  ["for another amount", { inAmount: "12000001" }, "another inAmount"],
  ["for another token", { outputMint: system }, "another outputMint"],
  ["with more slippage", { slippageBps: 5_000 }, "another slippageBps"],
  ["whose least is less than its slippage allows", { otherAmountThreshold: "1" }, "allows more slippage"],
  ["that is no quote", { outAmount: "-1" }, "outAmount"],
];

test.each(quotesThatLie)("a quote %s is refused", async (_, lie, why) => {
  const { execute, has, jupiter, swaps } = await market();
  jupiter.behaviour.quote = (quote) => ({ ...quote, ...lie });
  await expect(execute()).rejects.toThrow(why);
  expect(swaps()).toBe(0);
  expect(await has()).toEqual(untouched);
});
