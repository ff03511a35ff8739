import { type Catalog, CatalogError, loadCatalog, upstreamVariables } from "#catalog";
import { buybackConfig, settlerOf, solanaConfig } from "#payments";
import { systemClock } from "#platform/clock";
import { type Config, environment, loadConfig, secretVariables } from "#platform/config";
import { ConfigError } from "#platform/config-error";
import { createProcessLogger } from "#platform/logger";
import { type Environment, fileVariable, withSecretFiles } from "#platform/process/secret-files";
import { createSecrets } from "#secrets";
import { maxTypos, typosBetween } from "../../shared/typos.ts";
import { createCounting } from "../../workers/counting/index.ts";
import { createExecutor } from "../../workers/executors/index.ts";
import { poolsOf } from "../../workers/pool.ts";
import { openUpstream } from "../../workers/upstreams/upstream.ts";
import { startEnvironment } from "./start-config.ts";

export const processes = ["api", "worker"] as const;
export type ProcessName = (typeof processes)[number];

export interface ConfigReport {
  readonly ok: boolean;
  /**
   * The order is that of docs/configuration.md. Secret values are masked. `file` names the file that holds the value.
   */
  readonly set: readonly { readonly name: string; readonly value: string; readonly file?: string }[];
  /** `key` is the name of the variable that holds the API key, null for an upstream that needs none. */
  readonly upstreams: readonly {
    readonly id: string;
    readonly state: "ready" | "no key";
    readonly key: string | null;
  }[];
  /** Variables that nothing reads and whose name resembles one that is read. */
  readonly unknown: readonly { readonly name: string; readonly did_you_mean: string }[];
  readonly faults: readonly string[];
}

/** Variables that the commands read in addition to those of the service. */
const commandVariables = ["ADMIN_URL", ...Object.keys(startEnvironment.shape)];
/**
 * Runs the work and returns undefined if it throws an error that would stop a start. Faults that follow from an earlier
 * fault are not reported.
 */
type Attempt = <T>(work: () => T | Promise<T>) => Promise<T | undefined>;
const mask = "***";
const firstVariable = /^[A-Z][A-Z0-9_]+/;

/** Loads the configuration in the way that these processes do at their start, up to the first connection. */
export async function checkConfig(env: Environment, asked: readonly ProcessName[]): Promise<ConfigReport> {
  const faults = new Set<string>();
  const faulty = new Set<string>();
  const attempt: Attempt = async (work) => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ConfigError || error instanceof CatalogError)) throw error;
      const found = error instanceof ConfigError ? error.faults : [error.message];
      for (const fault of found) if (!faulty.has(firstVariable.exec(fault)?.[0] ?? "")) faults.add(fault);
      return undefined;
    }
  };
  /** Returns the environment with the content of the secret's file, if that file can be read. */
  async function withFile(given: Environment, name: string): Promise<Environment> {
    const read = await attempt(() => withSecretFiles(given, [name]));
    if (!read) faulty.add(name);
    return read ?? { ...given, [name]: undefined };
  }

  let given = env;
  for (const name of secretVariables) given = await withFile(given, name);
  await attempt(() => loadConfig(given));
  const config = soundPart(given, faulty);
  const catalog = await attempt(() =>
    loadCatalog(config.CATALOG_FILE, config.CATALOG_OVERLAY, { localModels: config.LOCAL_MODELS }),
  );
  const variables = catalog ? upstreamVariables(catalog) : [];

  await attempt(() => void buybackConfig(config));
  await attempt(() => void createSecrets(config));
  const x402 = await attempt(() => solanaConfig(config));
  if (asked.includes("api") && x402) await attempt(() => settlerOf(x402));
  let upstreams: ConfigReport["upstreams"] = [];
  if (asked.includes("worker")) {
    const pools = await attempt(() => poolsOf(config));
    if (pools?.includes("maintenance"))
      await attempt(async () => (await createExecutor({ config, clock: systemClock })).close());
    for (const { name, secret } of variables) if (secret) given = await withFile(given, name);
    if (catalog) upstreams = await stateUpstreams(catalog, given, attempt);
  }

  const secrets = [...secretVariables, ...variables.flatMap(({ name, secret }) => (secret ? [name] : []))];
  const names = [...Object.keys(environment.shape), ...variables.map(({ name }) => name)];
  return {
    ok: faults.size === 0,
    set: names.flatMap((name) => {
      const value = env[name];
      const file = secrets.includes(name) ? env[fileVariable(name)] : undefined;
      if (!value && !file) return [];
      const shown = secrets.includes(name) ? mask : (value ?? "").replace(/\/\/[^/?#]*@/, `//${mask}@`);
      return [{ name, value: shown, ...(file && { file }) }];
    }),
    upstreams,
    unknown: unknownVariables(env, [...names, ...secrets.map(fileVariable), ...commandVariables]),
    faults: [...faults],
  };
}

/** Uses the valid values, and defaults for the rest, so that the remaining checks can still run. */
function soundPart(given: Environment, faulty: Set<string>): Config {
  const values = Object.entries(environment.shape).map(([name, schema]) => {
    const parsed = schema.safeParse(given[name] || undefined);
    if (!parsed.success) faulty.add(name);
    return [name, parsed.success ? parsed.data : schema.safeParse(undefined).data];
  });
  return Object.fromEntries(values) as Config;
}

/** Checks that each upstream has its key and address. Does not throw: `attempt` collects the faults. */
async function stateUpstreams(
  catalog: Catalog,
  env: Environment,
  attempt: Attempt,
): Promise<ConfigReport["upstreams"]> {
  const log = createProcessLogger("config", "silent");
  const counting = createCounting({ clock: systemClock, log });
  const states: ConfigReport["upstreams"][number][] = [];
  for (const upstream of catalog.upstreams.values()) {
    const opened = await attempt(() => openUpstream(upstream, env, { clock: systemClock, counting, log }));
    await opened?.provider.close();
    states.push({ id: upstream.id, state: opened ? "ready" : "no key", key: upstream.apiKeyEnv ?? null });
  }
  await counting.close();
  return states;
}

const plain = (name: string): string => name.toLowerCase().replaceAll("_", "");

/** Returns true if the name is the other one without some of its later words, such as OPENAI_KEY for OPENAI_API_KEY. */
function isShortened(name: string, other: string): boolean {
  const words = name.split("_");
  const [first, ...others] = other.split("_");
  if (words.length < 2 || words[0] !== first) return false;
  let at = 0;
  for (const word of others) if (word === words[at + 1]) at += 1;
  return at === words.length - 1 && at < others.length;
}

function unknownVariables(env: Environment, known: readonly string[]): ConfigReport["unknown"] {
  return Object.keys(env).flatMap((name) => {
    if (!env[name] || known.includes(name)) return [];
    const wanted = plain(name);
    const limit = maxTypos(wanted);
    const near = known
      .map((each) => ({
        each,
        typos: isShortened(name, each) ? limit : typosBetween(wanted, plain(each), limit),
      }))
      .filter(({ typos }) => typos <= limit)
      .toSorted((one, other) => one.typos - other.typos)[0];
    return near ? [{ name, did_you_mean: near.each }] : [];
  });
}
