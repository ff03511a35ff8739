import fc from "fast-check";
import { expect, test } from "vitest";
import { managedAccount } from "../support/account-caller.ts";
import { readDocument } from "../support/openapi.ts";
import { asking, localModel, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ RATE_LIMIT_ACCOUNT_REQUESTS_PER_MINUTE: "1000000" });

test("no sequence of account calls by one account changes or shows another's", async () => {
  const { service } = running;
  const [mine, other] = [await managedAccount(service), await managedAccount(service)];
  await other.ask("PATCH", `/keys/${other.id}`, { name: "their secret name" });
  await other.ask("POST", "/keys", { name: "their second name", budget: { limit_usd: "3", period: "week" } });
  const called = await other.account.post("/v1/chat/completions", asking(localModel));
  await called.text();
  await service.settled();

  const { operations } = await readDocument(service.baseUrl);
  const routes = operations.filter(({ operation }) => operation.tags.some((tag) => /^(Account|Keys)/.test(tag)));
  expect(routes.length).toBeGreaterThan(5);
  const theirs = [
    other.account.id,
    other.id,
    called.headers.get("x-request-id") ?? "",
    ...(await other.ask("GET", "/keys")).body.data.map(({ id }) => id),
  ];
  const read = async () => {
    const [balance, keys] = [await other.ask("GET", "/balance"), await other.ask("GET", "/keys")];
    // The other account's own requests update the last use.
    return JSON.stringify([balance.body, keys.body]).replaceAll(/"last_used_at":(\d+|null)/g, "");
  };
  const before = await read();

  const ids = fc.constantFrom(...theirs, mine.id, "key_none");
  const value = fc.oneof(
    ids,
    fc.constantFrom(null, "x", 1, [], ["manage"], ["local/*"], { limit_usd: "1", period: "day" }),
  );
  const fields = fc.constantFrom("account", "id", "key", "name", "scopes", "limits", "budget", "models", "expires_at");
  const call = fc.record({
    route: fc.constantFrom(...routes),
    id: ids,
    query: fc.dictionary(fc.constantFrom("after", "key", "account", "limit", "id"), ids, { maxKeys: 2 }),
    body: fc.dictionary(fields, value, { maxKeys: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 6 }), async (calls) => {
      for (const { route, id, query, body } of calls) {
        // A key that revokes itself makes no further call.
        if (route.method === "DELETE" && id === mine.id) continue;
        const path = `${route.path.replace("/v1", "").replace("{id}", id)}?${new URLSearchParams(query).toString()}`;
        const isRead = route.method === "GET" || route.method === "DELETE";
        const answer = await mine.ask(route.method, path, isRead ? undefined : body);
        expect([path, answer.status < 500]).toEqual([path, true]);
        if (answer.status >= 400) continue;
        // An id may be the name that this account gave to one of its keys.
        const shown = JSON.stringify(answer.body).replaceAll(/"name":"(acct|key|req)_\w+"/g, "");
        for (const each of [...theirs, "their secret name", "their second name"]) expect(shown).not.toContain(each);
      }
    }),
    { numRuns: 150 },
  );
  expect(await read()).toBe(before);
});
