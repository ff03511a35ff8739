import { imageModel, type Json } from "./catalog-fixture.ts";
import { temporaryJson } from "./end-of-file.ts";
import { type MockOpenai, startMockOpenai } from "./mock-openai.ts";
import { type MovableClock, movableClock } from "./movable-clock.ts";
import { ofFile } from "./of-file.ts";
import { testStores } from "./servers.ts";
import { type Client, type Customer, startService } from "./service.ts";
import { entryOf } from "./service-setup.ts";

/** Only the wait for the upstream `failing` has this length. */
export const failingMs = 599_001;

const names = ["alpha", "beta", "gamma"] as const;
type Name = (typeof names)[number];

const text = (id: string, input: string, output: string, upstreams: readonly object[], more: Json = {}): Json => ({
  id,
  name: id,
  owned_by: "acme",
  type: "text",
  released: "2026-01-01",
  context_length: 100_000,
  max_output_tokens: 4_000,
  pricing: { input, output },
  upstreams,
  ...more,
});

const vectors = (id: string, input: string, upstream: Name): Json => ({
  id,
  name: id,
  owned_by: "acme",
  type: "embeddings",
  released: "2026-01-01",
  context_length: 8_000,
  pricing: { input },
  upstreams: [at(upstream)],
});

const at = (upstream: string, cost?: Json, more: Json = {}) => ({ upstream, ...(cost && { cost }), ...more });

const places: Readonly<Record<string, object>> = {
  beta: { region: "eu-central-1", data_residency: "eu" },
  gamma: { region: "us-east-1", data_residency: "us" },
};

/** Gives each model separate names at its upstreams, so that failures of one do not block the others. */
const withNames = (model: Json): Json => ({
  ...model,
  upstreams: (model["upstreams"] as { upstream: string }[]).map((each) => ({
    ...each,
    model: `${each.upstream}-${String(model["id"]).slice("acme/".length)}`,
  })),
});

/** `acme/dear` costs a hundred times as much as `acme/cheap`, and alpha is the most expensive of its upstreams. */
const models = [
  text(
    "acme/dear",
    "10",
    "40",
    [at("alpha", { input: "6", output: "20" }), at("beta", { input: "4", output: "10" }), at("gamma")],
    { features: ["tools"], aliases: ["dear"] },
  ),
  text("acme/cheap", "0.1", "0.4", [at("gamma", { input: "0.05", output: "0.123" })], { aliases: ["cheap"] }),
  text("acme/small", "0.1", "0.4", [at("gamma")], { context_length: 1_000, max_output_tokens: 100 }),
  text("acme/refused", "1", "1", [at("dead"), at("gamma")]),
  text("acme/unready", "1", "1", [at("keyless"), at("dead")]),
  text("acme/weighed", "1", "1", [
    at("alpha", undefined, { weight: 3 }),
    at("beta", undefined, { weight: 1 }),
    at("gamma"),
  ]),
  ...Array.from({ length: 20 }, (_, index) => text(`acme/copy-${index}`, "10", "40", [at("alpha"), at("beta")])),
  text("acme/queued", "10", "40", [at("failing"), at("narrow")]),
  text("acme/hidden", "10", "40", [at("failing"), at("narrow")], { hidden_reasoning: true }),
  vectors("acme/vectors", "2", "alpha"),
  vectors("acme/other-vectors", "0.5", "gamma"),
  {
    ...imageModel,
    id: "acme/image",
    upstreams: [at("alpha"), at("beta", { image: "0.01" })],
  },
];

function catalogFile(mocks: Readonly<Record<Name, MockOpenai>>): string {
  const upstream = (base_url: string, key = "OPENAI") => ({
    provider: "openai",
    base_url,
    key_env: `${key}_API_KEY`,
  });
  const upstreams = {
    ...Object.fromEntries(names.map((name) => [name, { ...upstream(mocks[name].url), ...places[name] }])),
    failing: { ...upstream(mocks.alpha.url), first_byte_timeout_ms: failingMs },
    narrow: { ...upstream(mocks.gamma.url), concurrency: 1 },
    // Nothing listens on this port.
    dead: upstream("http://127.0.0.1:9"),
    keyless: upstream("http://127.0.0.1:9", "KEYLESS"),
  };
  return temporaryJson("catalog", { elite_discount_bps: 0, upstreams, models: models.map(withNames) });
}

interface Routed extends Record<Name, MockOpenai> {
  readonly service: Client;
  readonly advance: MovableClock["advance"];
  readonly isWaiting: MovableClock["isWaiting"];
}

/** A service whose models are behind three mock providers, which are reset before each test. */
export const routingService = (): Routed =>
  ofFile(
    async (onEnd) => {
      const { clock, ...time } = movableClock();
      const [alpha, beta, gamma] = await Promise.all([startMockOpenai(), startMockOpenai(), startMockOpenai()]);
      const mocks = { alpha, beta, gamma };
      const env = {
        CATALOG_FILE: catalogFile(mocks),
        OPENAI_API_KEY: "sk-operator",
        NATIVE_FORMATS_ANY_MODEL: "true",
      };
      const service = await startService(await testStores(), { env, onEnd, clock });
      onEnd(async () => void (await Promise.all(names.map((name) => mocks[name].close()))));
      return { service, ...mocks, ...time };
    },
    (running) => {
      for (const name of names) running[name].reset();
    },
  );

/** Sends a request and reads its response and its ledger entry. */
export async function post(service: Client, customer: Customer, path: string, body: object) {
  const response = await customer.post(path, body);
  const answer = (await response.json()) as Record<string, never> & { error?: { param: string; message: string } };
  const { request } = response.ok
    ? await entryOf(service, response.headers.get("x-request-id"))
    : { request: undefined };
  return { response, status: response.status, answer, entry: request, body: JSON.stringify(answer) };
}
