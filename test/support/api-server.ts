import { onTestFinished } from "vitest";
import { startApi } from "../../api/start.ts";
import { type Clock, systemClock } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createMetrics } from "../../shared/platform/observability/metrics.ts";
import { createTrafficCounter, startTraffic, type TrafficCounter } from "../../shared/traffic/index.ts";
import { keyOf } from "./account-caller.ts";
import { type Instance, startInstance } from "./keys-instance.ts";
import { createTestLogger } from "./logs.ts";
import { captureOf, createMovableClock, held, holdOf, openAccount } from "./money-setup.ts";
import { ofFile } from "./of-file.ts";
import { migrateDatabase } from "./schema.ts";
import { type Stores, testStores } from "./servers.ts";
import { type Client, createClient, type Environment, environment, testAdminToken } from "./service.ts";

/** The fields that tests read one by one. */
interface Body {
  readonly id: string;
  readonly key: string;
  readonly data: readonly { readonly id: string; readonly created_at: number }[];
  readonly has_more: boolean;
  readonly next: string;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

/** The API over HTTP, and an instance of the test's own on its stores, to do what another process would. */
export interface ApiServer extends Instance, Client {
  readonly stores: Stores;
  /** A request of an operator. A string body is sent unchanged. */
  readonly ask: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;
}

interface Options {
  readonly env?: Environment;
  readonly stores?: Stores;
  readonly clock?: Clock;
  readonly onEnd?: (stop: () => Promise<void>) => void;
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const generous = { RATE_LIMIT_ACCOUNT_REQUESTS_PER_MINUTE: "100000", SIGN_IN_FAILURES_PER_MINUTE: "1000" };

/** An API without workers. It ends with the test, or through `onEnd`. */
export async function startApiServer(options: Options = {}): Promise<ApiServer> {
  const { env, clock = systemClock, onEnd = onTestFinished } = options;
  const stores = options.stores ?? (await testStores());
  await migrateDatabase(stores.MONGODB_URI);
  const instance = await startInstance(stores, clock, onEnd);
  const config = loadConfig(environment(stores, { ...generous, ...env }));
  const api = await startApi({ config, clock, log: createTestLogger(), metrics: createMetrics("api", clock) });
  onEnd(async () => {
    for (const step of api.shutdown) await step.run();
  });
  return {
    ...instance,
    ...createClient(api.publicUrl),
    stores,
    async ask(method, path, body, headers = bearer(testAdminToken)) {
      const response = await fetch(`${api.publicUrl}/admin/v1${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
    },
  };
}

/** One API for all tests of a file. `later` moves its clock. */
export const apiOfFile = (env: Environment = {}) =>
  ofFile(
    async (onEnd) => {
      const clock = createMovableClock();
      return { ...(await startApiServer({ env, clock, onEnd })), clock };
    },
    () => {},
  );

/** An account with a key for itself and two for calls; calls are of the first unless they say otherwise. */
export async function openCustomer(server: ReturnType<typeof apiOfFile>, balanceNanoUsd = 1_000_000_000n) {
  const { money, clock } = server;
  const account = await openAccount(money, balanceNanoUsd);
  const [manager, first, second] = await Promise.all([
    keyOf(server, account, { scopes: ["manage"] }),
    keyOf(server, account),
    keyOf(server, account),
  ]);
  const call = async (more: Partial<Parameters<typeof captureOf>[2]> & { costNanoUsd?: bigint } = {}) => {
    const { costNanoUsd = 1_000n, ...fields } = more;
    const hold = await held(money, holdOf(account, 1_000_000n, { expiresAt: clock.now() + 600_000 }));
    await money.charge(captureOf(hold, costNanoUsd, { key: first.id, ...fields }));
    return hold.requestId;
  };
  return { account, manager, first, second, call };
}

/** The call of an account, held and charged as by a worker. Returns its request id. */
export async function settledCall({ money }: Instance, account: string): Promise<string> {
  const hold = await held(money, holdOf(account, 2_000_000n));
  const attempts = [{ upstream: "local", startedMs: 1, durationMs: 40, outcome: "succeeded" }] as const;
  const times = { queueMs: 3, firstTokenMs: 20, totalMs: 340 };
  await money.charge(
    captureOf(hold, 1_234_567n, {
      key: "key_1",
      model: "local/chat",
      upstream: "local",
      upstreamCostNanoUsd: 1_100_000n,
      attempts,
      usage: { input: 12, output: 30 },
      ...times,
    }),
  );
  return hold.requestId;
}

/** Counts calls as an API instance does, and writes the counts. */
export async function countCalls({ redis }: Instance, count: (counter: TrafficCounter) => void): Promise<void> {
  const counter = createTrafficCounter();
  const traffic = startTraffic({ counter, redis, clock: systemClock, log: createLogger("test", "silent") });
  count(counter);
  await traffic.stop();
}
