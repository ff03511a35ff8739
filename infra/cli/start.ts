import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { sleep, systemClock } from "#platform/clock";
import { loadConfig, secretVariables } from "#platform/config";
import { type Environment, withSecretFiles } from "#platform/process/secret-files";
import { publicKeyOf } from "#secrets";
import {
  createProgram,
  expectOk,
  freePort,
  isFree,
  nodeArgs,
  type Program,
  spawnGuarded,
  startEmbedded,
  until,
} from "../embedded/index.ts";
import { startSolana } from "../embedded/solana/server.ts";
import { buildDashboard } from "./build-dashboard.ts";
import { checkConfig } from "./config-check.ts";
import { ensureDemo, runningDemo, storedAdminToken, storedPrivateKey } from "./demo.ts";
import { openLogFile } from "./log-file.ts";
import { issueSignInCodes } from "./sign-in-codes.ts";
import { readStartConfig } from "./start-config.ts";
import { createTerminal, runOf, type Terminal } from "./terminal.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const readyWithinMs = 60_000;
/** The longest time that a process takes to stop after its drain. */
const settleMs = 25_000;
/** Both the terminal and npm forward Ctrl-C: two signals within this time count as one. */
const sameSignalMs = 500;
const firstRestartMs = 250;
const maxRestartMs = 30_000;
/** A program that has run this long is restarted with the first delay again. */
const steadyMs = 60_000;

