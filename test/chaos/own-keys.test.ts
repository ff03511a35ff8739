import { expect, onTestFinished, test } from "vitest";
import { type Entry, startTwoApis } from "../support/chaos-setup.ts";
import { startOtlpReceiver } from "../support/otlp-receiver.ts";
import { storedTexts, watchRedis } from "../support/own-keys-search.ts";
import {
  bearerOf,
  byKey,
  dear,
  type OwnKey,
  type OwnKeysCustomer,
  operatorKeys,
  ownKeysCustomer,
  ownKeysEnvironment,
  startOwnKeysMock,
} from "../support/own-keys-setup.ts";
import { testStores } from "../support/servers.ts";
import { type Client, eventually, ready, shortTimeouts, spawnApi, spawnWorker } from "../support/service.ts";
import { nanoUsd } from "../support/service-setup.ts";
import { startReceiver, webhookEnvironment } from "../support/webhook-receiver.ts";

const chat = "/v1/chat/completions";
const rounds = 24;

interface Kind {
  readonly keys: readonly (readonly [kind: string, fields?: object])[];
  /** Whose key may serve calls of this customer. */
  readonly served: readonly ("own" | "shared")[];
}

const kinds: readonly Kind[] = [
  { keys: [["ok"]], served: ["own"] },
  { keys: [["bad"]], served: ["shared"] },
  { keys: [["limited"]], served: ["shared"] },
  { keys: [["down"], ["ok", { priority: 1 }]], served: ["own"] },
  { keys: [["ok", { mode: "only" }]], served: ["own"] },
  {
    keys: [
      ["empty", { mode: "only" }],
      ["limited", { mode: "only", provider: "beta" }],
    ],
    served: [],
  },
  { keys: [], served: ["shared"] },
];

interface ShownEntry extends Entry {
  readonly request: Entry["request"] & { readonly byok: boolean; readonly list_usd: string | null };
}

