import { readFileSync } from "node:fs";
import { configError } from "../config-error.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export const fileVariable = (name: string): string => `${name}_FILE`;

/**
 * Returns the environment with NAME set to the content of the file named by `NAME_FILE`, for these names only:
 * `CATALOG_FILE`, for example, is just a path. Call it once, at the start. One newline at the end is not part of a
 * secret. Throws ConfigError with a line for each fault, which never shows a secret.
 */
export function withSecretFiles(env: Environment, names: Iterable<string>): Environment {
  const read: Record<string, string | undefined> = {};
  const faults: string[] = [];
  for (const name of names) {
    const variable = fileVariable(name);
    const path = env[variable];
    if (!path) continue;
    read[variable] = undefined;
    if (env[name]) {
      faults.push(`${name} and ${variable} are both set: set only one of them`);
      continue;
    }
    try {
      read[name] = readFileSync(path, "utf8").replace(/\r?\n$/, "");
      if (read[name] === "") faults.push(`${variable}: ${path} is empty`);
    } catch (error) {
      faults.push(`${variable}: ${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? "unknown error"}`);
    }
  }
  if (faults.length > 0) throw configError(...faults);
  return { ...env, ...read };
}
