import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { isFree } from "../../infra/embedded/index.ts";
import { browse } from "../support/dashboard-setup.ts";
import { scrape } from "../support/metrics.ts";
import { temporaryFolder } from "../support/program.ts";

const execute = promisify(execFile);
const main = fileURLToPath(new URL("../../infra/cli/start.ts", import.meta.url));

function start(dataDir: string, env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [main], {
    env: { ...process.env, PORT: "0", DATA_DIR: dataDir, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data: Buffer) => {
      output += data.toString();
    });
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, output }));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const says = (pattern: RegExp) => expect.poll(() => output, { interval: 50, message: "its output" }).toMatch(pattern);
  return {
    child,
    ended,
    says,
    /** The content of demo.json once the service is ready, and the ports in use. */
    async ready() {
      await Promise.race([says(/is ready/), ended.then((end) => Promise.reject(new Error(end.output)))]);
      const demo = JSON.parse(await readFile(join(dataDir, "demo.json"), "utf8")) as Record<
        "baseUrl" | "apiKey" | "accountId" | "adminToken",
        string
      > & {
        readonly metrics: Readonly<Record<string, string>>;
        readonly x402?: Record<"network" | "rpcUrl" | "payTo" | "wallet", string>;
      };
      const curl = /^ +(curl .*?)\n\n/ms.exec(output)?.[1] ?? "";
      const paying = /^ +(.*npm run demo:x402)\b/m.exec(output)?.[1];
      const codes = codesOf(output);
      return {
        demo,
        curl,
        paying,
        codes,
        ports: [Number(new URL(demo.baseUrl).port), ...(await serverPorts(dataDir))],
      };
    },
  };
}

