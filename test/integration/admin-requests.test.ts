import { expect, test } from "vitest";
import { settledCall, startApiServer } from "../support/api-server.ts";
import { captureOf, held, holdOf, openAccount } from "../support/money-setup.ts";

test("operators find calls over all accounts by every filter, and a key needs its account", async () => {
  const server = await startApiServer();
  const { money, ask } = server;
  const [one, other] = [await openAccount(money, 10_000_000n), await openAccount(money, 10_000_000n)];
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
    [`from=1&account=${other}&model=openai/gpt`, [failed]],
  ] as const)
    expect([query, await found(query)]).toEqual([query, ids]);
  await money.refund(one, local);
  const { data } = (await ask("GET", `/requests?account=${one}`)).body;
  expect(data.filter((call) => "refunded" in call).map(({ id }) => id)).toEqual([local]);
  expect((await ask("GET", `/requests/${local}`)).body).toMatchObject({ refunded: true });
  for (const query of ["key=key_2", "status=running", "from=x", "after=req_none", "user=u", "tag=a", "session_id=s"])
    expect([query, (await ask("GET", `/requests?${query}`)).status]).toEqual([query, 400]);
  for (const query of ["model=local/chat", "endpoint=/v1/messages", "upstream=local&status=succeeded"])
    expect(await ask("GET", `/requests?${query}`)).toMatchObject({
      status: 400,
      body: { error: { param: query.split("=")[0] } },
    });
});
