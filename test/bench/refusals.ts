import { randomBytes } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createAdminClient } from "../../infra/cli/admin-client.ts";
import { startEmbedded } from "../../infra/embedded/index.ts";
import { migrateDatabase } from "../support/schema.ts";
import { cpuMs, freeOrigin, type Measured, measured, residentBytes, startNode } from "./processes.ts";

/**
 * The cost of refused callers: `node test/bench/refusals.ts [stalled callers]`. Prints the processor time of a call
 * refused for its balance, and the API's memory while callers with one key send 24 MB each and then stall.
 */
const refusedCalls = 6_000;
const connections = 16;
const stalledBytes = 24 * 1024 * 1024;
const stalledCallers = Number(process.argv[2] ?? 600);

const root = join(import.meta.dirname, "../..");
const dataDir = join(root, ".data/bench-refusals");
const adminToken = randomBytes(24).toString("base64url");
const say = (text: string) => void process.stdout.write(`${text}\n`);
const inMebi = (bytes: number) => (bytes / 1024 ** 2).toFixed(0);

interface Target {
  readonly port: number;
  readonly origin: string;
}

async function keyWith(target: Target, usd: string | undefined): Promise<string> {
  const admin = createAdminClient({ url: target.origin, token: adminToken });
  const id = String((await admin("POST", "/accounts", { name: "bench" }))["id"]);
  if (usd !== undefined) await admin("POST", `/accounts/${id}/credits`, { amount_usd: usd, idempotency_key: "bench" });
  const limits = {
    requests_per_minute: 1e9,
    tokens_per_minute: 1e12,
    concurrent_requests: 100_000,
  };
  return String((await admin("POST", `/accounts/${id}/keys`, { limits }))["key"]);
}

const body = JSON.stringify({ model: "local/chat", messages: [{ role: "user", content: "Hello there" }] });

const call = ({ port }: Target, agent: Agent, key: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "content-length": body.length,
    };
    request({ port, host: "127.0.0.1", method: "POST", path: "/v1/chat/completions", headers, agent }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    })
      .on("error", reject)
      .end(body);
  });

async function refusals(target: Target, processes: readonly Measured[]): Promise<void> {
  const key = await keyWith(target, undefined);
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const run = (calls: number) =>
    Promise.all(
      Array.from({ length: connections }, async () => {
        for (let made = 0; made < calls / connections; made++) {
          const status = await call(target, agent, key);
          if (status !== 402) throw new Error(`a call without a balance was answered ${status}`);
        }
      }),
    );
  await run(refusedCalls / 2);
  const before = processes.map(cpuMs);
  const startedAt = performance.now();
  await run(refusedCalls);
  const seconds = (performance.now() - startedAt) / 1_000;
  const each = processes.map(
    (one, at) => `${one.name} ${((cpuMs(one) - (before[at] ?? 0)) / refusedCalls).toFixed(2)} ms`,
  );
  agent.destroy();
  say(
    `402 for the balance: ${(refusedCalls / seconds).toFixed(0)} calls/s, processor time of a call: ${each.join(", ")}`,
  );
}

const piece = Buffer.alloc(64 * 1024, " ");

/** Sends all but the last byte, as far as the socket accepts it. */
async function stall({ port }: Target, key: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${stalledBytes}\r\n\r\n`;
  socket.write(head);
  for (let sent = 0; sent < stalledBytes - piece.length && !socket.destroyed; sent += piece.length)
    if (!socket.write(piece))
      await new Promise<void>((resolve) => {
        const go = () => {
          socket.off("drain", go).off("close", go);
          resolve();
        };
        socket.on("drain", go).on("close", go);
      });
  return socket;
}

async function stalls(target: Target, api: Measured): Promise<void> {
  const key = await keyWith(target, "100");
  const other = await keyWith(target, "100");
  const beforeBytes = residentBytes(api);
  let mostBytes = beforeBytes;
  const sampling = setInterval(() => {
    mostBytes = Math.max(mostBytes, residentBytes(api));
  }, 50);
  const sockets: Socket[] = [];
  const senders = 20;
  await Promise.all(
    Array.from({ length: senders }, async () => {
      for (let sent = 0; sent < stalledCallers / senders; sent++) sockets.push(await stall(target, key));
    }),
  );
  await wait(1_000);
  clearInterval(sampling);
  const agent = new Agent();
  const startedAt = performance.now();
  const statuses: number[] = [];
  for (let made = 0; made < 20; made++) statuses.push(await call(target, agent, other));
  const served = statuses.filter((status) => status === 200).length;
  const eachMs = ((performance.now() - startedAt) / statuses.length).toFixed(0);
  for (const socket of sockets) socket.destroy();
  say(
    `${stalledCallers} callers that stall after 24 MB: memory ${inMebi(beforeBytes)} MiB before, +${inMebi(mostBytes - beforeBytes)} MiB at most; ` +
      `${served} of 20 calls of another key served meanwhile, ${eachMs} ms each`,
  );
}

await rm(dataDir, { recursive: true, force: true });
await mkdir(dataDir, { recursive: true });
const stops: (() => Promise<void>)[] = [];
try {
  const env = { ...process.env, REDIS_URL: "", MONGODB_URI: "", S3_ENDPOINT: "" };
  const embedded = await startEmbedded({ env, dataDir });
  stops.unshift(() => embedded.stop());
  const { port, origin } = await freeOrigin();
  const own = {
    ...embedded.env,
    HOST: "127.0.0.1",
    PORT: String(port),
    METRICS_PORT: "0",
    ADMIN_TOKEN: adminToken,
    LOCAL_MODELS: "true",
    LOG_LEVEL: "info",
  };
  const start = async (name: string, file: string, readyUrl?: string): Promise<Measured> => {
    const args = [join(root, file)];
    const program = await startNode({
      name,
      args,
      env: own,
      logDir: dataDir,
      ...(readyUrl !== undefined && { readyUrl }),
    });
    stops.unshift(() => program.stop());
    return measured(name, program);
  };
  await migrateDatabase(embedded.env["MONGODB_URI"] ?? "");
  await start("worker", "workers/main.ts");
  const api = await start("api", "api/main.ts", `${origin}/readyz`);
  const stores = embedded.servers.map((server) => measured(server.name, server));
  await refusals({ port, origin }, [api, ...stores]);
  await stalls({ port, origin }, api);
} finally {
  for (const stop of stops) await stop();
}
await rm(dataDir, { recursive: true, force: true });