const codesOf = (output: string) =>
  Array.from(output.matchAll(/\/dashboard(?:\/operator)?#code=(\S+)/g), ([, code = ""]) => code);

/** Servers with a configured address have no entry. */
async function serverPorts(dataDir: string): Promise<number[]> {
  const folders = (await readdir(dataDir, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  const states = folders.map(({ name }) => readFile(join(dataDir, name, "server.json"), "utf8"));
  return (await Promise.all(states)).map((state) => (JSON.parse(state) as { port: number }).port);
}

const allFree = async (ports: readonly number[]) =>
  (await Promise.all(ports.map((port) => isFree(port)))).every(Boolean);

async function account(demo: { baseUrl: string; accountId: string; adminToken: string }) {
  const response = await fetch(`${demo.baseUrl}/admin/v1/accounts/${demo.accountId}`, {
    headers: { authorization: `Bearer ${demo.adminToken}` },
  });
  return (await response.json()) as { name: string; available_usd: string; open_holds: number };
}

test("the printed call works; a second start has the same key and balance; kill -9 ends everything", async () => {
  const dataDir = await temporaryFolder();
  const first = start(dataDir);
  const { demo, curl, codes, ports } = await first.ready();
  expect(codes.length).toBe(2);
  const env = { ...process.env, DATA_DIR: dataDir };
  const link = await execute(process.execPath, ["infra/cli/dashboard-link.ts"], { env });
  codes.push(...codesOf(link.stdout));
  const beside = await start(dataDir).ended;
  expect([beside.code, beside.output]).toEqual([1, expect.stringContaining(`already runs at ${demo.baseUrl}`)]);
  const root = await fetch(demo.baseUrl, { headers: { accept: "text/html" }, redirect: "manual" });
  expect([root.status, root.headers.get("location")]).toEqual([302, "/dashboard"]);
  // Each code is used up by its first use.
  for (const [code, session] of [
    [codes[0], { account: { id: demo.accountId }, operator: null }],
    [codes[1], { account: null, operator: { name: "admin" } }],
    [codes[2], { account: { id: demo.accountId }, operator: null }],
  ] as const)
    for (const answer of [session, { error: { code: "invalid_api_key" } }])
      expect((await browse(demo, "POST", "/dashboard/session", { body: { code } })).body).toMatchObject(answer);
  const page = await fetch(`${demo.baseUrl}/dashboard/sign-in`, { headers: { accept: "text/html" } });
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("/dashboard/assets/")]);
  expect((await stat(join(dataDir, "demo.json"))).mode & 0o777).toBe(0o600);
  expect(curl).toContain(demo.apiKey);
  const { stdout } = await execute("/bin/sh", ["-c", curl]);
  expect(JSON.parse(stdout)).toMatchObject({ object: "chat.completion", model: "local/chat" });
  const { available_usd: balance } = await account(demo);
  expect(Number(balance)).toBeGreaterThan(99);
  expect(Number(balance)).toBeLessThan(100);
  // Its own keys, for secrets of customers.
  const created = await fetch(`${demo.baseUrl}/v1/webhooks/endpoints`, {
    method: "POST",
    headers: { authorization: `Bearer ${demo.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ url: "https://93.184.215.14/hook", events: ["job.*"], disabled: true }),
  });
  expect([created.status, await created.json()]).toEqual([
    201,
    expect.objectContaining({ object: "webhook_endpoint" }),
  ]);
  expect((await stat(join(dataDir, "secrets-key"))).mode & 0o777).toBe(0o600);
  expect(Object.keys(demo.metrics)).toEqual(["api", "worker"]);
  for (const process of ["api", "worker"]) {
    const samples = await scrape(demo.metrics[process] as string);
    expect(samples.labels("inference_build_info")).toMatchObject([{ process }]);
    expect(samples.names).toContain("process_cpu_seconds_total");
  }

  first.child.kill("SIGTERM");
  const end = await first.ended;
  expect(end.code).toBe(0);
  // The log of the processes is in the file, and not over the instructions.
  expect(await readFile(join(dataDir, "service.log"), "utf8")).toMatch(/"msg":"listening"[^]*"msg":"stopped"/);
  expect(end.output).not.toContain("listening");
  expect([...end.output.matchAll(/Stopping (\w+)/g)].map((match) => match[1]).slice(0, 2)).toEqual(["API", "Worker"]);
  expect(await allFree(ports)).toBe(true);

  const second = start(dataDir);
  const again = await second.ready();
  const same = ({ apiKey, accountId, adminToken }: typeof demo) => ({ apiKey, accountId, adminToken });
  expect(same(again.demo)).toEqual(same(demo));
  expect((await account(again.demo)).available_usd).toBe(balance);

  const traffic = await execute(process.execPath, ["infra/cli/demo-traffic.ts"], { env });
  expect(traffic.stdout).toMatch(/^300 calls in \d+ s/m);
  const entries = await fetch(`${again.demo.baseUrl}/admin/v1/accounts/${demo.accountId}/ledger?kind=usage&limit=200`, {
    headers: { authorization: `Bearer ${demo.adminToken}` },
  });
  interface DemoEntry {
    readonly amount_usd: string;
    readonly buyback?: object;
    readonly request: Record<"key" | "model" | "status", string>;
  }
  const { data } = (await entries.json()) as { data: DemoEntry[] };
  const distinct = (field: "key" | "model" | "status") => new Set(data.map(({ request }) => request[field])).size;
  expect(distinct("key")).toBe(4);
  expect(distinct("model")).toBeGreaterThanOrEqual(5);
  expect(distinct("status")).toBeGreaterThanOrEqual(2);
  for (const { amount_usd, buyback } of data)
    expect([amount_usd, buyback !== undefined]).toEqual([amount_usd, Number(amount_usd) !== 0]);

  second.child.kill("SIGKILL");
  await expect.poll(() => allFree(again.ports)).toBe(true);
});

test("the printed command pays for an image on the demo's own chain, at a second start with the same wallet", async () => {
  const dataDir = await temporaryFolder();
  const first = start(dataDir);
  const { demo, paying = "" } = await first.ready();
  expect(demo.x402).toEqual({
    network: "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
    rpcUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    payTo: expect.stringMatching(/^\w{32,44}$/),
    wallet: expect.stringMatching(/^\w{80,90}$/),
  });
  expect(paying).toContain(dataDir);
  const paid = await execute("/bin/sh", ["-c", paying]);
  const [before = "", after = ""] = Array.from(paid.stdout.matchAll(/ has (\S+) USDC\.$/gm), ([, usd]) => usd);
  expect(before).toBe("100.000000");
  expect(Number(after)).toBeLessThan(100);
  const image = await fetch(/^The image: (\S+)$/m.exec(paid.stdout)?.[1] ?? "");
  expect([image.status, image.headers.get("content-type")]).toEqual([200, "image/png"]);

  first.child.kill("SIGTERM");
  expect((await first.ended).code).toBe(0);
  await expect(execute("/bin/sh", ["-c", paying])).rejects.toMatchObject({
    stderr: expect.stringContaining(`${demo.baseUrl} does not respond. Is npm start running?`),
  });
  const again = await start(dataDir).ready();
  expect(again.demo.x402).toMatchObject({ payTo: demo.x402?.payTo, wallet: demo.x402?.wallet });
  expect((await execute("/bin/sh", ["-c", again.paying ?? ""])).stdout).toContain(` has ${after} USDC.`);
});

test("with a payee set, neither the demo's chain nor its wallets are created", async () => {
  const dataDir = await temporaryFolder();
  const { output, code } = await start(dataDir, { X402_PAY_TO: "11111111111111111111111111111111" }).ended;
  expect(code).toBe(1);
  expect(output).toContain("SOLANA_RPC_URL is missing");
  expect(await readdir(dataDir)).not.toContain("solana");
});

/** The process id of a child, by the file that it runs. */
async function childOf(parent: number, file: string): Promise<number> {
  const { stdout } = await execute("ps", ["-A", "-o", "pid=,ppid=,args="]);
  const rows = stdout.split("\n").map((row) => row.trim().split(/\s+/));
  return Number(
    rows.find(([, ppid, , ...args]) => Number(ppid) === parent && args.some((arg) => arg.endsWith(file)))?.[0],
  );
}

test("a process that ends is restarted, and the log says so; a second signal ends everything at once", async () => {
  const run = start(await temporaryFolder());
  const { demo, curl, ports } = await run.ready();
  const parent = run.child.pid as number;
  for (const [file, name] of [
    ["workers/main.ts", "Worker 1"],
    ["api/main.ts", "API"],
  ] as const) {
    process.kill(await childOf(parent, file), "SIGKILL");
    await run.says(new RegExp(`${name} ended: SIGKILL[^]*${name} runs again`));
  }
  const answers = async () => (await execute("/bin/sh", ["-c", `${curl} --silent`])).stdout;
  await expect.poll(answers, { interval: 200 }).toContain("chat.completion");

  // An orderly stop would wait for this call.
  const call = fetch(`${demo.baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${demo.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "local/chat", messages: [{ role: "user", content: "slow:60000" }] }),
  }).catch(() => undefined);
  await expect.poll(async () => (await account(demo)).open_holds).toBe(1);
  run.child.kill("SIGINT");
  await run.says(/Stopping API/);
  // A second signal that follows too soon counts as the same Ctrl-C, which both the terminal and npm pass on.
  const again = setInterval(() => run.child.kill("SIGINT"), 100);
  expect((await run.ended).code).toBe(1);
  clearInterval(again);
  await call;
  await expect.poll(() => allFree(ports)).toBe(true);
});

test("a configured port that is taken is an error, and nothing is started", async () => {
  const squatter = createServer().listen(0, "127.0.0.1");
  await once(squatter, "listening");
  onTestFinished(() => void squatter.close());
  const { port } = squatter.address() as { port: number };
  const dataDir = await temporaryFolder();
  const { code, output } = await start(dataDir, { PORT: String(port) }).ended;
  expect({ code, output: output.trim() }).toEqual({
    code: 1,
    output: `PORT ${port} is in use. Set another one, or 0 for any free one.`,
  });
  expect(await readdir(dataDir)).toEqual([]);
});

test("an invalid setting is named before anything is started", async () => {
  const dataDir = await temporaryFolder();
  const { code, output } = await start(dataDir, { WORKERS: "many" }).ended;
  expect(code).toBe(1);
  expect(output).toMatch(/^\s*WORKERS: /);
  expect(await readdir(dataDir)).toEqual([]);
});
