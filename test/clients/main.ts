import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { cacheDirOf, freePort } from "../../infra/embedded/index.ts";
import { type Client, clients } from "./clients.ts";
import { hasProgram, install } from "./install.ts";
import { startRecorder } from "./recorder.ts";
import { type Check, runClient } from "./run.ts";
import { type Service, startService } from "./service.ts";

/**
 * npm run test:clients -- [--only litellm,ai-sdk] [--node-only] [--record] [--update]
 *
 * Installs third-party clients with npm, pip and go into a cache, runs each against an API and a worker process, and prints
 * the passed checks. Exits with 1 on a failure.
 * `--only`: these clients. `--node-only`: those that need neither Python nor Go. `--update`: installs the newest versions
 * again. `--record`: writes the requests of each client to test/clients/recorded, if no check fails; `npm test` repeats them.
 */
const { values: options } = parseArgs({
  options: {
    only: { type: "string" },
    "node-only": { type: "boolean", default: false },
    record: { type: "boolean", default: false },
    update: { type: "boolean", default: false },
  },
});
const say = (text: string) => process.stdout.write(`${text}\n`);

interface Row {
  readonly client: Client;
  readonly version: string;
  readonly checks: readonly Check[];
  readonly seconds: number;
}

async function chosen(): Promise<readonly Client[]> {
  const names = options.only?.split(",");
  const unknown = names?.find((name) => clients.every((client) => client.name !== name));
  if (unknown !== undefined)
    throw new Error(`--only: ${unknown} is none of ${clients.map(({ name }) => name).join(", ")}`);
  const wanted = clients.filter(
    ({ name, language }) => (names?.includes(name) ?? true) && (language === "node" || !options["node-only"]),
  );
  if (wanted.some(({ language }) => language === "python") && !(await hasProgram("python3", "-m", "venv", "--help")))
    throw new Error("python3 with venv is missing. Install it, or run the clients for Node alone with --node-only.");
  if (wanted.every(({ language }) => language !== "go") || (await hasProgram("go", "version"))) return wanted;
  say("SKIPPED: the clients for Go, because there is no Go on PATH.");
  return wanted.filter(({ language }) => language !== "go");
}

const originAt = (port: number) => `http://127.0.0.1:${port}`;

/** `frontPort` is the recorder's port, if requests are recorded. */
async function tryClient(service: Service, client: Client, reports: string, frontPort?: number): Promise<Row> {
  const startedAt = performance.now();
  const report = join(reports, `${client.name}.report`);
  const done = (version: string, checks: readonly Check[]): Row => ({
    client,
    version,
    checks,
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  });
  const folder = join(cacheDirOf(process.env), "clients", client.name);
  const installed = await install(client, folder, report, options.update).catch((error: unknown) => String(error));
  if (typeof installed === "string") return done("-", [{ name: "install", state: "failed", message: installed }]);
  const key = await service.newKey(client.name);
  if (frontPort === undefined)
    return done(installed.version, await runClient(installed, report, { url: service.url, key }));
  const recorder = await startRecorder(service.url, frontPort);
  const checks = await runClient(installed, report, { url: originAt(frontPort), key });
  const recording = recorder.end({ client: client.packages[0] ?? client.name, version: installed.version });
  // A recording would make later runs expect the failed requests to fail.
  if (checks.some(({ state }) => state === "failed")) say(`${client.name}: not recorded, because a check failed.`);
  else await writeFile(join(import.meta.dirname, "recorded", `${client.name}.json`), recording);
  return done(installed.version, checks);
}

const inState = (checks: readonly Check[], state: Check["state"]) => checks.filter((check) => check.state === state);

function print({ client, version, checks, seconds }: Row): void {
  const [passed, failed, skipped] = [inState(checks, "passed"), inState(checks, "failed"), inState(checks, "skipped")];
  const counts = `${passed.length} passed, ${failed.length} failed, ${skipped.length} skipped`;
  say(`${client.name.padEnd(20)} ${version.padEnd(10)} ${counts}, ${seconds} s`);
  if (passed.length > 0) say(`  tried: ${passed.map(({ name }) => name).join("; ")}`);
  for (const { name, message } of skipped) say(`  ${name}: ${message}`);
  for (const { name, message } of failed) say(`  FAILED: ${name}\n${message.replace(/^/gm, "    ")}`);
}

async function tryAll(): Promise<boolean> {
  const wanted = await chosen();
  const reports = await mkdtemp(join(tmpdir(), "inference-clients-reports-"));
  const frontPort = options.record ? await freePort() : undefined;
  const service = await startService({ ...(frontPort && { publicUrl: originAt(frontPort) }), onProgress: say });
  let failures = 0;
  try {
    for (const client of wanted) {
      const row = await tryClient(service, client, reports, frontPort);
      failures += inState(row.checks, "failed").length;
      print(row);
    }
    await service.checkLedger();
  } finally {
    await service.stop();
    await rm(reports, { recursive: true, force: true });
  }
  say(`\n${wanted.length} clients; ${failures} checks failed; the ledger matches the balances.`);
  return failures === 0;
}

try {
  if (!(await tryAll())) process.exitCode = 1;
} catch (error) {
  process.exitCode = 1;
  say(error instanceof Error ? error.message : String(error));
}
