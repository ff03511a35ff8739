import { expect, test } from "vitest";
import { settledCall, startApiServer } from "../support/api-server.ts";
import { captureOf, held, holdOf, openAccount } from "../support/money-setup.ts";

test("operators find calls over all accounts by every filter, and a key needs its account", async () => {
  const server = await startApiServer();
  const { money, ask } = server;
  const [one, other] = [await openAccount(money, 10_000_000n), await openAccount(money, 10_000_000n)];
  for (const [id, name] of [
    [one, "one"],
    [other, "other"],
  ] as const)
    await money.updateAccount(id, { name });
  const local = await settledCall(server, one);
  const failing = await held(money, holdOf(other, 100n));
  await money.charge(
    captureOf(failing, 0n, {
      status: "failed",
      error: "upstream_timeout",
      key: "key_2",
      endpoint: "/v1/messages",
      sessionId: "s",
      user: "u",
      tags: ["a"],
    }),
  );
  const failed = failing.requestId;
  const found = async (query: string) => (await ask("GET", `/requests?${query}`)).body.data.map(({ id }) => id);
  for (const [query, ids] of [
    ["", [failed, local]],
    ["limit=1", [failed]],
    [`after=${failed}`, [local]],
    [`account=${one}`, [local]],
    [`account=${other}&key=key_2`, [failed]],
    [`account=${one}&key=key_2`, []],
    ["status=failed", [failed]],
    ["status=succeeded", [local]],
    ["code=upstream_timeout", [failed]],
    ["code=upstream_timeout&status=succeeded", []],
    ["status=failed&model=openai/gpt", [failed]],
    ["code=upstream_timeout&endpoint=/v1/messages", [failed]],
    [`account=${one}&upstream=local`, [local]],
    [`account=${other}&session_id=s&user=u&tag=a`, [failed]],
    [`account=${one}&tag=a`, []],
    ["to=1", []],
    ["model=openai/gpt", [failed]],
    ["model=local/chat", [local]],
    ["endpoint=/v1/messages", [failed]],
    ["upstream=local&status=succeeded", [local]],
    ["account=one", [local]],
    ["account=Other&status=failed", [failed]],
    [`from=1&account=${other}&model=openai/gpt`, [failed]],
  ] as const)
    expect([query, await found(query)]).toEqual([query, ids]);
  await money.refund(one, local);
  const { data } = (await ask("GET", `/requests?account=${one}`)).body;
  expect(data.filter((call) => "refunded" in call).map(({ id }) => id)).toEqual([local]);
  expect((await ask("GET", `/requests/${local}`)).body).toMatchObject({ refunded: true });
  for (const query of ["key=key_2", "status=running", "from=x", "after=req_none", "user=u", "tag=a", "session_id=s"])
    expect([query, (await ask("GET", `/requests?${query}`)).status]).toEqual([query, 400]);
  await money.updateAccount(one, { name: "other" });
  for (const [name, message] of [
    ["on", "account: no account is called 'on'; use an id."],
    ["Other", "account: several accounts are called 'Other'; use an id."],
  ] as const)
    expect(await ask("GET", `/requests?account=${name}`)).toMatchObject({
      status: 400,
      body: { error: { param: "account", message } },
    });
  const named = async (ids: string) => (await ask("GET", `/accounts?ids=${ids}`)).body.data.map(({ id }) => id);
  expect((await named(`${other},acct_none,${one}`)).toSorted()).toEqual([one, other].toSorted());
  expect((await ask("GET", `/accounts?ids=${Array(101).fill(one).join(",")}`)).status).toBe(400);
});
