import { z } from "zod";
import { ConfigError } from "#platform/config-error";

export const defaultDataDir = ".data";

/** The variables that `npm start` reads in addition to the service's environment (shared/platform/config.ts). */
export const startEnvironment = z.object({
  DATA_DIR: z
    .string()
    .default(defaultDataDir)
    .describe("Folder for the data of the embedded servers, `demo.json` and the generated admin token"),
  WORKERS: z.coerce.number().int().min(1).max(64).default(1).describe("Worker processes to run"),
});

export function readStartConfig(env: Readonly<Record<string, string | undefined>>) {
  const parsed = startEnvironment.safeParse({ DATA_DIR: env.DATA_DIR || undefined, WORKERS: env.WORKERS || undefined });
  if (parsed.success) return parsed.data;
  throw new ConfigError(parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("\n"));
}
