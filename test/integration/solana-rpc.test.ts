import { expect, test } from "vitest";
import { payFrom, payments } from "../support/solana-setup.ts";

const post = async (url: string, body: unknown) => {
  const response = await fetch(url, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) });
  return (await response.json()) as unknown;
};
const asking = (method: string, ...params: unknown[]) => ({ jsonrpc: "2.0", id: method, method, params });

test("a transaction is refused without its encoding, and errors have names", async () => {
  const { chain, payer, signed } = await payments();
  const { wire } = await signed(1_000n);
  expect(await post(chain.rpcUrl, asking("sendTransaction", wire))).toMatchObject({ error: { code: -32602 } });

  const nobody = await chain.wallet();
  const { payload } = await payFrom({ ...chain, feePayer: nobody }, payer, 1_000n);
  const simulated = asking("simulateTransaction", payload.payload["transaction"], { encoding: "base64" });
  expect(await post(chain.rpcUrl, simulated)).toMatchObject({ result: { value: { err: "AccountNotFound" } } });
});

test("single and batched calls are answered with their ids", async () => {
  const { chain } = await payments();
  const [height, health, nothing, broken] = (await post(chain.rpcUrl, [
    asking("getBlockHeight"),
    asking("getHealth"),
    asking("noSuchMethod"),
    { id: 9 },
  ])) as object[];
  expect(height).toMatchObject({ id: "getBlockHeight", result: expect.any(Number) });
  expect(health).toEqual({ jsonrpc: "2.0", id: "getHealth", result: "ok" });
  expect(nothing).toMatchObject({ id: "noSuchMethod", error: { code: -32601 } });
  expect(broken).toMatchObject({ id: 9, error: { code: -32600 } });
  expect(await post(chain.rpcUrl, "{")).toMatchObject({ id: null, error: { code: -32700 } });
  const other = await fetch(chain.rpcUrl);
  expect([other.status, await other.text()]).toEqual([405, expect.stringContaining("POST")]);
  expect((await fetch(chain.rpcUrl, { method: "OPTIONS" })).headers.get("access-control-allow-origin")).toBe("*");
});
