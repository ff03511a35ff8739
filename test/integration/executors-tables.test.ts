import {
  AccountRole,
  type Address,
  address,
  appendTransactionMessageInstructions,
  createSolanaRpc,
  createTransactionMessage,
  getAddressEncoder,
  getBase64EncodedWireTransaction,
  getProgramDerivedAddress,
  type Instruction,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from "@solana/kit";
import { expect, test } from "vitest";
import { bought, market } from "../support/executors-setup.ts";
import type { SolanaChain } from "../support/solana.ts";

const tables = address("AddressLookupTab1e1111111111111111111111111");
const system = address("11111111111111111111111111111111");
/** The count, then each slot and its hash, newest first. */
const slotHashes = address("SysvarS1otHashes111111111111111111111111111");

async function run(chain: SolanaChain, instruction: Instruction): Promise<void> {
  const rpc = createSolanaRpc(chain.rpcUrl);
  const { value } = await rpc.getLatestBlockhash({ commitment: "confirmed" }).send();
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (each) => setTransactionMessageFeePayerSigner(chain.feePayer.signer, each),
    (each) => setTransactionMessageLifetimeUsingBlockhash(value, each),
    (each) => appendTransactionMessageInstructions([instruction], each),
  );
  const wire = getBase64EncodedWireTransaction(await signTransactionMessageWithSigners(message));
  await rpc.sendTransaction(wire, { encoding: "base64" }).send();
}

/** Creates a lookup table on the chain with these addresses. */
async function putTable(chain: SolanaChain, addresses: readonly Address[]): Promise<Address> {
  const { address: payer } = chain.feePayer;
  const known = await createSolanaRpc(chain.rpcUrl).getAccountInfo(slotHashes, { encoding: "base64" }).send();
  const slot = Buffer.from(known.value?.data[0] ?? "", "base64").subarray(8, 16);
  const seeds = [getAddressEncoder().encode(payer), slot];
  const [table, bump] = await getProgramDerivedAddress({ programAddress: tables, seeds });
  const accounts = [
    { address: table, role: AccountRole.WRITABLE },
    { address: payer, role: AccountRole.READONLY_SIGNER },
    { address: payer, role: AccountRole.WRITABLE_SIGNER },
    { address: system, role: AccountRole.READONLY },
  ];
  const create = Buffer.concat([Buffer.alloc(4), slot, Buffer.from([bump])]);
  await run(chain, { programAddress: tables, accounts, data: create });
  const count = Buffer.from([2, 0, 0, 0, addresses.length, 0, 0, 0, 0, 0, 0, 0]);
  const extend = Buffer.concat([count, ...addresses.map((each) => getAddressEncoder().encode(each) as Uint8Array)]);
  await run(chain, { programAddress: tables, accounts, data: extend });
  chain.advance(2);
  return table;
}

test("lookup tables are read from the chain, not from Jupiter's answer", async () => {
  const { chain, jupiter, token, execute, has } = await market();
  const { pool, behavior } = jupiter;
  const held = [await chain.tokenAccountOf(pool.address), await chain.tokenAccountOf(pool.address, token)];
  const table = await putTable(chain, held);
  behavior.quote = (quote) => ({ ...quote, addressesByLookupTableAddress: { [table]: [system, system] } });
  const data = {
    parsed: { type: "lookupTable", info: { addresses: held } },
    program: "address-lookup-table",
    space: 120,
  };
  const account = { data, executable: false, lamports: 1, owner: tables, rentEpoch: 0, space: 120 };
  chain.faults.next("getMultipleAccounts", { answer: { context: { slot: 1 }, value: [account] } });
  const { execution, sent } = await execute();
  expect(execution).toMatchObject({ kind: "bought" });
  expect(await has()).toEqual(bought);
  const wire = Buffer.from(sent?.transaction ?? "", "base64");
  expect(wire.includes(Buffer.from(getAddressEncoder().encode(table)))).toBe(true);
  for (const each of held) expect(wire.includes(Buffer.from(getAddressEncoder().encode(each)))).toBe(false);
});
