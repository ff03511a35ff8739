import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { CommandError, createAdminClient } from "../../../infra/cli/admin-client.ts";
import { createProgram, expectOk, freePort, nodeArgs, type Program, until } from "../../../infra/embedded/index.ts";
import { createNetwork, type Network, type Place, startWire, type Wire } from "./network.ts";
import { type Payer, startPayer } from "./payer.ts";
import { type CustomerName, customerNames } from "./plan.ts";
import { type Providers, startProviders, upstreamNames, writeCatalog } from "./provider.ts";
import { type ChaosStores, startStores } from "./stores.ts";

export const isNotFound = (error: unknown) => error instanceof CommandError && error.status === 404;

/** A process of the service. */
export interface Instance {
  /** Unique for every process. */
  readonly name: string;
  readonly kind: "api" | "worker";
  readonly program: Program;
  readonly place: Place;
  /** The origin of an API process. */
  readonly origin: string;
  readonly metrics: string;
  readonly inspectorPort: number;
  readonly redis: Wire;
  /** True if a fault ends it. */
  mayEnd: boolean;
}

export interface ChaosCustomer {
  readonly id: string;
  readonly key: string;
}

export type Admin = ReturnType<typeof createAdminClient>;

/** The service in real processes on real stores, with mock providers. */
export interface World {
  readonly network: Network;
  readonly stores: ChaosStores;
  readonly providers: Providers;
  readonly payer: Payer;
  readonly customers: Readonly<Record<CustomerName, ChaosCustomer>>;
  /** The processes that receive calls. */
  running(kind: Instance["kind"]): readonly Instance[];
  /** Resolves when it is ready. */
  start(kind: Instance["kind"]): Promise<Instance>;
  /** Stops sending calls to the instance. */
  withdraw(instance: Instance): void;
  /** Removes an instance that has ended. */
  remove(instance: Instance): Promise<void>;
  /** Processes that ended by themselves. */
  readonly crashes: readonly string[];
  /** Each process's peak memory. */
  readonly peakBytes: ReadonlyMap<string, number>;
  /** The admin interface, at any running API. */
  readonly admin: Admin;
  stop(): Promise<void>;
}

const root = join(import.meta.dirname, "../../..");
const programs = { api: "api/main.ts", worker: "workers/main.ts" } as const;

/** The peak of resident memory so far; 0 when the process has ended. */
function peakBytesOf(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}

const mostStarts = 5;
const open = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000, concurrent_requests: 100_000 };
const accounts: Readonly<Record<CustomerName, { credit: string; limits: object }>> = {
  first: { credit: "100000", limits: open },
  second: { credit: "100000", limits: open },
  third: { credit: "100000", limits: open },
  "nearly empty": { credit: "0.05", limits: open },
  limited: { credit: "1000", limits: { ...open, requests_per_minute: 60, concurrent_requests: 4 } },
  leaving: { credit: "100000", limits: open },
};

