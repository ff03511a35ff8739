import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

import { readDocument } from "../support/openapi.ts";
import { testStores } from "../support/servers.ts";
import { startService, testAdminToken } from "../support/service.ts";
import { refusal, refusalOf } from "../support/service-setup.ts";
import { askTopup, callTopups, completed, payUrl } from "../support/topups-setup.ts";
import { startPaid } from "../support/x402-setup.ts";

const run = promisify(execFile);
const command = fileURLToPath(new URL("../../infra/cli/demo-topup.ts", import.meta.url));

test("a top-up is requested, paid by a wallet, and credited, as documented", async () => {
  const { service, chain } = await startPaid({}, ["credit-topups"]);
  const document = await readDocument(service.baseUrl);
  const describedAs = (method: string, path: string, status: number, value: unknown) => {
    const described = document.operations.find((each) => each.method === method && each.path === path);
    if (!described) throw new Error(`${path} is not described`);
    expect(document.faultsOf(described, { status, type: "application/json", value })).toEqual([]);
  };
  const customer = await service.account("0");
  const { key, topup } = await askTopup(service, customer.id, "2.50");
  describedAs("POST", "/v1/topups", 201, topup);
  expect(topup).toMatchObject({ status: "pending", received_usd: "0.00", transaction: null });
  const signature = await payUrl(chain, await chain.wallet("3.00", { sol: 1n }), topup.solana_pay_url);
  const paid = await completed(service, key, topup.id);
  expect(paid).toMatchObject({ received_usd: "2.50", transaction: signature });
  describedAs("GET", "/v1/topups/{id}", 200, paid);
  const list = await callTopups(service, key);
  expect(list.body).toMatchObject({ data: [paid], has_more: false, next: null });
  describedAs("GET", "/v1/topups", 200, list.body);
  expect(await customer.available()).toBe("2.50");

  // Another account, a key without the scope, and invalid amounts.
  const other = await askTopup(service, (await service.account("0")).id, "1");
  expect(await callTopups(service, other.key, `/${topup.id}`)).toMatchObject({ status: 404 });
  expect(await callTopups(service, other.key, `?after=${topup.id}`)).toMatchObject({
    status: 400,
    body: { error: { param: "after" } },
  });
  expect(await refusalOf(await customer.post("/v1/topups", { amount_usd: "5" }))).toEqual(
    refusal({ status: 403, type: "permission_error", code: "insufficient_scope" }),
  );
  const bad = ["0.999999", "10000.000001", "1.0000001", "-5", "0", "1e3", "", 5, null];
  for (const amount_usd of bad)
    expect(await callTopups(service, key, "", { amount_usd })).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_value", param: "amount_usd" } },
    });
  expect(await callTopups(service, key, "", { amount_usd: "5", memo: "x" })).toMatchObject({
    status: 400,
    body: { error: { param: "memo" } },
  });
});

test("npm run demo:topup pays from the demo's wallet and waits until it is credited", async () => {
  const { service, chain } = await startPaid({}, ["credit-topups"]);
  const dataDir = await mkdtemp(join(tmpdir(), "inference-topup-"));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const customer = await service.account("1");
  const wallet = await chain.wallet("6.00", { sol: 1n });
  const demo = {
    baseUrl: service.baseUrl,
    apiKey: customer.key,
    accountId: customer.id,
    adminToken: testAdminToken,
    metrics: {},
    x402: { network: chain.network, rpcUrl: chain.rpcUrl, payTo: chain.payTo, wallet: wallet.secret },
  };
  await writeFile(join(dataDir, "demo.json"), JSON.stringify(demo));
  const { stdout } = await run(process.execPath, [command, "5.25"], { env: { ...process.env, DATA_DIR: dataDir } });
  expect(stdout).toMatch(/^Credited 5[.]25 USD[.] The account has 6[.]25 USD[.]$/m);
  expect(await chain.balance(wallet.address)).toBe(750_000n);
});

test("without X402_PAY_TO all of it is 404", async () => {
  const service = await startService(await testStores());
  const { id } = await service.account("0");
  const { key } = await service.admin<{ key: string }>("POST", `/accounts/${id}/keys`, { scopes: ["manage"] });
  for (const [path, body] of [["", { amount_usd: "5" }], [""], ["/top_1"]] as const)
    expect(await callTopups(service, key, path, body)).toMatchObject({
      status: 404,
      body: { error: { code: "not_found" } },
    });
});
