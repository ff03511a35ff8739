import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { adminDocument } from "../../api/routes/openapi.ts";
import { registerWorker } from "../../shared/jobs/index.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { apiOfFile, bearer, settledCall } from "../support/api-server.ts";
import { held, holdOf, openAccount } from "../support/money-setup.ts";
import { type Document, describedBy } from "../support/openapi.ts";
import { eventually, testAdminToken } from "../support/service.ts";
import { insertBatches } from "../support/stored-batches.ts";

const document = adminDocument("http://127.0.0.1/admin/v1") as unknown as Document;
const description = describedBy(document);
const { operations } = description;

test("the description is valid OpenAPI 3.1, and Redocly's recommended rules find nothing", async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(document) as never);
  expect({ valid, errors }).toEqual({ valid: true });
  // No license has been chosen.
  const rules = { "no-server-example.com": "off", "info-license": "off", "info-license-strict": "off" } as const;
  const config = await createConfig({ extends: ["recommended"], rules });
  const problems = await lintFromString({ source: JSON.stringify(document), config });
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
});

const api = apiOfFile();

test("it is served to operators alone", async () => {
  const url = new URL("/admin/openapi.json", api.baseUrl);
  expect((await fetch(url)).status).toBe(401);
  const answer = await fetch(url, { headers: bearer(testAdminToken) });
  const served = (await answer.json()) as { servers: unknown; paths: object };
  expect(served.servers).toEqual([{ url: `${api.baseUrl}/admin/v1` }]);
  expect(Object.keys(served.paths)).toEqual(Object.keys(document.paths));
});

test("each route is described with all its methods, and responds to each as described", async () => {
  const account = await openAccount(api.money, 5_000_000_000n);
  const key = (await api.ask("POST", `/accounts/${account}/keys`, { name: "ci" })).body.id;
  const request = await settledCall(api, account);
  await held(api.money, holdOf(account, 2_000_000n));

  const running = { account, kind: "openai", status: "in_progress", dueAt: new Date(Date.now() + 600_000) } as const;
  const [batch = ""] = await insertBatches(api.stores, [running]);

  const worker = registerWorker({
    worker: "wrk_1",
    redis: api.redis,
    clock: systemClock,
    log: createLogger("test", "silent"),
    record: () => ({
      version: "1.0.0",
      startedAt: Date.now(),
      pools: { chat: { free: 5, running: 1 } },
      upstreams: { local: "ready" },
      catalog: "other",
    }),
  });
  await worker.write();
  await eventually(async () => (await api.ask("GET", "/workers")).body.data.length === 1);

  const ids: Readonly<Record<string, string>> = {
    "/accounts/{id}": account,
    "/accounts/{id}/keys": account,
    "/accounts/{id}/provider-keys": account,
    "/accounts/{id}/credits": account,
    "/accounts/{id}/ledger": account,
    "/keys/{id}": key,
    "/requests/{id}": request,
    "/batches/{id}/cancel": batch,
  };
  const bodies: Readonly<Record<string, object>> = {
    "POST /accounts": { name: "other" },
    "PATCH /accounts/{id}": { frozen: true },
    "POST /accounts/{id}/credits": { amount_usd: "1", idempotency_key: "b" },
    "POST /accounts/{id}/keys": { limits: { requests_per_minute: 5 } },
    "PATCH /keys/{id}": { name: "new" },
    "POST /archives/{id}/restore": {},
    "POST /owed/{id}/refunds": { amount_usd: "1", transaction: "x" },
  };
  const statuses: string[] = [];
  for (const described of operations) {
    const { method, path } = described;
    const answer = await api.ask(method, path.replace("{id}", ids[path] ?? "none"), bodies[`${method} ${path}`]);
    const name = `${method} ${path} ${answer.status}`;
    statuses.push(name);
    expect([
      name,
      description.faultsOf(described, { ...answer, type: "application/json", value: answer.body }),
    ]).toEqual([name, []]);
    expect([name, answer.headers.get("cache-control")]).toEqual([name, "no-store"]);
  }
  expect(statuses.filter((each) => !/ 20\d$/.test(each)).toSorted()).toEqual([
    "DELETE /archives/{id}/restore 404",
    "GET /archives/{id} 404",
    "POST /archives/{id}/restore 404",
    "POST /keys/{id}/sign-in-links 404",
    "POST /lost-responses/{id}/keep 404",
    "POST /lost-responses/{id}/refund 404",
    "POST /owed/{id}/refunds 400",
    "POST /secrets/rewrap 501",
  ]);

  // No route accepts an undocumented method.
  const paths = Map.groupBy(operations, ({ path }) => path);
  for (const [path, ofPath] of paths) {
    const { status, headers } = await api.ask("PUT", path.replace("{id}", "none"));
    const described = ofPath.map(({ method }) => method).toSorted();
    const allowed = headers
      .get("allow")
      ?.split(", ")
      .filter((each) => each !== "HEAD");
    expect([path, status, allowed?.toSorted()]).toEqual([path, 405, described]);
  }
});
