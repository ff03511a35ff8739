import { expect, test } from "vitest";
import { createArchiveObjects } from "../../shared/money/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { adminCli } from "../support/admin-cli.ts";
import { settledCall, startApiServer } from "../support/api-server.ts";
import { openAccount } from "../support/money-setup.ts";

async function startArchived() {
  const server = await startApiServer();
  const { money, mongo, stores } = server;
  const account = await openAccount(money, 5_000_000n);
  const request = await settledCall(server, account);
  await money.checkpoint();
  const createdAt = new Date(Date.now() - 100 * dayMs);
  await mongo.connection.collection("ledger").updateMany({}, { $set: { createdAt } });
  const objects = createArchiveObjects(loadConfig({ ...stores }));
  const archive = money.createArchive({ objects, retentionDays: 35 });
  expect(await archive.run()).toBe(1);
  return { ...server, account, request, archive, ...adminCli(server), month: createdAt.toISOString().slice(0, 7) };
}

test("archives are listed, restored and removed by the admin API, and balances do not change", async () => {
  const { ask, account, request, archive, month, money } = await startArchived();
  const listed = { id: month, object: "archive", parts: 1, entries: 1, amount_usd: "-0.001234567", restore: null };
  expect((await ask("GET", "/archives")).body).toMatchObject({ data: [listed], has_more: false });
  expect((await ask("GET", `/requests/${request}`)).status).toBe(404);
  const before = (await ask("GET", `/accounts/${account}`)).body;

  expect(await ask("POST", `/archives/${month}/restore`, { account })).toMatchObject({
    status: 202,
    body: { id: month, restore: { state: "restoring", account, parts: 0 } },
  });
  expect((await ask("POST", `/archives/${month}/restore`, {})).status).toBe(409);
  await archive.restore();
  expect((await ask("GET", `/archives/${month}`)).body).toMatchObject({ restore: { state: "restored", parts: 1 } });
  expect((await ask("GET", `/requests/${request}`)).body).toMatchObject({ id: request, amount_usd: "-0.001234567" });
  expect((await ask("GET", `/accounts/${account}/ledger?restored=true`)).body).toMatchObject({
    data: [{ id: request }],
  });
  expect((await ask("GET", `/accounts/${account}/ledger`)).body.data).toHaveLength(1);
  expect((await ask("GET", `/accounts/${account}`)).body).toEqual(before);
  expect(await money.check({ full: true })).toMatchObject({ ok: true, differenceNanoUsd: 0n });

  expect(await ask("DELETE", `/archives/${month}/restore`)).toMatchObject({
    status: 202,
    body: { restore: { state: "removing" } },
  });
  await archive.restore();
  expect((await ask("GET", `/archives/${month}`)).body).toMatchObject({ restore: null });
  expect((await ask("GET", `/requests/${request}`)).status).toBe(404);
  for (const unknown of ["1999-01", "2026-13", "x"]) {
    expect((await ask("GET", `/archives/${unknown}`)).status).toBe(404);
    expect((await ask("POST", `/archives/${unknown}/restore`, {})).status).toBe(404);
    expect((await ask("DELETE", `/archives/${unknown}/restore`)).status).toBe(404);
  }
});

test("the command line waits for a restore and shows its progress", async () => {
  const { admin, month, archive, mongo, account } = await startArchived();
  expect((await admin("archive", "list")).out).toMatch(new RegExp(`MONTH .*\\n${month} +1 +1 +-0.001234567`));
  const restoring = admin("archive", "restore", month);
  await expect.poll(() => mongo.connection.collection("restores").countDocuments()).toBe(1);
  await archive.restore();
  const { code, out } = await restoring;
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("restored, 1 of 1 parts") });
  expect((await admin("ledger", "list", account, "--restored")).out).toContain("local/chat succeeded");
  expect((await admin("archive", "remove", month, "--no-wait")).out).toContain("removing");
  const removing = admin("archive", "remove", month);
  const audited = mongo.connection.collection("auditLog");
  await expect.poll(() => audited.countDocuments({ action: "DELETE /archives/{id}/restore", status: 202 })).toBe(2);
  await archive.restore();
  expect(await removing).toMatchObject({ code: 0, out: expect.not.stringContaining("removing") });
});
