import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type AdminClient, createAdminClient } from "../../infra/cli/admin-client.ts";
import { nodeArgs, type Program, startEmbedded } from "../../infra/embedded/index.ts";
import { migrateDatabase } from "../support/schema.ts";
import { freeOrigin, type Measured, measured, startNode } from "./processes.ts";
import { connectStores, type Stores } from "./stores.ts";
import { proveTarget, type Target } from "./workload.ts";

/** `GET /admin/v1/ledger/check`. */
export interface LedgerCheck {
  readonly ok: boolean;
  readonly accounts: number;
  readonly difference_usd: string;
  readonly open_holds: number;
  readonly overdue_holds: number;
  readonly undecided: number;
}

export interface Service {
  /** The target with the account's key, at the first API instance. */
  readonly target: Target;
  /** Opens another account, with its own target. */
  readonly openAccount: () => Promise<{ readonly id: string; readonly target: Target }>;
  /** Starts and stops API instances and workers to reach these numbers. Resolves with the instances' addresses. */
  readonly scale: (apis: number, workers: number) => Promise<readonly string[]>;
  /** The processes that run now: one `api` and `worker` for each instance, and the stores. */
  readonly processes: () => readonly Measured[];
  /** The ports of the first API's and worker's inspectors, if requested. */
  readonly inspectors: readonly { readonly name: string; readonly port: number }[];
  readonly servers: readonly Measured[];
  readonly stores: Stores;
  readonly admin: AdminClient;
  /** Waits until no hold is open (a minute at most), then checks the ledger against the balances. */
  readonly check: () => Promise<LedgerCheck>;
  /** The number of calls paid for by all accounts so far, derived from their balances: every call costs the same. */
  readonly paidCalls: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

const credit = "1000000";
export const noLimits = {
  requests_per_minute: 1_000_000_000,
  tokens_per_minute: 1_000_000_000_000,
  concurrent_requests: 100_000,
};
/** A full check of 10^7 entries may take a minute. */
const adminTimeoutMs = 120_000;
const settlePollMs = 250;
const settleWithinMs = 60_000;

/** Opens an account with this credit, and a key with these limits; by default without a credit and with the usual limits. */
export async function openKey(
  admin: AdminClient,
  {
    name = "bench",
    usd,
    limits,
  }: { readonly name?: string; readonly usd?: string | undefined; readonly limits?: object },
): Promise<{ readonly id: string; readonly key: string }> {
  const id = String((await admin("POST", "/accounts", { name }))["id"]);
  if (usd) await admin("POST", `/accounts/${id}/credits`, { amount_usd: usd, idempotency_key: "bench" });
  return { id, key: String((await admin("POST", `/accounts/${id}/keys`, limits ? { limits } : {}))["key"]) };
}

/** API and worker processes as in production, on stores of their own. */
export interface Processes {
  /** The address of the first API instance. */
  readonly origin: string;
  /** The settings by which processes find the stores. */
  readonly storesEnv: Readonly<Record<string, string>>;
  readonly admin: AdminClient;
  readonly scale: Service["scale"];
  readonly running: Service["processes"];
  readonly inspectors: Service["inspectors"];
  readonly servers: readonly Measured[];
  readonly check: Service["check"];
  readonly stop: () => Promise<void>;
}

/** Starts stores, one API and one worker process. */
export async function startProcesses(options: {
  /** The directory of the stores' data and the processes' logs. */
  readonly dataDir: string;
  readonly inspect?: boolean;
  /** Settings in addition to those of every service here, and in place of them. */
  readonly env?: Readonly<Record<string, string>>;
  readonly onProgress: (text: string) => void;
}): Promise<Processes> {
  const { dataDir, inspect = false, onProgress } = options;
  const embedded = await startEmbedded({
    env: { ...process.env, REDIS_URL: "", MONGODB_URI: "", S3_ENDPOINT: "" },
    dataDir,
    onProgress: ({ what, step, state }) => onProgress(`${what}: ${step}, ${state}`),
  });
  const apis: { readonly program: Program; readonly origin: string }[] = [];
  const workers: { readonly program: Program }[] = [];
  const stop = async () => {
    for (const { program } of [...apis, ...workers]) await program.stop();
    await embedded.stop();
  };
  try {
    const token = randomBytes(24).toString("base64url");
    const env = {
      ...embedded.env,
      HOST: "127.0.0.1",
      METRICS_PORT: "0",
      DRAIN_DELAY: "0",
      ADMIN_TOKEN: token,
      LOCAL_MODELS: "true",
      LOG_LEVEL: "info",
      ...options.env,
    };
    const inspectors: { name: string; port: number }[] = [];
    const start = async (name: "api" | "worker", nth: number) => {
      const [{ port, origin }, inspector] = [await freeOrigin(), await freeOrigin()];
      if (inspect) inspectors.push({ name, port: inspector.port });
      const program = await startNode({
        name: nth === 0 ? name : `${name}-${nth + 1}`,
        args: [...nodeArgs, ...(inspect ? [`--inspect=127.0.0.1:${inspector.port}`] : []), join(root, programs[name])],
        env: { ...env, PORT: String(port) },
        logDir: dataDir,
        ...(name === "api" && { readyUrl: `${origin}/readyz` }),
      });
      return { program, origin };
    };
    const scale = async (apiCount: number, workerCount: number) => {
      for (const { program } of [...workers.splice(workerCount), ...apis.splice(apiCount)]) await program.stop();
      while (workers.length < workerCount) workers.push(await start("worker", workers.length));
      while (apis.length < apiCount) apis.push(await start("api", apis.length));
      return apis.map(({ origin }) => origin);
    };
    await migrateDatabase(embedded.env["MONGODB_URI"] ?? "");
    const [origin = ""] = await scale(1, 1);
    const admin = createAdminClient({ url: origin, token }, adminTimeoutMs);
    const check = async () => {
      const read = async () => (await admin("GET", "/ledger/check")) as unknown as LedgerCheck;
      let now = await read();
      for (let waitedMs = 0; waitedMs < settleWithinMs && now.open_holds > 0; waitedMs += settlePollMs) {
        await wait(settlePollMs);
        now = await read();
      }
      return now;
    };
    const servers = embedded.servers.map((server) => measured(server.name, server));
    const measure = (name: string, running: readonly { readonly program: Program }[]) =>
      running.map(({ program }) => measured(name, program));
    const running = () => [...measure("api", apis), ...measure("worker", workers), ...servers];
    return { origin, storesEnv: embedded.env, admin, scale, running, inspectors, servers, check, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Throws if the balances do not match the ledger, or a hold is open. */
export async function expectSettled({ check }: Pick<Processes, "check">): Promise<void> {
  const { ok, open_holds, ...checked } = await check();
  if (!ok || open_holds > 0)
    throw new Error(`The ledger does not match the balances, or a hold is open: ${JSON.stringify(checked)}`);
}

/** The processes, and one account with a balance and one key. */
export async function startService(options: {
  readonly mockOrigin: string;
  readonly dataDir: string;
  readonly inspect: boolean;
  /** Overrides for the settings that every service here has. */
  readonly env?: Readonly<Record<string, string>>;
  readonly onProgress: (text: string) => void;
}): Promise<Service> {
  const provider = { OPENAI_API_KEY: "bench", OPENAI_BASE_URL: `${options.mockOrigin}/v1` };
  const processes = await startProcesses({ ...options, env: { ...provider, ...options.env } });
  const { origin, storesEnv, admin, scale, running, inspectors, servers, check } = processes;
  const stores = await connectStores(storesEnv);
  const stop = async () => {
    await stores.close();
    await processes.stop();
  };
  try {
    const openAccount = async () => {
      const { id, key } = await openKey(admin, { usd: credit, limits: noLimits });
      const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
      return { id, target: { origin, path: "/v1/chat/completions", headers, model: "openai/gpt-4.1-mini" } };
    };
    const { target } = await openAccount();
    /** Exact while no hold is open. */
    const spentNanoUsd = async () => {
      let spent = 0n;
      for (let after: string | undefined; ; ) {
        const page = (await admin("GET", "/accounts", { limit: 200, after })) as unknown as AccountPage;
        for (const { available_usd } of page.data) spent += nanoUsd(credit) - nanoUsd(available_usd);
        if (page.next === null) return spent;
        after = page.next;
      }
    };
    const provingCalls = 2n;
    await proveTarget("service", target);
    await check();
    const costNanoUsd = (await spentNanoUsd()) / provingCalls;
    if (costNanoUsd <= 0n) throw new Error("The service charged nothing for two calls.");
    const paidCalls = async () => Number(((await spentNanoUsd()) * 1_000n) / costNanoUsd) / 1_000;
    const own = { target, openAccount, paidCalls, stores, stop };
    return { ...own, scale, processes: running, inspectors, servers, admin, check };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface AccountPage {
  readonly data: readonly { readonly available_usd: string }[];
  readonly next: string | null;
}

const programs = { api: "api/main.ts", worker: "workers/main.ts" } as const;
const root = join(import.meta.dirname, "../..");

function nanoUsd(decimal: string): bigint {
  const [whole = "0", fraction = ""] = decimal.split(".");
  return BigInt(whole + fraction.padEnd(9, "0"));
}
