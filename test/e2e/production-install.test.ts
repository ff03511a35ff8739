import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/program.ts";
import { testStores } from "../support/servers.ts";
import { ready, spawnApi, spawnWorker } from "../support/service.ts";

const execute = promisify(execFile);

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

interface Component {
  readonly name: string;
  readonly version: string;
  readonly hashes: readonly unknown[];
}

/** The packages in a folder `node_modules`, and their own dependencies. */
function packagesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => !name.startsWith("."));
  const paths = names.flatMap((name) =>
    name.startsWith("@") ? readdirSync(join(folder, name)).map((each) => join(folder, name, each)) : join(folder, name),
  );
  return paths.flatMap((path) => {
    const { name, version } = JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as Component;
    return [`${name}@${version}`, ...packagesIn(join(path, "node_modules"))];
  });
}

/**
 * Copies the files of the Dockerfile's last stage; the tests' own build replaces that of another stage. `.dockerignore`
 * admits only the operators' commands of `infra/cli`.
 */
async function copyImageFiles(folder: string): Promise<void> {
  const dockerfile = readFileSync("infra/docker/Dockerfile", "utf8");
  const image = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));
  const sources = [...image.matchAll(/^COPY (?:--from=\S+ \/service\/)?(.+) \S+$/gm)].flatMap(([, files = ""]) =>
    files.split(" "),
  );
  const filter = (source: string) =>
    !source.endsWith(".ts") || !/^infra\/cli\/(?!admin|catalog|config|start-config)/.test(source);
  for (const source of sources) await cp(source, join(folder, source), { recursive: true, filter });
}

test("API and workers start with production dependencies only, which the list of software names exactly", async () => {
  const folder = await temporaryFolder();
  await copyImageFiles(folder);
  const install = ["install", "--omit=dev", "--prefer-offline", "--no-audit", "--no-fund", "--prefix", folder];
  await execute("npm", install, { cwd: folder });

  const { dependencies, devDependencies } = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
  const isInstalled = (name: string) => existsSync(join(folder, "node_modules", name, "package.json"));
  expect(Object.keys(dependencies).filter((name) => !isInstalled(name))).toEqual([]);
  for (const name of ["litesvm", "mongodb-memory-server-core", "pino-pretty", "@x402/fetch", "vitest", "node"])
    expect([name, name in devDependencies, isInstalled(name)]).toEqual([name, true, false]);

  // The list of software names every package of the installation, and no other.
  const sbom = await execute(process.execPath, ["infra/docker/sbom.ts", folder], { maxBuffer: 16 * 1024 * 1024 });
  const { components } = JSON.parse(sbom.stdout) as { components: readonly Component[] };
  const listed = components.map(({ name, version }) => `${name}@${version}`);
  expect(listed.toSorted()).toEqual(packagesIn(join(folder, "node_modules")).toSorted());
  expect(components.filter(({ hashes }) => hashes.length === 0)).toEqual([]);

  const stores = await testStores();
  const [api, worker] = await Promise.all([spawnApi(stores, {}, folder), spawnWorker(stores, {}, folder)]);
  await ready(api.client);
  const page = await fetch(`${api.client.baseUrl}/dashboard`, { headers: { accept: "text/html" } });
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("/dashboard/assets/")]);
  expect(existsSync(join(folder, "dashboard/src"))).toBe(false);
  const admin = [
    join(folder, "infra/cli/admin.ts"),
    "--url",
    api.client.baseUrl,
    "--token",
    "wrong",
    "accounts",
    "list",
  ];
  await expect(execute(process.execPath, admin, { cwd: folder })).rejects.toMatchObject({
    stderr: expect.stringContaining("401") as string,
  });
  const config = await execute(process.execPath, [join(folder, "infra/cli/config.ts"), "check", "--json"], {
    cwd: folder,
    env: { ...stores },
  });
  expect(JSON.parse(config.stdout)).toMatchObject({ ok: true });
  for (const each of [worker, api]) each.kill("SIGTERM");
  expect(await Promise.all([worker.exited, api.exited])).toEqual([0, 0]);
});
