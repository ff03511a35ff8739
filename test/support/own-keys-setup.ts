import { newPrivateKey, publicKeyOf } from "../../shared/secrets/index.ts";
import { type KeyBody, keyOf } from "./account-caller.ts";
import { imageModel } from "./catalog-fixture.ts";
import { temporaryJson } from "./end-of-file.ts";
import { forbidSecrets } from "./logs.ts";
import { type Answer, type MockOpenai, type MockRequest, mockError, startMockOpenai } from "./mock-openai.ts";
import { movableClock } from "./movable-clock.ts";
import { type OnEnd, ofFile } from "./of-file.ts";
import { testStores } from "./servers.ts";
import { type Client, type Customer, type Environment, startService } from "./service.ts";

/** The operator's keys for the upstreams `alpha` and `beta`; there is none for `keyless`. */
export const operatorKeys = { alpha: "sk-operator-alpha-0123456789", beta: "sk-operator-beta-0123456789" };

/** Each model has names of its own at its upstreams, so that the breakers of one do not affect another. */
export const dear = "acme/dear";
export const keyless = "acme/keyless";
export const vectors = "acme/vectors";
export const image = "acme/image";
const [inputUsd, outputUsd] = ["10", "40"];
/** The list price of the mock's usual answer, with 9 input and 8 output tokens, and the fee of 5 %. */
export const listNanoUsd = 9n * 10_000n + 8n * 40_000n;
export const feeNanoUsd = (listNanoUsd * 5n + 99n) / 100n;

const model = (id: string, upstreams: readonly string[], more: object = {}) => ({
  id,
  name: id,
  owned_by: "acme",
  type: "text",
  released: "2026-01-01",
  context_length: 100_000,
  max_output_tokens: 4_000,
  pricing: { input: inputUsd, output: outputUsd },
  upstreams: upstreams.map((upstream) => ({ upstream, model: `${upstream}-${id.slice("acme/".length)}` })),
  ...more,
});

const upstream = (base_url: string, key: string, more: object = {}) => ({
  provider: "openai",
  base_url,
  key_env: `${key}_API_KEY`,
  formats: ["chat", "responses"],
  first_byte_timeout_ms: 60_000,
  ...more,
});

function ownKeysCatalog(mock: MockOpenai): string {
  const regional = { region: "eu-central-1", data_residency: "eu" };
  return temporaryJson("catalog", {
    elite_discount_bps: 0,
    upstreams: {
      alpha: upstream(mock.url, "ALPHA"),
      beta: upstream(mock.url, "BETA", regional),
      keyless: upstream(mock.url, "KEYLESS"),
    },
    models: [
      ...Array.from({ length: 40 }, (_, at) => model(`${dear}-${at}`, ["alpha", "beta"])),
      model(dear, ["alpha", "beta"]),
      model(keyless, ["keyless"]),
      model(vectors, ["alpha"], {
        type: "embeddings",
        context_length: 8_000,
        max_output_tokens: undefined,
        pricing: { input: inputUsd },
      }),
      { ...imageModel, id: image, upstreams: [{ upstream: "alpha", model: "alpha-image" }] },
    ],
  });
}

export async function ownKeysEnvironment(mock: MockOpenai): Promise<Environment> {
  const privateKey = await newPrivateKey();
  return {
    CATALOG_FILE: ownKeysCatalog(mock),
    ALPHA_API_KEY: operatorKeys.alpha,
    BETA_API_KEY: operatorKeys.beta,
    NATIVE_FORMATS_ANY_MODEL: "true",
    SECRETS_PUBLIC_KEY: publicKeyOf(privateKey),
    SECRETS_PRIVATE_KEYS: privateKey,
  };
}

/** The key with which a request came. */
export const bearerOf = ({ headers }: Pick<MockRequest, "headers">): string =>
  headers.authorization?.replace(/^Bearer /, "") ?? "";

