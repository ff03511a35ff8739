import { execFile } from "node:child_process";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Client } from "./clients.ts";

const run = promisify(execFile);

/** Puts this Node first, so that npm chooses versions for it. */
const path = [dirname(process.execPath), process.env.PATH].join(delimiter);
export const env = { ...process.env, PATH: path, PIP_DISABLE_PIP_VERSION_CHECK: "1" };

export interface Installed {
  readonly version: string;
  /** Runs the client's file, with its results in `report`. */
  readonly command: readonly [string, ...string[]];
  readonly folder: string;
}

export const hasProgram = (name: string, ...args: string[]): Promise<boolean> =>
  run(name, args, { env }).then(
    () => true,
    () => false,
  );

/** Installs the newest versions into the folder, unless it already has the same packages and `update` is false. */
export async function install(client: Client, folder: string, report: string, update: boolean): Promise<Installed> {
  const marker = join(folder, "installed.json");
  const wanted = JSON.stringify(client.packages);
  const known = await readFile(marker, "utf8").catch(() => "");
  if (update || known !== wanted) {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    await installers[client.language](client, folder);
    await writeFile(marker, wanted);
  }
  return ready[client.language](client, folder, report);
}

const limits = { env, timeout: 600_000, maxBuffer: 64 * 1024 * 1024 };

const installers = {
  async node({ packages }: Client, folder: string) {
    await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const newest = packages.map((name) => `${name}@latest`);
    await run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...newest], { ...limits, cwd: folder });
  },
  async python({ packages }: Client, folder: string) {
    await run("python3", ["-m", "venv", folder], limits);
    await run(join(folder, "bin/python"), ["-m", "pip", "install", "--quiet", ...packages], limits);
  },
  async go({ packages }: Client, folder: string) {
    await run("go", ["mod", "init", "clients"], { ...limits, cwd: folder });
    await run("go", ["get", ...packages.map((name) => `${name}@latest`)], { ...limits, cwd: folder });
  },
};

const here = import.meta.dirname;

/** Node and Go find packages from the file's own folder. */
async function copyTo(folder: string, { language, file }: Client) {
  await copyFile(join(here, language, file), join(folder, file));
}

const ready = {
  async node(client: Client, folder: string, report: string): Promise<Installed> {
    await copyTo(folder, client);
    const [name = ""] = client.packages;
    const { version } = JSON.parse(await readFile(join(folder, "node_modules", name, "package.json"), "utf8")) as {
      version: string;
    };
    const options = ["--test-timeout=60000", "--test-reporter=junit", `--test-reporter-destination=${report}`];
    return { version, folder, command: [process.execPath, "--test", ...options, client.file] };
  },
  async python({ packages, file }: Client, folder: string, report: string): Promise<Installed> {
    const program = join(folder, "bin/python");
    const [name = ""] = packages;
    const asked = `import importlib.metadata as m; print(m.version("${name.replace(/\[.*/, "")}"))`;
    const { stdout } = await run(program, ["-c", asked], { env });
    const options = ["-q", "--tb=short", "-p", "no:cacheprovider", `--junitxml=${report}`];
    return {
      version: stdout.trim(),
      folder,
      command: [program, "-m", "pytest", ...options, join(here, "python", file)],
    };
  },
  async go(client: Client, folder: string, report: string): Promise<Installed> {
    await copyTo(folder, client);
    const [name = ""] = client.packages;
    await run("go", ["mod", "tidy"], { ...limits, cwd: folder });
    const { stdout } = await run("go", ["list", "-m", "-f", "{{.Version}}", name], { ...limits, cwd: folder });
    const command = ["sh", "-c", 'go test -count=1 -json ./... > "$0"', report] as const;
    return { version: stdout.trim().replace(/^v/, ""), folder, command };
  },
};
