import { randomBytes } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { newPrivateKey } from "#secrets";
import { type DemoPayments, demoPayments } from "../embedded/solana/server.ts";
import { type AdminClient, CommandError, createAdminClient } from "./admin-client.ts";

/** Everything that a newcomer needs to call the service. It is stored in `demo.json`. */
export const demoShape = z.object({
  baseUrl: z.string(),
  apiKey: z.string(),
  accountId: z.string(),
  adminToken: z.string(),
  /** Where its sessions are, for `npm run dashboard:link`. */
  mongodbUri: z.string(),
  /** Addresses of `/metrics` by process: `api`, `worker`, `worker_2` and so on. */
  metrics: z.record(z.string(), z.string()),
  /** Set when x402 payments go to the demo's own chain. */
  x402: demoPayments.optional(),
});
export type Demo = Readonly<z.infer<typeof demoShape>>;

/** Throws if no demo was started with this data directory. */
export async function readDemo(dataDir: string): Promise<Demo> {
  try {
    return demoShape.parse(JSON.parse(await readFile(join(dataDir, "demo.json"), "utf8")));
  } catch (cause) {
    throw new Error("No demo is running here. Start one with npm start.", { cause });
  }
}

const balanceUsd = "100.00";
const limits = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000, concurrent_requests: 2_000 };

const scopes = ["inference", "manage"];

const storedDemo = demoShape.pick({ apiKey: true, accountId: true });
const withId = z.object({ id: z.string() });
const withKey = z.object({ key: z.string() });

/** Creates the secret at the first start and returns the stored one afterwards. */
async function storedSecret(file: string, create: () => string | Promise<string>): Promise<string> {
  const stored = await readText(file);
  if (stored) return stored;
  const secret = await create();
  await writePrivate(file, secret);
  return secret;
}

export const storedAdminToken = (dataDir: string): Promise<string> =>
  storedSecret(join(dataDir, "admin-token"), () => randomBytes(32).toString("base64url"));

/** The private key for secrets of customers. */
export const storedPrivateKey = (dataDir: string): Promise<string> =>
  storedSecret(join(dataDir, "secrets-key"), newPrivateKey);

/**
 * Creates the demo account with its balance and key, or reuses the ones of an earlier start. The API listens at
 * `origin`; callers use `baseUrl`.
 */
export async function ensureDemo(options: {
  readonly origin: string;
  readonly baseUrl: string;
  readonly adminToken: string;
  readonly mongodbUri: string;
  readonly dataDir: string;
  readonly metrics: Demo["metrics"];
  readonly x402: DemoPayments | undefined;
}): Promise<Demo> {
  const { origin, baseUrl, adminToken, mongodbUri, dataDir, metrics, x402 } = options;
  const admin = createAdminClient({ url: origin, token: adminToken });
  const file = join(dataDir, "demo.json");
  const stored = parseStored(await readText(file));
  const known = stored && (await hasAccount(admin, stored.accountId)) ? stored : undefined;
  const accountId = known?.accountId ?? withId.parse(await admin("POST", "/accounts", { name: "demo" })).id;
  const credit = { amount_usd: balanceUsd, idempotency_key: "demo-balance", reason: "Demo balance" };
  await admin("POST", `/accounts/${accountId}/credits`, credit);
  const createKey = async () =>
    withKey.parse(await admin("POST", `/accounts/${accountId}/keys`, { name: "demo", scopes, limits })).key;
  const apiKey = known && (await isAccepted(origin, known.apiKey)) ? known.apiKey : await createKey();

  const demo = { baseUrl, apiKey, accountId, adminToken, mongodbUri, metrics, ...(x402 && { x402 }) };
  await writePrivate(file, `${JSON.stringify(demo, null, 2)}\n`);
  return demo;
}

async function hasAccount(admin: AdminClient, id: string): Promise<boolean> {
  try {
    await admin("GET", `/accounts/${id}`);
    return true;
  } catch (error) {
    if (error instanceof CommandError && error.status !== undefined) return false;
    throw error;
  }
}

async function isAccepted(origin: string, apiKey: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const response = await fetch(`${origin}/v1/key`, { headers, signal: AbortSignal.timeout(10_000) });
  await response.arrayBuffer();
  return response.status !== 401;
}

/** The address of the demo of this data directory, if it runs: it knows its own account and token. */
export async function runningDemo(dataDir: string): Promise<string | undefined> {
  try {
    const { baseUrl, adminToken, accountId } = await readDemo(dataDir);
    await createAdminClient({ url: baseUrl, token: adminToken })("GET", `/accounts/${accountId}`);
    return baseUrl;
  } catch {
    return undefined;
  }
}

function parseStored(text: string | undefined): z.infer<typeof storedDemo> | undefined {
  try {
    return storedDemo.parse(JSON.parse(text ?? ""));
  } catch {
    return undefined;
  }
}

const readText = (file: string): Promise<string | undefined> =>
  readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return undefined;
  });

/** Writes the file atomically, readable by the current user only. */
async function writePrivate(file: string, text: string): Promise<void> {
  const next = `${file}.${process.pid}`;
  await writeFile(next, text, { mode: 0o600 });
  await rename(next, file);
}
