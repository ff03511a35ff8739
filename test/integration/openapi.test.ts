import { readFileSync } from "node:fs";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { managedAccount } from "../support/account-caller.ts";
import { type Described, readDocument } from "../support/openapi.ts";
import { refusal, refusalOf, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();
const get = (path: string) => fetch(new URL(path, running.service.baseUrl));

interface Description {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: object }>>>>;
}

interface Answer {
  readonly headers: object;
  readonly content: { readonly "application/json": { readonly schema: unknown } };
}

interface Payable {
  readonly security: unknown;
  readonly parameters: readonly unknown[];
  readonly responses: Readonly<Record<200 | 402, Answer>>;
}

test("openapi.json is valid OpenAPI 3.1, version 1.0.0", async () => {
  const response = await get("/openapi.json");
  expect(response.headers.get("content-type")).toMatch(/^application\/json/);
  const description = (await response.json()) as Description;
  const validator = new Validator();
  const { valid, errors } = await validator.validate(description as unknown as Record<string, unknown>);
  expect({ valid, errors }).toEqual({ valid: true });
  expect(validator.version).toBe("3.1");
  expect(description.info.version).toBe("1.0.0");
  expect(description.servers).toEqual([{ url: running.service.baseUrl }]);
});

test("Redocly's recommended rules find nothing", async () => {
  const source = await (await get("/openapi.json")).text();
  // No license has been chosen.
  const rules = { "info-license": "off", "info-license-strict": "off" } as const;
  const config = await createConfig({ extends: ["recommended"], rules });
  const problems = await lintFromString({ source, config });
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
});

