import { readFileSync } from "node:fs";
import { expect } from "vitest";
import type { Clock } from "../../shared/platform/clock.ts";
import { temporaryJson } from "./end-of-file.ts";
import { type MockOpenai, startMockOpenai } from "./mock-openai.ts";
import { type MovableClock, movableClock } from "./movable-clock.ts";
import { ofFile } from "./of-file.ts";
import { type Stores, testStores } from "./servers.ts";
import {
  type Client,
  type Customer,
  type Environment,
  eventually,
  type Service,
  startAnotherApi,
  startService,
} from "./service.ts";

/** A model that runs in the worker, and one of OpenAI's, which the mock provider serves. */
export const localModel = "local/chat";
export const providerModel = "openai/gpt-4.1-mini";
export const models = [localModel, providerModel] as const;

export interface Running {
  readonly service: Service;
  readonly provider: MockOpenai;
  readonly stores: Stores;
  /** Starts another API instance of the service, which ends with the test. */
  readonly another: () => Promise<Client>;
}

export async function startWithProvider(
  env: Environment = {},
  onEnd?: (stop: () => Promise<void>) => void,
  clock?: Clock,
): Promise<Running> {
  const provider = await startMockOpenai();
  const stores = await testStores();
  const options = {
    env: { OPENAI_API_KEY: "sk-operator", OPENAI_BASE_URL: provider.url, XAI_BASE_URL: provider.url, ...env },
    ...(clock && { clock }),
  };
  const service = await startService(stores, { ...options, ...(onEnd && { onEnd }) });
  return { service, provider, stores, another: () => startAnotherApi(stores, options) };
}

/** Includes the service's clock. */
export interface FileService extends Running, Omit<MovableClock, "clock"> {}

/** One service for all tests of a file; the provider is reset before each. */
export const serviceOfFile = (env: Environment = {}): FileService =>
  ofFile(
    async (onEnd) => {
      const { clock, ...time } = movableClock();
      const running = await startWithProvider(env, onEnd, clock);
      onEnd(() => running.provider.close());
      return { ...running, ...time };
    },
    ({ provider }) => provider.reset(),
  );

/**
 * Repeats a call until it succeeds, which closes the upstream's circuit breaker: failures of earlier tests do not count.
 * While the upstream is blocked, the service's time moves forward.
 */
export const untilHealthy = async (
  { advance }: Pick<FileService, "advance">,
  call: () => Promise<Response>,
): Promise<void> => {
  await eventually(async () => {
    const { ok } = await call();
    if (!ok) advance(5_000);
    return ok;
  });
};

const user = (content: string) => [{ role: "user" as const, content }];

/** A minimal chat request. */
export const asking = <Model extends string>(model: Model, content = "Hello there") => ({
  model,
  messages: user(content),
});

export interface Refusal {
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly param?: string | null;
  readonly message?: RegExp;
}

/** A field of the request that is refused. */
export const invalidValue = (param: string | null, message = /./): Refusal => ({
  status: 400,
  type: "invalid_request_error",
  code: "invalid_value",
  param,
  message,
});
/** A failed upstream, and one that is full. */
export const upstreamError: Refusal = { status: 502, type: "server_error", code: "upstream_error" };
export const noCapacity: Refusal = { status: 503, type: "server_error", code: "no_capacity" };

/** The result of `refusalOf` for this error. */
export const refusal = ({ status, type, code, param = null, message = /./ }: Refusal) => ({
  status,
  error: { type, code, param, message: expect.stringMatching(message) as string },
});

/**
 * Reads an error response (docs/api/inference.md, part 2), and checks the rules for every error
 * (docs/api/wire-details.md).
 */
export async function refusalOf(response: Response): Promise<{ status: number; error: { message: string } }> {
  const { status, headers } = response;
  const { request_id, ...body } = (await response.json()) as { request_id: string; error: { message: string } };
  expect(request_id).toMatch(/^req_/);
  expect(headers.get("x-request-id")).toBe(request_id);
  expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(headers.get("x-xm-cost-usd")).toBeNull();
  // Retry-After is 1 to 60 whole seconds, only where waiting helps.
  expect(headers.get("retry-after") ?? "").toMatch(status === 429 || status === 503 ? /^([1-9]|[1-5]\d|60)$/ : /^$/);
  expect(headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : null);
  return { status, ...body };
}