/** Starts everything and resolves when the signal aborts. Rejects when something does not start. */
async function start(env: Environment, terminal: Terminal, quit: AbortSignal, programs: Program[]): Promise<void> {
  const { DATA_DIR, WORKERS } = readStartConfig(env);
  const running = await runningDemo(DATA_DIR);
  if (running)
    throw new Error(
      `The service already runs at ${running}. ${runOf(DATA_DIR)} dashboard:link prints links to its dashboard. ` +
        "DATA_DIR=<another folder> npm start runs a second one.",
    );
  // There is no load balancer to wait for, and Ctrl-C should take effect soon.
  const drain = { DRAIN_DELAY: env.DRAIN_DELAY || "0", DRAIN_GRACE: env.DRAIN_GRACE || "10" };
  const config = loadConfig({ ...env, ...drain, ...placeholderAddresses(env) });
  // Checked before downloads that can take minutes, and again below in case another process has taken the port since.
  await choosePort(env.PORT, config.HOST);
  const dataDir = resolve(DATA_DIR);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const logFile = openLogFile(join(DATA_DIR, "service.log"));
  const output = (line: string) => terminal.line(line, logFile);
  const adminToken = config.ADMIN_TOKEN ?? (await storedAdminToken(dataDir));
  const privateKeys = config.SECRETS_PRIVATE_KEYS ?? (await storedPrivateKey(dataDir));
  const [stores, solana, dashboard] = await Promise.allSettled([
    startEmbedded({ env, dataDir, onProgress: terminal.progress, signal: quit }),
    hasOwnPayments(env) ? undefined : startSolana(join(dataDir, "solana")),
    buildDashboard(terminal.log.info.bind(terminal.log)),
  ]);
  if (stores.status === "fulfilled") programs.push(...stores.value.servers);
  if (solana.status === "fulfilled" && solana.value) programs.push(solana.value.server);
  if (stores.status === "rejected") throw stores.reason;
  if (solana.status === "rejected") throw solana.reason;
  if (dashboard.status === "rejected") throw dashboard.reason;
  const [embedded, chain] = [stores.value, solana.value];

  const port = await choosePort(env.PORT, config.HOST);
  const origin = originOf(config.HOST, port);
  const processEnv: Environment = {
    ...env,
    ...drain,
    ...embedded.env,
    ...chain?.server.env,
    PORT: String(port),
    ADMIN_TOKEN: adminToken,
    SECRETS_PUBLIC_KEY: config.SECRETS_PUBLIC_KEY ?? publicKeyOf(privateKeys.slice(0, 44)),
    SECRETS_PRIVATE_KEYS: privateKeys,
    LOCAL_MODELS: env["LOCAL_MODELS"] || "true",
    // Receivers of webhooks that are being developed run on this machine.
    WEBHOOK_ALLOWED_NETWORKS: config.WEBHOOK_ALLOWED_NETWORKS ?? (config.WEBHOOK_PROXY_URL ? "" : "127.0.0.0/8"),
  };
  const metricsHost = config.METRICS_HOST;
  const metrics: Record<string, string> = {};
  const node = async (key: string, name: string, file: string, isReady?: () => Promise<void>) => {
    // Each process has its own port, which it keeps across restarts.
    const metricsPort = await freePort(metricsHost);
    metrics[key] = originOf(metricsHost, metricsPort);
    return createProgram({
      name,
      command: process.execPath,
      args: [...nodeArgs, join(root, file)],
      // The API seals secrets of customers, and must not be able to open them.
      env: { ...processEnv, ...(key === "api" && { SECRETS_PRIVATE_KEYS: "" }), METRICS_PORT: String(metricsPort) },
      output,
      stopTimeoutMs: (config.DRAIN_DELAY + config.DRAIN_GRACE) * 1_000 + settleMs,
      isReady,
    });
  };
  const api = await node("api", "API", "api/main.ts", () => expectOk(`${origin}/healthz`));
  const workers: Program[] = [];
  for (let n = 1; n <= WORKERS; n++)
    workers.push(await node(n === 1 ? "worker" : `worker_${n}`, `Worker ${n}`, "workers/main.ts"));
  programs.unshift(api, ...workers);
  // No other process uses a MongoDB that was started here.
  terminal.log.info("Preparing the database.");
  await migrateDatabase(processEnv, env.MONGODB_URI ? [] : ["--offline"], output, quit);

  await duringStart(programs, quit, async (signal) => {
    await Promise.all([api, ...workers].map((program) => program.start()));
    await until(() => expectOk(`${origin}/readyz`), signal);
  });
  const baseUrl = config.PUBLIC_URL ?? origin;
  const [token = adminToken] = adminToken.split(",");
  const mongodbUri = processEnv["MONGODB_URI"] ?? "";
  const demo = await ensureDemo({
    origin,
    baseUrl,
    adminToken: token,
    mongodbUri,
    dataDir,
    metrics,
    x402: chain?.payments,
  });
  const codes = await issueSignInCodes(demo, origin);
  for (const program of programs) supervise(program, terminal.log, quit);
  for (const { name, did_you_mean } of (await checkConfig(env, [])).unknown)
    terminal.log.warn(`Nothing reads ${name}. Did you mean ${did_you_mean}?`);
  terminal.ready({ demo, codes, dataDir: DATA_DIR, logFile: logFile.file });
  if (!quit.aborted) await once(quit, "abort");
}

/** Restarts a program whenever it ends, until the signal aborts. The delay grows while the program keeps ending. */
function supervise(program: Program, log: Terminal["log"], signal: AbortSignal): void {
  let delayMs = firstRestartMs;
  let startedAt = systemClock.now();

  async function restart(crash: string): Promise<void> {
    let reason = crash;
    if (systemClock.now() - startedAt >= steadyMs) delayMs = firstRestartMs;
    while (!signal.aborted) {
      log.error(`${program.name} ended: ${reason}. Restarting it in ${delayMs / 1000} s.`);
      try {
        await sleep(systemClock, delayMs, signal);
        delayMs = Math.min(2 * delayMs, maxRestartMs);
        startedAt = systemClock.now();
        await program.start();
        log.info(`${program.name} runs again.`);
        return;
      } catch (error) {
        reason = error instanceof Error ? error.message : String(error);
      }
    }
  }

  program.onCrash((reason) => void restart(reason));
}

