import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Redis } from "ioredis";
import OpenAI from "openai";
import { onTestFinished } from "vitest";
import { startApi } from "../../api/start.ts";
import { type JobName, jobCatalog } from "../../shared/jobs/index.ts";
import { type Clock, systemClock } from "../../shared/platform/clock.ts";
import { loadConfig } from "../../shared/platform/config.ts";
import { createMetrics } from "../../shared/platform/observability/metrics.ts";
import type { Step } from "../../shared/platform/process/shutdown.ts";
import { connectRedis, startRedis } from "../../shared/platform/redis.ts";
import { startWorker } from "../../workers/start.ts";
import { queueOn } from "./jobs-setup.ts";
import { checkLine, createTestLogger, forbidSecrets, testLogLevel } from "./logs.ts";
import { migrateDatabase } from "./schema.ts";
import type { Stores } from "./servers.ts";

export const testAdminToken = "admin-token-of-the-tests-of-32-characters";

export type Environment = Readonly<Record<string, string>>;

export function environment(stores: Stores, env: Environment = {}): Record<string, string> {
  const all = {
    ...stores,
    PORT: "0",
    HOST: "127.0.0.1",
    METRICS_PORT: "0",
    ADMIN_TOKEN: testAdminToken,
    LOCAL_MODELS: "true",
    LOG_LEVEL: testLogLevel,
    DRAIN_DELAY: "0",
    DRAIN_GRACE: "2",
    ...env,
  };
  forbidSecrets(all);
  return all;
}

const runSteps = async (steps: readonly Step[]) => {
  for (const step of steps) await step.run();
};

export type ScheduledJobName = {
  [Name in JobName]: (typeof jobCatalog)[Name] extends { everyMs: number } ? Name : never;
}[JobName];

export interface ServiceOptions {
  readonly env?: Environment;
  readonly clock?: Clock;
  readonly onEnd?: (stop: () => Promise<void>) => void;
  /** Scheduled jobs that run ten times a second, so that a test need not wait for their intervals. */
  readonly often?: readonly ScheduledJobName[];
}

/**
 * API and worker inside the test's own process, with a clock that the test may move. They end with the test, or through
 * `onEnd`.
 */
export async function startService(stores: Stores, options: ServiceOptions = {}): Promise<Service> {
  const env = environment(stores, options.env);
  const { clock = systemClock } = options;
  const deps = { config: loadConfig(env), clock, log: createTestLogger() };
  await migrateDatabase(stores.MONGODB_URI);
  const worker = await startWorker({ ...deps, env, metrics: createMetrics("worker", clock) });
  const stopOften = options.often?.length ? await runOften(stores, options.often) : undefined;
  const api = await startApi({ ...deps, metrics: createMetrics("api", clock) });
  (options.onEnd ?? onTestFinished)(async () => {
    await stopOften?.();
    await runSteps(api.shutdown);
    await runSteps(worker.shutdown);
  });
  const metrics = { api: localOrigin(api.metricsPort), worker: localOrigin(worker.metricsPort) };
  return { ...createClient(api.publicUrl), metrics };
}

/** Enqueues each job again as soon as it has ended. Resolves with what ends that. */
async function runOften(stores: Stores, names: readonly ScheduledJobName[]): Promise<() => Promise<void>> {
  const connection = connectRedis(loadConfig({ ...stores }), "waiting", createTestLogger()) as Redis;
  await startRedis(connection);
  const jobs = names.map((name) => {
    const { pool } = jobCatalog[name];
    return { name, queue: queueOn(connection, pool) };
  });
  const options = { removeOnComplete: true, removeOnFail: true };
  let adding: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    // A job that has not ended is not added again.
    adding = Promise.all(jobs.map(({ name, queue }) => queue.add(name, { v: 1 }, { jobId: name, ...options })));
  }, 100);
  return async () => {
    clearInterval(timer);
    await adding;
    await Promise.all(jobs.map(({ queue }) => queue.close()));
    connection.disconnect();
  };
}

/** Another API instance in the test's own process. It ends with the test. */
export async function startAnotherApi(
  stores: Stores,
  { env, clock = systemClock }: { env?: Environment; clock?: Clock },
): Promise<Client> {
  const config = loadConfig(environment(stores, env));
  const api = await startApi({ config, clock, log: createTestLogger(), metrics: createMetrics("api", clock) });
  onTestFinished(() => runSteps(api.shutdown));
  return createClient(api.publicUrl);
}

const localOrigin = (port: number) => `http://127.0.0.1:${port}`;

/** A process of the service, with its log lines. */
export interface ServiceProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly log: readonly Record<string, unknown>[];
  /** Resolves with the first matching line, past or future. */
  line(fits: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>;
  kill(signal: NodeJS.Signals): void;
  exited: Promise<number | null>;
}