export async function startWorld(options: {
  readonly dataDir: string;
  readonly apis: number;
  readonly workers: number;
  readonly network: "namespaces" | "proxies" | undefined;
  /** Starts the processes with inspectors. */
  readonly inspect?: boolean;
  /** Settings of the processes. */
  readonly env?: Readonly<Record<string, string>>;
}): Promise<World> {
  const { dataDir } = options;
  const network = await createNetwork(options.network);
  const stops: (() => Promise<void>)[] = [() => network.close()];
  const stop = async () => {
    for (const each of stops.splice(0).toReversed()) await each();
  };
  const running: Instance[] = [];
  const crashes: string[] = [];
  const peakBytes = new Map<string, number>();
  const sampling = setInterval(() => {
    for (const { name, program } of running) {
      const bytes = program.pid === undefined ? 0 : peakBytesOf(program.pid);
      peakBytes.set(name, Math.max(bytes, peakBytes.get(name) ?? 0));
    }
  }, 500);
  stops.push(async () => clearInterval(sampling));
  let started = 0;
  try {
    const stores = await startStores(dataDir, network);
    stops.push(() => stores.stop());
    const providers = await startProviders();
    stops.push(() => providers.close());
    const payer = await startPayer(network);
    stops.push(() => payer.close());
    const wires = new Map<string, Wire>();
    for (const name of upstreamNames) {
      const wire = await startWire(network.host, () => providers.ports[name]);
      stops.push(async () => wire.close());
      wires.set(name, wire);
    }
    const catalog = await writeCatalog(dataDir, (name) => `http://${network.host}:${wires.get(name)?.port}`);
    const adminToken = randomBytes(24).toString("base64url");
    const common = {
      PATH: process.env["PATH"],
      NODE_ENV: "production",
      NODE_COMPILE_CACHE: join(dataDir, "compiled"),
      ...stores.env,
      ...payer.env,
      ADMIN_TOKEN: adminToken,
      LOCAL_MODELS: "true",
      CATALOG_FILE: catalog,
      CHAOS_API_KEY: "key-of-the-stand-ins",
      NATIVE_FORMATS_ANY_MODEL: "on",
      UPLOAD_USD_PER_GB_DAY: "1024",
      RATE_LIMIT_UPLOADS_PER_MINUTE: "100000",
      RATE_LIMIT_CONCURRENT_UPLOADS: "1000",
      CALL_TIMEOUT_MS: "40000",
      MEDIA_SYNC_TIMEOUT: "35",
      DRAIN_DELAY: "10",
      DRAIN_GRACE: "30",
      LOG_LEVEL: "info",
      ...options.env,
    };

    await promisify(execFile)(process.execPath, [join(root, "infra/cli/migrate.ts")], { env: common });

    async function start(kind: Instance["kind"]): Promise<Instance> {
      const name = `${kind}-${++started}`;
      const place = await network.join();
      const redis = await stores.redis.wire();
      const [port, metricsPort, inspectorPort] = [await freePort(), await freePort(), await freePort()];
      const [origin, metrics] = [`http://${place.host}:${port}`, `http://${place.host}:${metricsPort}`];
      const inspector = options.inspect ? [`--inspect=${place.host}:${inspectorPort}`] : [];
      const [command, ...args] = [
        ...place.prefix,
        process.execPath,
        ...nodeArgs,
        ...inspector,
        join(root, programs[kind]),
      ];
      const program = createProgram({
        name,
        command,
        args,
        env: {
          ...common,
          REDIS_URL: `redis://${network.host}:${redis.port}`,
          HOST: place.host,
          METRICS_HOST: place.host,
          PORT: String(port),
          METRICS_PORT: String(metricsPort),
        },
        output: join(dataDir, `${name}.log`),
        readyTimeoutMs: 60_000,
        stopTimeoutMs: 60_000,
        isReady: () => expectOk(kind === "api" ? `${origin}/readyz` : `${metrics}/readyz`),
      });
      const instance = { name, kind, program, place, origin, metrics, inspectorPort, redis, mayEnd: false };
      program.onCrash((reason) => {
        if (instance.mayEnd) return;
        crashes.push(`${name}: ${reason}`);
        withdraw(instance);
        start(kind).catch((error: Error) => crashes.push(error.message));
      });
      stops.push(() => program.stop());
      // Start again until it is up, as an orchestrator does: a store may be down.
      for (let starts = 1; ; starts++) {
        try {
          await program.start();
          break;
        } catch (error) {
          if (starts === mostStarts) throw error;
        }
      }
      running.push(instance);
      return instance;
    }

    const withdraw = (instance: Instance) => {
      const at = running.indexOf(instance);
      if (at >= 0) running.splice(at, 1);
    };
    const workers = Promise.all(Array.from({ length: options.workers }, () => start("worker")));
    await Promise.all([workers, ...Array.from({ length: options.apis }, () => start("api"))]);

    /** Repeats a request that fails because of a fault at another instance. */
    const admin: Admin = async (method, path, input) => {
      for (let tries = 1; ; tries++) {
        const apis = running.filter(({ kind }) => kind === "api");
        const { origin } = apis[tries % apis.length] as Instance;
        try {
          return await createAdminClient({ url: origin, token: adminToken })(method, path, input);
        } catch (error) {
          if (tries === 30 || isNotFound(error)) throw error;
          await wait(1_000);
        }
      }
    };
    const openAccount = async (name: CustomerName) => {
      const { credit, limits } = accounts[name];
      const id = String((await admin("POST", "/accounts", { name }))["id"]);
      await admin("POST", `/accounts/${id}/credits`, { amount_usd: credit, idempotency_key: "start" });
      const key = String((await admin("POST", `/accounts/${id}/keys`, { name, limits }))["key"]);
      return [name, { id, key }] as const;
    };
    const customers = Object.fromEntries(await Promise.all(customerNames.map(openAccount)));

    return {
      network,
      stores,
      providers,
      payer,
      customers: customers as World["customers"],
      running: (kind) => running.filter((instance) => instance.kind === kind),
      start,
      withdraw,
      crashes,
      peakBytes,
      async remove(instance) {
        withdraw(instance);
        instance.redis.close();
        await instance.place.leave();
      },
      admin,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

export const ended = (instance: Instance): Promise<void> =>
  until(async () => {
    if (instance.program.pid !== undefined) throw new Error(`${instance.name} still runs`);
  }, AbortSignal.timeout(70_000));
