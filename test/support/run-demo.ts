import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { testAdminToken } from "./service.ts";

interface DemoRun {
  readonly baseUrl: string;
  readonly customer: { readonly id: string; readonly key: string };
  readonly args?: readonly string[];
}

/** Runs `npm run demo:<name>` as this customer, and returns what it prints. Rejects if it fails. */
export async function runDemo(name: string, { baseUrl, customer, args = [] }: DemoRun): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), `inference-${name}-`));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const keys = { apiKey: customer.key, accountId: customer.id, adminToken: testAdminToken };
  const demo = { baseUrl, ...keys, mongodbUri: "mongodb://unused", metrics: {} };
  await writeFile(join(dataDir, "demo.json"), JSON.stringify(demo));
  const { stdout } = await promisify(execFile)(process.execPath, [`infra/cli/demo-${name}.ts`, ...args], {
    env: { ...process.env, DATA_DIR: dataDir },
  });
  return stdout;
}