test("it has exactly the routes of docs/api, and they answer", async () => {
  const { paths } = (await (await get("/openapi.json")).json()) as Description;
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const pages = ["account", "background", "batch-files", "batches", "inference", "jobs", "webhooks"].map((name) =>
    readFileSync(new URL(`../../docs/api/${name}.md`, import.meta.url), "utf8"),
  );
  const documented = pages.flatMap(
    (page) => page.match(/\b(?:GET|POST|PATCH|DELETE) \/(?:v1|v2|v1beta|media)\/[^\s`,?]+/g) ?? [],
  );
  expect(described.toSorted()).toEqual([...new Set(documented)].toSorted());
  const routes = readFileSync(new URL("../../api/app.ts", import.meta.url), "utf8");
  for (const [path = ""] of routes.matchAll(/(?<=")\/v1[^"*]*(?=")/g))
    expect([path, described.some((each) => each.includes(` ${path}`))]).toEqual([path, true]);
  for (const each of described) {
    const [method = "", path = ""] = each.split(" ");
    const response = await fetch(
      running.service.baseUrl +
        path.replace("{model}", "local/chat").replace("{id}", path.includes("models") ? "local/chat" : "none"),
      { method },
    );
    expect([200, 401, ...(path === "/media/{id}" ? [404] : [])]).toContain(response.status);
    expect(Object.keys(paths[path]?.[method.toLowerCase()]?.responses ?? {})).toContain(String(response.status));
  }
  expect(await refusalOf(await get("/v1/other"))).toEqual(
    refusal({ status: 404, type: "not_found_error", code: "unknown_url" }),
  );
});

interface Parameter {
  readonly in: string;
  readonly name: string;
  readonly schema: { readonly minimum?: number; readonly maximum?: number; readonly minLength?: number };
}

test("the query of each list has the bounds that the description says", async () => {
  const { account, key } = await managedAccount(running.service);
  const { openai } = account;
  const headers = { authorization: `Bearer ${key}` };
  const { id } = await openai.responses.create({ model: "local/chat", input: "x" });
  const accepted = await account.post(
    "/v1/embeddings",
    { model: "local/embeddings", input: "x" },
    { headers: { prefer: "respond-async" } },
  );
  const { id: job } = (await accepted.json()) as { id: string };
  const { paths } = (await (await get("/openapi.json")).json()) as Description;
  const parameters = Object.entries(paths).flatMap(([path, { get: list }]) =>
    ((list as { parameters?: readonly Parameter[] } | undefined)?.parameters ?? [])
      .filter((each) => each.in === "query")
      .map(({ name, schema }) => ({ path, name, ...schema })),
  );
  const withChain = parameters.splice(-2);
  expect(withChain.map(({ path, name }) => `${path} ${name}`)).toEqual(["/v1/topups limit", "/v1/topups after"]);
  expect(parameters.length).toBeGreaterThan(20);
  /** Each format of the list of models has its own parameters. */
  const formatOf = (path: string, name: string): Record<string, string> => {
    if (path !== "/v1/models") return {};
    return name.startsWith("page") ? { "x-goog-api-client": "test" } : { "anthropic-version": "2023-06-01" };
  };
  const cases = parameters.flatMap(({ path, name, minimum, maximum, minLength }) => {
    const taken = [minimum, maximum].filter((bound) => bound !== undefined);
    const beyond = minimum === undefined ? [] : [minimum - 1, (maximum ?? 0) + 1, "", "1.5", "1e1", "0x10"];
    const empty = minLength === 1 ? [""] : [];
    return [
      ...taken.map((value) => [path, name, value, 200] as const),
      ...[...beyond, ...empty].map((value) => [path, name, value, 400] as const),
    ];
  });
  for (const [path, name, value, status] of cases) {
    const response = await fetch(
      `${running.service.baseUrl}${path.replace("{id}", path.includes("jobs") ? job : id)}?${name}=${value}`,
      {
        headers: { ...headers, ...formatOf(path, name) },
      },
    );
    const text = await response.text();
    const isNamed = response.status === 400 && text.includes(name);
    expect([path, name, value, response.status, isNamed]).toEqual([path, name, value, status, status === 400]);
  }
});

test("the size of an upload has the bounds that the description says", async () => {
  const customer = await running.service.account("1");
  const { components } = (await (await get("/openapi.json")).json()) as {
    components: {
      schemas: Record<string, { properties: Record<string, { exclusiveMinimum: number; maximum: number }> }>;
    };
  };
  const { exclusiveMinimum = 1, maximum = 0 } = components.schemas["NewUpload"]?.properties["bytes"] ?? {};
  const start = (bytes: number) => customer.post("/v1/uploads", { bytes, mime: "image/png" });
  for (const bytes of [exclusiveMinimum, -1, 0.5])
    expect(await refusalOf(await start(bytes))).toEqual(
      refusal({ status: 400, type: "invalid_request_error", code: "invalid_value", param: "bytes" }),
    );
  expect(await refusalOf(await start(maximum + 1))).toEqual(
    refusal({ status: 413, type: "invalid_request_error", code: "request_too_large", param: "bytes" }),
  );
  for (const bytes of [exclusiveMinimum + 1, maximum]) expect((await start(bytes)).status).toBe(200);
});

test("a generated file is described as bytes of each type that browsers show, whole and in part", async () => {
  const { paths } = (await (await get("/openapi.json")).json()) as Description;
  const responses = (paths["/media/{id}"]?.["get"]?.responses ?? {}) as Readonly<
    Record<string, { content?: Record<string, { schema: object }>; headers?: object }>
  >;
  expect(Object.keys(responses)).toEqual(["200", "206", "304", "404", "410", "416", "500", "503"]);
  for (const status of ["200", "206"]) {
    const { content = {}, headers = {} } = responses[status] ?? {};
    expect(Object.keys(content)).toEqual(
      expect.arrayContaining(["application/octet-stream", "image/png", "video/mp4", "audio/mpeg"]),
    );
    for (const { schema } of Object.values(content)) expect(schema).toEqual({ type: "string", format: "binary" });
    expect(Object.keys(headers)).toEqual(expect.arrayContaining(["ETag", "Accept-Ranges"]));
  }
});

test("payment by x402 is described only at the two calls that accept it", async () => {
  const { paths } = (await (await get("/openapi.json")).json()) as Description;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.values(methods).map((operation) => ({
      path,
      operation: operation as Payable,
      text: JSON.stringify(operation),
    })),
  );
  const payable = ["/v1/images/generations", "/v1/media/generations"];
  for (const word of ["PAYMENT-SIGNATURE", "PAYMENT-REQUIRED", "PAYMENT-RESPONSE", "PaymentRequired"])
    expect([word, operations.filter(({ text }) => text.includes(word)).map(({ path }) => path)]).toEqual([
      word,
      payable,
    ]);
  for (const { operation } of operations.filter(({ path }) => payable.includes(path))) {
    expect(operation.security).toEqual([{ bearer: [] }, {}]);
    expect(operation.parameters).toContainEqual(expect.objectContaining({ in: "header", name: "PAYMENT-SIGNATURE" }));
    const { 200: paid, 402: quoted } = operation.responses;
    expect(Object.keys(paid.headers)).toContain("PAYMENT-RESPONSE");
    expect(quoted.headers).toMatchObject({
      "PAYMENT-REQUIRED": { description: expect.stringContaining("base64") as string },
      "PAYMENT-RESPONSE": { description: expect.stringContaining("payment") as string },
    });
    expect(quoted.content["application/json"].schema).toEqual({
      anyOf: [{ $ref: "#/components/schemas/PaymentRequired" }, { $ref: "#/components/schemas/Error" }],
    });
  }
});

test("Idempotency-Key, its answer and its conflict are described at every call that supports it", async () => {
  const { operations, responseOf } = await readDocument(running.service.baseUrl);
  const has = operations.filter(({ operation }) => JSON.stringify(operation).includes('"Idempotency-Key"'));
  const withoutKey = /:stream|\/complete$|tokens$|moderations$/i;
  const takesKey = ({ method, path, operation }: Described) =>
    method === "POST" && responseOf(operation, 402) !== undefined && !withoutKey.test(path);
  expect(has.map(({ path }) => path)).toEqual(operations.filter(takesKey).map(({ path }) => path));
  for (const { path, operation } of has) {
    const [answer, conflict] = [responseOf(operation, 200), responseOf(operation, 409)];
    expect([path, Object.keys(answer?.headers ?? {}), conflict]).toEqual([
      path,
      expect.arrayContaining(["x-request-id", "idempotent-replayed"]),
      expect.objectContaining({ description: expect.stringContaining("conflict") as string }),
    ]);
  }
});

test("each request that takes x-xm-webhook describes the events that it leads to", async () => {
  const { operations, responseOf } = await readDocument(running.service.baseUrl);
  const described = operations.flatMap(({ path, operation }) =>
    operation.callbacks ? [[path, Object.keys(operation.callbacks), responseOf(operation, 202) !== undefined]] : [],
  );
  const takesHeader = operations.filter(({ operation }) => JSON.stringify(operation).includes('"x-xm-webhook"'));
  expect(described.map(([path]) => path)).toEqual(takesHeader.map(({ path }) => path));
  const other: Readonly<Record<string, readonly unknown[]>> = {
    "/v1/responses": [["ResponseEnded"], false],
    "/v1/batches": [["BatchEnded"], false],
    "/v1/messages/batches": [["MessageBatchEnded"], false],
  };
  for (const [path, ...rest] of described)
    expect([path, ...rest]).toEqual([path, ...(other[path as string] ?? [["JobEnded"], true])]);
});

test("/docs loads no scripts of other hosts", async () => {
  const page = await get("/docs");
  expect(page.status).toBe(200);
  const policy = page.headers.get("content-security-policy") ?? "";
  for (const directive of policy.split(";")) {
    const sources = directive.trim().split(" ").slice(1);
    for (const source of sources) expect(["'self'", "'none'", "'unsafe-inline'", "data:"]).toContain(source);
  }
  expect(policy).toContain("default-src 'self'");
  expect(policy).not.toMatch(/script-src[^;]*unsafe/);
  const html = await page.text();
  const addresses = Array.from(
    html.matchAll(/<(?:script|link)[^>]+(?:src|href)="([^"]+)"/g),
    ([, address = ""]) => address,
  );
  expect(addresses.length).toBeGreaterThanOrEqual(3);
  // Otherwise a browser requests /favicon.ico, which causes an error on its console.
  expect(html).toContain('<link rel="icon" href="/docs/');
  expect(html).toContain('<a class="home" href="/dashboard">');
  expect(html).not.toMatch(/<script>|\son\w+=/);
  for (const address of addresses) {
    expect(new URL(address, running.service.baseUrl).origin).toBe(running.service.baseUrl);
    const asset = await get(address);
    expect([address, asset.status]).toEqual([address, 200]);
    const type = { css: /^text\/css/, js: /javascript/, png: /^image\/png/ }[address.split(".").at(-1) ?? ""];
    expect(asset.headers.get("content-type")).toMatch(type as RegExp);
    expect(await asset.text()).not.toBe("");
  }
  expect(await (await get("/docs/start.js")).text()).toContain('"/openapi.json"');
});

test("a request for text or embeddings has a model or a list of them, and preferences among upstreams", async () => {
  const { components } = (await (await get("/openapi.json")).json()) as {
    components: { schemas: Record<string, { properties: object; required?: string[]; anyOf?: object[] }> };
  };
  const { schemas } = components;
  const routed = ["Chat", "Completions", "Embeddings", "Responses", "Messages", "CountTokens"];
  for (const name of routed.map((each) => `${each}Request`)) {
    expect([name, schemas[name]?.required?.includes("model")]).toEqual([name, false]);
    expect(schemas[name]).toMatchObject({
      anyOf: [{ required: ["model"] }, { required: ["models"] }],
      properties: { model: { type: "string" }, models: {}, provider: {} },
    });
  }
  for (const name of ["GenerateContentRequest", "EmbedContentRequest", "BatchEmbedContentsRequest"])
    expect(schemas[name]?.properties).toMatchObject({ models: {}, provider: {}, session_id: {} });
  for (const name of ["ImageRequest", "MediaRequest"])
    expect(schemas[name]?.properties).toMatchObject({ provider: {}, session_id: {} });
  expect(Object.keys(schemas["ProviderPreferences"]?.properties ?? {})).toEqual([
    "order",
    "only",
    "ignore",
    "regions",
    "data_residency",
    "sort",
    "allow_fallbacks",
    "byok",
  ]);
});

test("the description accepts the messages that the service accepts", async () => {
  const { service } = running;
  const description = await readDocument(service.baseUrl);
  const chat = description.operations.find(({ path }) => path === "/v1/chat/completions");
  if (!chat) throw new Error("chat is not described");
  const { openai } = await service.account("1");
  const messages = [
    { role: "system" },
    { role: "user", content: null },
    { role: "user" },
    { role: "tool", content: null },
  ];
  for (const message of messages) {
    const body = { model: "local/chat", messages: [{ role: "user", content: "Hi" }, message] };
    expect([message, description.faultsOfRequest(chat, body)]).toEqual([message, []]);
    const answer = await openai.post("/chat/completions", { body });
    expect(answer).toMatchObject({ object: "chat.completion" });
  }
});