/** A process that may not be started yet. */
export function spawnProcess(kind: "api" | "workers", env: Environment, cwd = "."): ServiceProcess {
  const child = spawn(process.execPath, [`${kind}/main.ts`], {
    cwd,
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log: Record<string, unknown>[] = [];
  const waiting = new Set<(line: Record<string, unknown>) => void>();
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (text) => {
    checkLine(text);
    const line = JSON.parse(text) as Record<string, unknown>;
    log.push(line);
    for (const see of waiting) see(line);
  });
  createInterface({ input: child.stderr as NodeJS.ReadableStream }).on("line", (text) => {
    checkLine(text);
    process.stderr.write(`${text}\n`);
  });
  // Lines may still arrive after the exit event.
  const exited = once(child, "close").then(([code]) => code as number | null);
  onTestFinished(async ({ task }) => {
    child.kill("SIGKILL");
    await exited;
    // The failure alone does not show the reason for a hang.
    if (task.result?.state === "fail")
      for (const line of log.slice(-20)) process.stderr.write(`${kind} ${child.pid}: ${JSON.stringify(line)}\n`);
  });
  return {
    child,
    pid: child.pid as number,
    log,
    line: (fits) =>
      new Promise((resolve, reject) => {
        const found = log.find(fits);
        if (found) return resolve(found);
        const see = (line: Record<string, unknown>) => {
          if (!fits(line)) return;
          waiting.delete(see);
          resolve(line);
        };
        waiting.add(see);
        void exited.then(() => reject(new Error(`the process ended; its log: ${JSON.stringify(log.slice(-5))}`)));
      }),
    kill: (signal) => void child.kill(signal),
    exited,
  };
}

/** For tests that wait until a killed API or worker counts as dead: much shorter than by default. */
export const apiTimeoutMs = 10_000;
export const shortApiTimeout = { API_TIMEOUT_MS: String(apiTimeoutMs) };
export const shortTimeouts = { JOB_LOCK_MS: "3000", ...shortApiTimeout };

/** An API process that listens. `cwd` is the folder of the service's files. */
export async function spawnApi(
  stores: Stores,
  env: Environment = {},
  cwd?: string,
): Promise<ServiceProcess & { client: Client; metrics: string }> {
  await migrateDatabase(stores.MONGODB_URI);
  const api = spawnProcess("api", environment(stores, env), cwd);
  const { url, metricsPort } = await api.line(({ msg }) => msg === "listening");
  return { ...api, client: createClient(url as string), metrics: localOrigin(metricsPort as number) };
}

/** A worker process that takes jobs. */
export async function spawnWorker(
  stores: Stores,
  env: Environment = {},
  cwd?: string,
): Promise<ServiceProcess & { metrics: string }> {
  await migrateDatabase(stores.MONGODB_URI);
  const worker = spawnProcess("workers", environment(stores, env), cwd);
  const { metricsPort } = await worker.line(({ msg }) => msg === "taking jobs");
  return { ...worker, metrics: localOrigin(metricsPort as number) };
}

export interface Check {
  readonly ok: boolean;
  readonly difference_usd: string;
  readonly open_holds: number;
  readonly undecided: number;
}

/** Includes the addresses of its processes' metrics. */
export interface Service extends Client {
  readonly metrics: Readonly<Record<"api" | "worker", string>>;
}

/** A service over HTTP, for its operator and its users. */
export interface Client {
  readonly baseUrl: string;
  admin<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T>;
  /** An account with a balance and a key. */
  account(usd: string, options?: { tier?: "standard" | "elite"; limits?: Record<string, number> }): Promise<Customer>;
  check(): Promise<Check>;
  /** Resolves once the money check is ok and no hold is open. */
  settled(): Promise<Check>;
}

export interface Customer {
  readonly id: string;
  readonly key: string;
  readonly openai: OpenAI;
  post(
    path: string,
    body: unknown,
    init?: { signal?: AbortSignal; headers?: Record<string, string> },
  ): Promise<Response>;
  available(): Promise<string>;
  ledger(kind?: string): Promise<readonly Record<string, never>[]>;
}

/** Posts with this key. A string body is sent unchanged. */
export const postWith =
  (baseUrl: string, key: string): Customer["post"] =>
  (path, body, init) =>
    fetch(`${baseUrl}${path}`, {
      method: "POST",
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...init,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...init?.headers },
    });

/** The operator and the users of a service at this address. */
export function createClient(baseUrl: string): Client {
  const admin = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${baseUrl}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${testAdminToken}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as T;
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
  const client: Client = {
    baseUrl,
    admin,
    async account(usd, { tier = "standard", limits } = {}) {
      const { id } = await admin<{ id: string }>("POST", "/accounts", { name: "test", tier });
      if (Number(usd) > 0)
        await admin("POST", `/accounts/${id}/credits`, { amount_usd: usd, idempotency_key: "start" });
      const { key } = await admin<{ key: string }>("POST", `/accounts/${id}/keys`, limits ? { limits } : {});
      return {
        id,
        key,
        openai: new OpenAI({ apiKey: key, baseURL: `${baseUrl}/v1`, maxRetries: 0 }),
        post: postWith(baseUrl, key),
        available: async () => (await admin<{ available_usd: string }>("GET", `/accounts/${id}`)).available_usd,
        ledger: async (kind) =>
          (
            await admin<{ data: Record<string, never>[] }>(
              "GET",
              `/accounts/${id}/ledger?limit=200${kind ? `&kind=${kind}` : ""}`,
            )
          ).data,
      };
    },
    check: () => admin<Check>("GET", "/ledger/check"),
    // The sweeper releases no hold before MongoDB has been up for twice `API_TIMEOUT_MS`: a minute by default.
    settled: () =>
      eventually(async () => {
        const check = await client.check();
        return check.ok && check.open_holds === 0 ? check : undefined;
      }),
  };
  return client;
}

/** Resolves when the instance is ready: it reaches a worker and both stores. */
export const ready = ({ baseUrl }: Pick<Client, "baseUrl">) =>
  eventually(async () => (await fetch(`${baseUrl}/readyz`)).ok);

/** Polls until there is a value. The limit is generous, because a busy machine is slow. */
export async function eventually<T>(
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = 120_000,
): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`it did not come true within ${withinMs} ms: ${String(ask)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
