import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAdminClient } from "../../infra/cli/admin-client.ts";
import { createProgram, expectOk, freePort, startEmbedded, until } from "../../infra/embedded/index.ts";
import { startMockAnthropic } from "../support/mock-anthropic.ts";
import { startMockGemini } from "../support/mock-gemini.ts";
import { startMockOpenai } from "../support/mock-openai.ts";
import { migrateDatabase } from "../support/schema.ts";

/** An API and a worker process with separate stores. */
export interface Service {
  readonly url: string;
  /** The addresses of its stores. */
  readonly stores: Readonly<Record<string, string>>;
  /** The directory of the logs `api.log` and `worker.log`. */
  readonly dataDir: string;
  /** Returns the key of a new account with a balance. */
  readonly newKey: (name: string) => Promise<string>;
  /** Throws if the balances do not match the ledger, once no hold is open. */
  readonly checkLedger: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const settleWithinMs = 60_000;
/** Short, so that a pause of two seconds has pings. */
const pingIntervalMs = 500;

/**
 * Mock providers serve the models of OpenAI, Anthropic and Google. `publicUrl` is the callers' address of the service,
 * if it is not direct. `env` is additional configuration.
 */
export async function startService(options: {
  readonly publicUrl?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly onProgress: (text: string) => void;
}): Promise<Service> {
  const dataDir = await mkdtemp(join(tmpdir(), "inference-clients-"));
  const ends: (() => Promise<unknown>)[] = [() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 })];
  const stop = async () => {
    for (const end of ends.toReversed()) await end();
  };
  try {
    const embedded = await startEmbedded({
      env: { ...process.env, REDIS_URL: "", MONGODB_URI: "", S3_ENDPOINT: "" },
      dataDir,
      onProgress: ({ what, step, state }) => options.onProgress(`${what}: ${step}, ${state}`),
    });
    ends.push(embedded.stop);
    const [openai, anthropic, gemini] = await Promise.all([startMockOpenai(), startMockAnthropic(), startMockGemini()]);
    for (const mock of [openai, anthropic, gemini]) ends.push(() => mock.close());
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    const token = randomBytes(24).toString("base64url");
    const env = {
      ...embedded.env,
      HOST: "127.0.0.1",
      PORT: String(port),
      METRICS_PORT: "0",
      ADMIN_TOKEN: token,
      LOCAL_MODELS: "true",
      ...(options.publicUrl !== undefined && { PUBLIC_URL: options.publicUrl }),
      PING_INTERVAL_MS: String(pingIntervalMs),
      OPENAI_API_KEY: "stand-in",
      OPENAI_BASE_URL: openai.url,
      ANTHROPIC_API_KEY: "stand-in",
      ANTHROPIC_BASE_URL: anthropic.url,
      GEMINI_API_KEY: "stand-in",
      GEMINI_BASE_URL: gemini.url,
      ...options.env,
    };
    const start = async (name: string, file: string, readyUrl?: string) => {
      const program = createProgram({
        name,
        command: process.execPath,
        args: [join(import.meta.dirname, "../..", file)],
        env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
        output: join(dataDir, `${name}.log`),
        readyTimeoutMs: 60_000,
        ...(readyUrl !== undefined && { isReady: () => expectOk(readyUrl) }),
      });
      ends.push(program.stop);
      await program.start();
    };
    await migrateDatabase(embedded.env["MONGODB_URI"] ?? "");
    await start("worker", "workers/main.ts");
    await start("api", "api/main.ts", `${origin}/readyz`);
    return { url: origin, stores: embedded.env, dataDir, ...operate(createAdminClient({ url: origin, token })), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function operate(admin: ReturnType<typeof createAdminClient>) {
  return {
    async newKey(name: string) {
      const id = String((await admin("POST", "/accounts", { name }))["id"]);
      await admin("POST", `/accounts/${id}/credits`, { amount_usd: "1000", idempotency_key: name });
      return String((await admin("POST", `/accounts/${id}/keys`, { name }))["key"]);
    },
    async checkLedger() {
      await until(async () => {
        const check = await admin("GET", "/ledger/check");
        if (check["ok"] !== true || check["open_holds"] !== 0)
          throw new Error(`The ledger does not match: ${JSON.stringify(check)}`);
      }, AbortSignal.timeout(settleWithinMs));
    },
  };
}
