import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { cacheDirOf, expectOk, until } from "../../infra/embedded/index.ts";
import { type Service, startService } from "../clients/service.ts";
import { forRandomRequests } from "./document.ts";
import { faultsOf, type Stores, watchStores } from "./leftovers.ts";
import { readReport } from "./report.ts";

/**
 * npm run test:fuzz -- [--seconds 300] [--seed 1] [--examples 50]
 *
 * Schemathesis sends requests made from `/openapi.json`, valid ones and others, to an API and a worker process. Exits with 1
 * if a response is a 5xx other than 503, or if anything stays behind: holds, leases, objects without a record, Redis keys.
 * `--examples`: the number for each operation and phase. Needs Python 3 with venv, and PyPI once.
 */
const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "300" },
    seed: { type: "string", default: "1" },
    examples: { type: "string", default: "50" },
  },
});
const version = "4.32.5";
const run = promisify(execFile);
const say = (text: string) => process.stdout.write(`${text}\n`);

/** Cases should reach routes, not limits. */
const env = {
  RATE_LIMIT_REQUESTS_PER_MINUTE: "1000000",
  RATE_LIMIT_TOKENS_PER_MINUTE: "1000000000",
  RATE_LIMIT_UPLOADS_PER_MINUTE: "1000000",
  RATE_LIMIT_CONCURRENT_UPLOADS: "1000",
  MEDIA_SYNC_TIMEOUT: "20",
};
/** Cleanup jobs run every minute, and a lease ends within one. */
const restWithinMs = 180_000;

async function install(): Promise<string> {
  const folder = join(cacheDirOf(process.env), `schemathesis-${version}`);
  const program = join(folder, "bin/schemathesis");
  if (existsSync(program)) return program;
  await run("python3", ["-m", "venv", folder]);
  await run(join(folder, "bin/python"), ["-m", "pip", "install", "--quiet", `schemathesis==${version}`]);
  return program;
}

async function fuzz(program: string, { url }: Service, key: string, folder: string): Promise<string> {
  const list = (await (await fetch(`${url}/v1/models`)).json()) as { data: readonly { readonly id: string }[] };
  const document = forRandomRequests(
    (await (await fetch(`${url}/openapi.json`)).json()) as Parameters<typeof forRandomRequests>[0],
    list.data.map(({ id }) => id),
  );
  const [file, report] = [join(folder, "openapi.json"), join(folder, "report.ndjson")];
  await writeFile(file, JSON.stringify(document));
  const args = ["run", file, "--url", url, "--header", `Authorization: Bearer ${key}`];
  args.push("--checks", "not_a_server_error", "--continue-on-failure", "--workers", "4", "--request-timeout", "60");
  args.push("--seed", options.seed, "--max-examples", options.examples, "--max-time", options.seconds);
  args.push("--generation-database", "none", "--suppress-health-check", "all", "--warnings", "off", "--no-shrink");
  args.push("--report", "ndjson", "--report-ndjson-path", report, "--no-color");
  const timeout = (Number(options.seconds) + 120) * 1_000;
  const child = spawn(program, args, { cwd: folder, timeout, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (data: Buffer) => {
    output = (output + data.toString()).slice(-8_000);
  });
  const [code] = (await once(child, "close")) as [number | null];
  // 1 means that a check failed, which the report shows.
  if (code !== 0 && code !== 1) throw new Error(`Schemathesis ended with ${code}\n${output}`);
  return report;
}

/**
 * Deletes uploads as their callers would. A pending upload has a hold until it is completed, deleted, or an hour old.
 */
async function deletePending({ url }: Service, key: string, stores: Stores): Promise<number> {
  const ids = await stores.pendingUploads();
  for (const id of ids)
    await fetch(`${url}/v1/uploads/${id}`, { method: "DELETE", headers: { authorization: `Bearer ${key}` } });
  return ids.length;
}

/** Counts a process log's error lines by message. */
function errorsIn(file: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of readFileSync(file, "utf8").split("\n")) {
    if (!line.startsWith("{")) continue;
    const { level, msg } = JSON.parse(line) as { level: number | string; msg: string };
    if (level === "error" || level === "fatal" || Number(level) >= 50) counts.set(msg, (counts.get(msg) ?? 0) + 1);
  }
  return counts;
}

async function tryAll(): Promise<boolean> {
  const program = await install();
  const folder = await mkdtemp(join(tmpdir(), "inference-fuzz-"));
  const ends: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  try {
    const service = await startService({ env, onProgress: say });
    ends.push(service.stop);
    const key = await service.newKey("fuzz");
    const stores = await watchStores(service.stores);
    ends.push(() => stores.close());
    const startedAt = performance.now();
    const { cases, operations, statuses, unanswered, faults } = await readReport(
      await fuzz(program, service, key, folder),
    );
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    say(`${cases} cases of ${operations} operations in ${seconds} s, ${unanswered} without an answer`);
    for (const [status, count] of [...statuses].toSorted(([one], [other]) => one - other)) say(`  ${status}: ${count}`);
    for (const [kind, interaction] of faults) say(`FAULT: ${kind}: ${JSON.stringify(interaction).slice(0, 2_000)}`);

    say(`${await deletePending(service, key, stores)} uploads were pending, and are deleted`);
    await expectOk(`${service.url}/readyz`);
    await until(async () => {
      const found = faultsOf(await stores.found());
      if (found.length > 0) throw new Error(`Behind is:\n${found.join("\n")}`);
    }, AbortSignal.timeout(restWithinMs));
    await service.checkLedger();
    const { expiringRedisKeys, lastExpiryMs } = await stores.found();
    say(`Nothing is behind. ${expiringRedisKeys} keys in Redis expire within ${Math.round(lastExpiryMs / 60_000)} min`);
    for (const name of ["api", "worker"])
      for (const [message, count] of errorsIn(join(service.dataDir, `${name}.log`)))
        say(`${name} logged ${count} times: ${message}`);
    return faults.size === 0 && cases > 0;
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

try {
  if (!(await tryAll())) process.exitCode = 1;
} catch (error) {
  process.exitCode = 1;
  say(error instanceof Error ? error.message : String(error));
}
process.exit();
