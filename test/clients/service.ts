import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expectSettled, openKey, startProcesses } from "../bench/service.ts";
import { startMockAnthropic } from "../support/mock-anthropic.ts";
import { startMockGemini } from "../support/mock-gemini.ts";
import { startMockOpenai } from "../support/mock-openai.ts";

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
  const mocks = await Promise.all([startMockOpenai(), startMockAnthropic(), startMockGemini()]);
  const [openai, anthropic, gemini] = mocks;
  const clean = async () => {
    for (const mock of mocks) await mock.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  };
  const env = {
    ...(options.publicUrl !== undefined && { PUBLIC_URL: options.publicUrl }),
    PING_INTERVAL_MS: String(pingIntervalMs),
    // Every client may call every model in the background.
    NATIVE_FORMATS_ANY_MODEL: "true",
    OPENAI_API_KEY: "stand-in",
    OPENAI_BASE_URL: openai.url,
    ANTHROPIC_API_KEY: "stand-in",
    ANTHROPIC_BASE_URL: anthropic.url,
    GEMINI_API_KEY: "stand-in",
    GEMINI_BASE_URL: gemini.url,
    ...options.env,
  };
  try {
    const { onProgress } = options;
    const { origin, storesEnv, admin, check, stop } = await startProcesses({ dataDir, env, onProgress });
    return {
      url: origin,
      stores: storesEnv,
      dataDir,
      newKey: async (name) => (await openKey(admin, { name, usd: "1000" })).key,
      checkLedger: () => expectSettled({ check }),
      stop: async () => {
        await stop();
        await clean();
      },
    };
  } catch (error) {
    await clean();
    throw error;
  }
}
