import { randomBytes } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { DemoPayments } from "../embedded/solana/server.ts";

/** What a newcomer needs to call the service; written to `demo.json`. */
export interface Demo {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly accountId: string;
  readonly adminToken: string;
  /** Where payments by x402 go to the demo's own chain: what pays there. */
  readonly x402?: DemoPayments;
}

const balanceUsd = "100.00";
const limits = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000, concurrent_requests: 2_000 };

const storedDemo = z.object({ apiKey: z.string(), accountId: z.string() }).partial();
const withId = z.object({ id: z.string() });
const withKey = z.object({ key: z.string() });

/** Made once, then kept. */
export async function storedAdminToken(dataDir: string): Promise<string> {
  const file = join(dataDir, "admin-token");
  const kept = await readText(file);
  if (kept) return kept;
  const token = randomBytes(32).toString("base64url");
  await writePrivate(file, token);
  return token;
}

/**
 * The demo account with its balance and key, the same ones at every start. `origin` is where the API listens; what
 * callers are told is `baseUrl`.
 */
export async function ensureDemo(options: {
  readonly origin: string;
  readonly baseUrl: string;
  readonly adminToken: string;
  readonly dataDir: string;
  readonly x402: DemoPayments | undefined;
}): Promise<Demo> {
  const { origin, baseUrl, adminToken, dataDir, x402 } = options;
  const admin = (method: string, path: string, body?: unknown) =>
    ask(`${origin}/admin/v1${path}`, adminToken, method, body);
  const file = join(dataDir, "demo.json");
  const kept = parseStored(await readText(file));

  const known = kept.accountId !== undefined && (await admin("GET", `/accounts/${kept.accountId}`)).status === 200;
  const accountId =
    known && kept.accountId !== undefined
      ? kept.accountId
      : withId.parse(expectOk(await admin("POST", "/accounts", { name: "demo" }))).id;
  const credit = { amount_usd: balanceUsd, idempotency_key: "demo-balance", reason: "Demo balance" };
  expectOk(await admin("POST", `/accounts/${accountId}/credits`, credit));

  const apiKey =
    known && kept.apiKey !== undefined && (await isAccepted(origin, kept.apiKey))
      ? kept.apiKey
      : withKey.parse(expectOk(await admin("POST", `/accounts/${accountId}/keys`, { name: "demo", limits }))).key;

  const demo = { baseUrl, apiKey, accountId, adminToken, ...(x402 && { x402 }) };
  await writePrivate(file, `${JSON.stringify(demo, null, 2)}\n`);
  return demo;
}

/** Whoever is not known gets 401 before anything else is looked at; a model that does not exist costs nothing. */
async function isAccepted(origin: string, apiKey: string): Promise<boolean> {
  const body = { model: "local/none", messages: [{ role: "user", content: "-" }] };
  const { status } = await ask(`${origin}/v1/chat/completions`, apiKey, "POST", body);
  return status !== 401;
}

interface Answer {
  readonly request: string;
  readonly status: number;
  readonly body: unknown;
}

async function ask(url: string, token: string, method: string, body?: unknown): Promise<Answer> {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await response.text();
  return { request: `${method} ${new URL(url).pathname}`, status: response.status, body: parseJson(text) };
}

function expectOk({ request, status, body }: Answer): unknown {
  if (status < 300) return body;
  throw new Error(`${request} answered ${status}: ${JSON.stringify(body)}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function parseStored(text: string | undefined): z.infer<typeof storedDemo> {
  return storedDemo.safeParse(parseJson(text ?? "{}")).data ?? {};
}

async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Whole or not at all, and for nobody else's eyes. */
async function writePrivate(file: string, text: string): Promise<void> {
  const next = `${file}.${process.pid}`;
  await writeFile(next, text, { mode: 0o600 });
  await rename(next, file);
}