/** The fields of a ledger entry that the tests read. */
export interface Entry {
  readonly id: string;
  readonly account: string;
  readonly kind: string;
  readonly amount_usd: string;
  readonly request: {
    readonly model: string;
    readonly endpoint: string;
    readonly upstream: string | null;
    readonly attempts: readonly Readonly<Record<string, unknown>>[];
    readonly status: string;
    readonly error?: string;
    readonly usage: Readonly<Record<string, number>>;
    readonly estimated: boolean;
    readonly shortfall_usd: string;
  };
}

export const entryOf = (service: Client, requestId: string | null | undefined) =>
  service.admin<Entry>("GET", `/requests/${requestId}`);

/** The ledger entry of each admitted call, the latest first, once nothing is held. */
export async function entriesOf(service: Client, customer: Customer): Promise<Entry[]> {
  await service.settled();
  const entries = (await customer.ledger("usage")) as unknown as readonly { id: string }[];
  return Promise.all(entries.map(({ id }) => entryOf(service, id)));
}

/** In nano-USD per unit, by model and price key. */
export type Prices = Readonly<Record<string, Readonly<Record<string, bigint>>>>;

/** The cost of these units at these prices. */
export const costBy =
  (prices: Prices) =>
  (model: string, usage: Readonly<Record<string, number>>): bigint =>
    Object.entries(usage).reduce((cost, [key, count]) => {
      const price = prices[model]?.[key];
      if (price === undefined) throw new Error(`no price of ${key}`);
      return cost + BigInt(count) * price;
    }, 0n);

/** Converts `"-0.00123"` to nano-USD. */
export function nanoUsd(usd: string): bigint {
  const [, sign, whole = "", decimals = ""] = /^(-?)(\d+)\.(\d{2,9})$/.exec(usd) ?? [];
  const amount = BigInt(whole + decimals.padEnd(9, "0"));
  return sign === "-" ? -amount : amount;
}

/** Expects that nothing was charged, and nothing is held. */
export async function expectUntouched(service: Client, customer: Customer, available: string): Promise<void> {
  await service.settled();
  expect(await customer.available()).toBe(available);
}

/**
 * The shipped catalog with some other fields, and more models; the file is removed with the machine's temporary folder.
 */
export function catalogWith(
  upstreams: Readonly<Record<string, object>>,
  models: Readonly<Record<string, object>> = {},
  more: readonly object[] = [],
): string {
  const shipped = JSON.parse(readFileSync(new URL("../../shared/catalog/models.json", import.meta.url), "utf8")) as {
    upstreams: Record<string, object>;
    models: { id: string; upstreams: object[] }[];
  };
  // The shipped costs fit the shipped prices alone.
  const withoutCosts = (entries: readonly object[]) => entries.map((entry) => ({ ...entry, cost: undefined }));
  const changed = {
    ...shipped,
    upstreams: Object.fromEntries(
      Object.entries(shipped.upstreams).map(([id, fields]) => [id, { ...fields, ...upstreams[id] }]),
    ),
    models: [
      ...shipped.models.map((model) => {
        const { [model.id]: change } = models;
        return change ? { ...model, upstreams: withoutCosts(model.upstreams), ...change } : model;
      }),
      ...more,
    ],
  };
  return temporaryJson("catalog", changed);
}

/** A model that makes videos at the provider "openai", as its job, for `catalogWith`. */
export const testVideo = {
  id: "test/video",
  name: "Video",
  owned_by: "test",
  type: "video",
  task: "video",
  released: "2026-01-01",
  input_schema: {
    type: "object",
    required: ["prompt"],
    properties: {
      prompt: { type: "string", minLength: 1 },
      duration: { enum: [4, 8], default: 4 },
      resolution: { enum: ["720x1280", "1024x1792"], default: "720x1280" },
      image: { type: "string" },
    },
  },
  units: { second: { field: "duration" } },
  pricing: { second: "0.1" },
  variants: [{ name: "1024x1792", when: { resolution: ["1024x1792"] }, pricing: { second: "0.3" } }],
  upstreams: [{ upstream: "openai", model: "video-1" }],
};

/** A promise and its resolver, to let a test release waiting work. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

export const never = new Promise<never>(() => {});