/** Runs `npm run migrate` and waits until it exits. */
async function migrateDatabase(
  env: Environment,
  options: readonly string[],
  output: (line: string) => void,
  quit: AbortSignal,
): Promise<void> {
  const args = [join(root, "infra/cli/migrate.ts"), ...options];
  const { child, ended } = spawnGuarded({ command: process.execPath, args, env, output });
  const stop = () => child.kill("SIGTERM");
  quit.addEventListener("abort", stop, { once: true });
  const reason = await ended;
  quit.removeEventListener("abort", stop);
  if (reason !== "exit code 0") throw new Error("The database could not be prepared.");
}

/** Returns true if payments are configured, so that the demo's chain is not needed. */
const hasOwnPayments = (env: Environment): boolean =>
  Boolean(env.X402_PAY_TO || env.SOLANA_RPC_URL || env.X402_FACILITATOR_URL);

/** Nothing is restarted during startup: a process that exits then is misconfigured, and its log says how. */
async function duringStart(
  programs: readonly Program[],
  quit: AbortSignal,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  for (const program of programs)
    program.onCrash((reason) => failed.abort(new Error(`${program.name} ended while starting: ${reason}.`)));
  const late = AbortSignal.timeout(readyWithinMs);
  try {
    await run(AbortSignal.any([failed.signal, quit, late]));
  } catch (error) {
    throw failed.signal.aborted ? failed.signal.reason : error;
  }
}

/**
 * Placeholders for the addresses of the embedded servers, so that the rest of the configuration can be checked first.
 */
function placeholderAddresses(env: Environment): Environment {
  return {
    ...(!(env.REDIS_URL || env.REDIS_SENTINELS || env.REDIS_CLUSTER_NODES) && { REDIS_URL: "redis://unknown" }),
    ...(!env.MONGODB_URI && { MONGODB_URI: "mongodb://unknown" }),
    ...(!env.S3_ENDPOINT && { S3_ENDPOINT: "http://unknown", S3_ACCESS_KEY_ID: "unknown", S3_SECRET_ACCESS_KEY: "-" }),
  };
}

async function choosePort(given: string | undefined, host: string): Promise<number> {
  if (given === "0") return freePort(host);
  if (given) {
    if (await isFree(Number(given), host)) return Number(given);
    throw new Error(`PORT ${given} is in use. Set another one, or 0 for any free one.`);
  }
  let port = 8080;
  while (!(await isFree(port, host))) port += 1;
  return port;
}

/** The address at which this machine reaches a listener on the host. */
function originOf(host: string, port: number): string {
  const reached = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}

/** The first signal stops everything in order; a second one kills everything immediately. */
function quitOnSignals(quit: AbortController, programs: readonly Program[], terminal: Terminal): void {
  let firstAt: number | undefined;
  const stop = (why: string) => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      terminal.log.info(`${why}: shutting down in order. A second signal stops everything immediately.`);
      quit.abort();
    } else if (performance.now() - firstAt >= sameSignalMs) {
      for (const program of programs) if (program.pid !== undefined) void program.kill();
      process.exit(1);
    }
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop(signal));
  // The reader of the output has closed it, for example because the terminal was closed.
  process.stdout.on("error", () => quit.abort());
  // A killed npm cannot forward a signal, but the parent of this process changes.
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event === "start")
    systemClock.every(1_000, () => {
      if (process.ppid !== parent && !quit.signal.aborted) stop("npm has ended");
    });
}

const quit = new AbortController();
const programs: Program[] = [];
const terminal = createTerminal(process.stdout);
quitOnSignals(quit, programs, terminal);
try {
  if (existsSync(".env")) process.loadEnvFile(".env");
  await start(withSecretFiles(process.env, secretVariables), terminal, quit.signal, programs);
} catch (error) {
  if (!quit.signal.aborted) {
    process.exitCode = 1;
    terminal.failure(error);
  }
} finally {
  for (const program of programs) {
    if (program.pid !== undefined) terminal.log.info(`Stopping ${program.name}.`);
    await program.stop();
  }
}
// Exit explicitly, because open handles such as a request to a stopped API would keep the process running.
process.exit();
