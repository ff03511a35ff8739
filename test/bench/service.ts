import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type Program, startEmbedded } from "../../infra/embedded/index.ts";
import { freeOrigin, type Measured, measured, startNode } from "./processes.ts";
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
  readonly target: Target;
  readonly processes: readonly Measured[];
  /** Where the API's and the worker's inspectors listen, if that was asked for. */
  readonly inspectors: readonly { readonly name: string; readonly port: number }[];
  readonly stores: readonly Measured[];
  /** Waits until no hold is open (a minute at most), then checks the books. */
  readonly check: () => Promise<LedgerCheck>;
  /** How many calls the account has paid for so far, by its balance: every call costs the same. */
  readonly paidCalls: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

const credit = "1000000";
const limits = {
  requests_per_minute: 1_000_000_000,
  tokens_per_minute: 1_000_000_000_000,
  concurrent_requests: 100_000,
};

/** Stores, one API and one worker process as in production, one account with a balance and one key. */
export async function startService(options: {
  readonly mockOrigin: string;
  readonly dataDir: string;
  readonly logDir: string;
  readonly inspect: boolean;
  /** Added to the settings that every service here has. */
  readonly env?: Readonly<Record<string, string>>;
  readonly onProgress: (text: string) => void;
}): Promise<Service> {
  const { mockOrigin, dataDir, logDir, inspect, onProgress } = options;
  const embedded = await startEmbedded({
    env: { ...process.env, REDIS_URL: "", MONGODB_URI: "", S3_ENDPOINT: "" },
    dataDir,
    onProgress: ({ what, step, state }) => onProgress(`${what}: ${step}, ${state}`),
  });
  const programs: Program[] = [];
  const stop = async () => {
    for (const program of programs) await program.stop();
    await embedded.stop();
  };
  try {
    const { port, origin } = await freeOrigin();
    const adminToken = randomBytes(24).toString("base64url");
    const env = {
      ...embedded.env,
      HOST: "127.0.0.1",
      PORT: String(port),
      ADMIN_TOKEN: adminToken,
      LOG_LEVEL: "info",
      OPENAI_API_KEY: "bench",
      OPENAI_BASE_URL: `${mockOrigin}/v1`,
      ...options.env,
    };
    const inspectors: { name: string; port: number }[] = [];
    const start = async (name: string, file: string, readyUrl?: string): Promise<Measured> => {
      const inspector = await freeOrigin();
      inspectors.push({ name, port: inspector.port });
      const args = [...(inspect ? [`--inspect=127.0.0.1:${inspector.port}`] : []), join(root, file)];
      const program = await startNode({ name, args, env, logDir, ...(readyUrl !== undefined && { readyUrl }) });
      programs.unshift(program);
      return measured(name, program);
    };
    const worker = await start("worker", "workers/main.ts");
    const api = await start("api", "api/main.ts", `${origin}/readyz`);

    const ask = createAsk(`${origin}/admin/v1`, adminToken);
    const account = await ask<{ id: string }>("POST", "/accounts", { name: "bench" });
    await ask("POST", `/accounts/${account.id}/credits`, { amount_usd: credit, idempotency_key: "bench" });
    const { key } = await ask<{ key: string }>("POST", `/accounts/${account.id}/keys`, { name: "bench", limits });
    const target: Target = {
      origin,
      path: "/v1/chat/completions",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      model: "openai/gpt-4.1-mini",
    };

    const spentNanoUsd = async () => {
      const read = () => ask<{ available_usd: string; open_holds: number }>("GET", `/accounts/${account.id}`);
      let now = await read();
      for (let tries = 0; tries < 600 && now.open_holds > 0; tries++) {
        await wait(100);
        now = await read();
      }
      return nanoUsd(credit) - nanoUsd(now.available_usd);
    };
    const provingCalls = 2n;
    await proveTarget("service", target);
    const costNanoUsd = (await spentNanoUsd()) / provingCalls;
    if (costNanoUsd <= 0n) throw new Error("The service charged nothing for two calls.");

    const stores = embedded.servers.map((server) => measured(server.name, server));
    return {
      target,
      processes: [api, worker, ...stores],
      inspectors: inspect ? inspectors : [],
      stores,
      async paidCalls() {
        return Number(((await spentNanoUsd()) * 1_000n) / costNanoUsd) / 1_000 - Number(provingCalls);
      },
      async check() {
        await spentNanoUsd();
        return ask<LedgerCheck>("GET", "/ledger/check");
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const root = join(import.meta.dirname, "../..");

const createAsk =
  (base: string, token: string) =>
  async <T>(method: string, path: string, body?: object): Promise<T> => {
    const response = await fetch(base + path, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answers ${response.status}: ${text.slice(0, 500)}`);
    return JSON.parse(text) as T;
  };

function nanoUsd(decimal: string): bigint {
  const [whole = "0", fraction = ""] = decimal.split(".");
  return BigInt(whole + fraction.padEnd(9, "0"));
}