test("calls with own and shared keys, while a worker and an API die: each is charged once, at its price, and no key shows anywhere", async () => {
  const stores = await testStores({ oneServer: true });
  const mock = await startOwnKeysMock((stop) => onTestFinished(() => void stop()));
  const [tracing, receiver] = [await startOtlpReceiver(), await startReceiver()];
  const env = {
    ...(await webhookEnvironment()),
    ...tracing.env,
    ...(await ownKeysEnvironment(mock)),
    OTEL_CAPTURE_CONTENT: "true",
    ...shortTimeouts,
    RATE_LIMIT_REQUESTS_PER_MINUTE: "100000",
  };
  const commands = await watchRedis(stores);
  const { api, worker, client } = await startTwoApis(stores, env);
  await spawnWorker(stores, env);
  const answers: string[] = [];
  const customers: { customer: OwnKeysCustomer; keys: readonly OwnKey[]; served: Kind["served"] }[] = [];
  for (const { keys, served } of kinds) {
    const customer = await ownKeysCustomer(client);
    const { status } = await customer.ask("POST", "/webhooks/endpoints", {
      url: receiver.url,
      events: ["provider_key.invalid"],
    });
    expect(status).toBe(201);
    const added: OwnKey[] = [];
    for (const [kind, fields] of keys) added.push(await customer.add(kind, fields));
    customers.push({ customer, keys: added, served });
  }
  // A few answers take as long as it takes to kill a process.
  const { promise: killed, resolve: areKilled } = Promise.withResolvers<void>();
  let asked = 0;
  mock.always((request) => {
    const answer = byKey(request);
    return ++asked % 7 === 0 && answer.status === undefined ? { ...answer, beforeHeaders: killed } : answer;
  });

  const callOnce = async ({ baseUrl }: Client, customer: OwnKeysCustomer, round: number) => {
    const stream = round % 3 === 0;
    const headers = {
      authorization: `Bearer ${customer.key}`,
      "content-type": "application/json",
      ...(round % 3 === 1 && { "idempotency-key": `key-${round}` }),
    };
    const body = {
      model: `${dear}-${round}`,
      messages: [{ role: "user", content: "Hello there" }],
      max_tokens: 50,
      stream,
    };
    const response = await fetch(`${baseUrl}${chat}`, { method: "POST", headers, body: JSON.stringify(body) });
    const text = await response.text();
    answers.push(text, JSON.stringify([...response.headers]));
    const key = response.headers.get("x-xm-upstream-key");
    return { ok: response.ok && (!stream || text.includes("[DONE]")), key };
  };
  const running = Array.from({ length: rounds }, (_, round) =>
    customers.map(async ({ customer, served, keys }) => {
      const made = await callOnce(round % 2 === 0 ? client : api.client, customer, round).catch(() => undefined);
      const isExpected = !made?.ok || keys.length === 0 || served.some((key) => key === made.key);
      expect([keys.length, made?.key, isExpected]).toEqual([keys.length, made?.key, true]);
    }),
  ).flat();
  await eventually(() => asked > 60);
  worker.kill("SIGKILL");
  await eventually(() => asked > 75);
  api.kill("SIGKILL");
  await Promise.all([worker.exited, api.exited]);
  areKilled();
  await spawnWorker(stores, env);
  await Promise.all(running);
  const { client: last, metrics } = await spawnApi(stores, env);
  await ready(last);
  // Each customer is served again.
  for (const { customer, served, keys } of customers) {
    if (served.length === 0) continue;
    await eventually(async () => (await callOnce(last, customer, rounds)).ok);
    if (keys.length > 0) await last.settled();
  }

  const check = await last.settled();
  expect(check.difference_usd).toBe("0.00");
  let succeeded = 0;
  for (const { customer, served } of customers) {
    const { data } = await last.admin<{ data: ShownEntry[] }>(
      "GET",
      `/accounts/${customer.id}/ledger?kind=usage&limit=200`,
    );
    let spent = 0n;
    for (const { amount_usd, request } of data) {
      const { input = 0, output = 0 } = request.usage;
      const list = BigInt(input) * 10_000n + BigInt(output) * 40_000n;
      const price = request.byok ? (list * 5n + 99n) / 100n : list;
      expect(-nanoUsd(amount_usd)).toBe(price);
      expect(request.list_usd === null ? null : nanoUsd(request.list_usd)).toBe(request.byok ? list : null);
      expect(price === 0n || served.includes(request.byok ? "own" : "shared")).toBe(true);
      if (request.status === "succeeded") succeeded += 1;
      spent += price;
    }
    const refunds = await customer.ledger("refund");
    const refunded = refunds.reduce((sum, { amount_usd }) => sum + nanoUsd(String(amount_usd)), 0n);
    expect(
      nanoUsd((await last.admin<{ available_usd: string }>("GET", `/accounts/${customer.id}`)).available_usd),
    ).toBe(10_000_000_000n - spent + refunded);
  }
  expect(succeeded).toBeGreaterThan(rounds);
  // Each customer's key was used for that customer's models alone, and never where there is none.
  const credentials = customers.flatMap(({ keys }) => keys.map(({ credential }) => credential));
  expect(new Set(mock.requests.map(bearerOf))).toEqual(new Set([...credentials, operatorKeys.alpha]));

  // The event of the key that became invalid.
  const { body: event } = await receiver.webhook(0);
  expect(event).toContain('"provider_key.invalid"');
  const scraped = await (await fetch(`${metrics}/metrics`)).text();
  const places = new Map([
    ...(await storedTexts(stores)),
    ["redis", commands.text()],
    ["answers", answers.join("\n")],
    ["traces", JSON.stringify(tracing.spans)],
    ["metrics", scraped],
    ["webhooks", receiver.received.map(({ body, headers }) => body + JSON.stringify(headers)).join("\n")],
  ]);
  for (const name of ["mongodb ledger", "mongodb providerKeys", "redis", "answers", "traces", "metrics"])
    expect([name, (places.get(name)?.length ?? 0) > 100]).toEqual([name, true]);
  // Logs are searched for them while they are written.
  for (const credential of credentials)
    for (const secret of [credential, credential.slice(4, 20), Buffer.from(credential).toString("base64")])
      expect([...places].filter(([, text]) => text.includes(secret)).map(([name]) => name)).toEqual([]);
});