/** Each quotes the key, as providers do. */
const answers: Readonly<Record<string, (key: string) => Answer>> = {
  bad: (key) => mockError(401, `Incorrect API key provided: ${key}.`, { code: "invalid_api_key" }),
  forbidden: (key) => mockError(403, `The key ${key} may not call this model.`),
  limited: (key) => mockError(429, `Rate limit of ${key}.`, { headers: { "retry-after": "17" } }),
  unsuited: (key) => mockError(400, `Not for the deployment of ${key}.`, { code: "OperationNotSupported" }),
  empty: (key) => mockError(429, `No credit for ${key}.`, { code: "insufficient_quota" }),
  unpaid: (key) => mockError(402, `No credit for ${key}.`),
  down: (key) => mockError(503, `Down for ${key}.`),
  slow: () => ({ beforeHeaders: new Promise(() => {}) }),
  invalid: (key) => mockError(400, `Not this prompt, ${key}.`, { code: "invalid_prompt", param: "messages" }),
  absent: (key) => mockError(404, `The model does not exist for ${key}.`, { code: "model_not_found" }),
};

/** Answers by what the key's name says: `own-bad-...` is refused. No pattern of keys fits it. */
export const byKey = (request: MockRequest): Answer => {
  const key = bearerOf(request);
  const kind = /^own-([a-z]+)-/.exec(key)?.[1] ?? "";
  return answers[kind]?.(key) ?? {};
};

let made = 0;
/** A credential that no other test uses. */
function credentialOf(kind: string): string {
  const credential = `own-${kind}-${String(++made).padStart(6, "0")}QxZwVt${process.pid}`;
  // No log line may contain it, in either form.
  forbidSecrets({ OWN_KEY: credential });
  forbidSecrets({ OWN_KEY: Buffer.from(credential).toString("base64") });
  return credential;
}

export const startOwnKeysMock = async (onEnd: OnEnd): Promise<MockOpenai> => {
  const mock = await startMockOpenai();
  onEnd(() => mock.close());
  mock.always(byKey);
  return mock;
};

export interface OwnKey {
  readonly id: string;
  readonly credential: string;
}

/** An account with a balance, and what stores and changes its provider keys. */
export async function ownKeysCustomer(service: Client, usd = "10") {
  const customer: Customer = await service.account(usd);
  const { ask, id: keyId, ...manager } = await keyOf(service, customer.id, { scopes: ["inference", "manage"] });
  const provider = (method: string, path: string, body?: unknown) => ask(method, `/provider-keys${path}`, body);
  async function add(kind: string, fields: object = {}): Promise<OwnKey> {
    const credential = credentialOf(kind);
    const { status, body } = await provider("POST", "?check=false", { provider: "alpha", credential, ...fields });
    if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`);
    return { id: body.id, credential };
  }
  const read = async (id: string): Promise<KeyBody> => (await provider("GET", `/${id}`)).body;
  return { ...customer, manager, keyId, provider, add, read, ask };
}

export type OwnKeysCustomer = Awaited<ReturnType<typeof ownKeysCustomer>>;

/** A service for all tests of a file, with the mock that answers by key. */
export function ownKeysService() {
  const running = ofFile(
    async (onEnd) => {
      const { clock, ...time } = movableClock();
      const mock = await startOwnKeysMock(onEnd);
      const env = await ownKeysEnvironment(mock);
      const stores = await testStores();
      return { service: await startService(stores, { env, onEnd, clock }), mock, stores, ...time };
    },
    ({ mock }) => {
      mock.reset();
      mock.always(byKey);
    },
  );
  let used = 0;
  return {
    running,
    /** A model that no other test calls, so that breakers of the operator's upstreams are closed. */
    nextModel: () => `${dear}-${used++ % 40}`,
    /** The keys with which the mock was called, in order. */
    keysUsed: () => running.mock.requests.map(bearerOf),
  };
}
