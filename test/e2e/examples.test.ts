import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { cacheDirOf } from "../../infra/embedded/index.ts";
import { settingsOf } from "../support/payments-setup.ts";
import { temporaryFolder } from "../support/program.ts";
import { testStores } from "../support/servers.ts";
import { type Client, type Customer, ready, spawnApi, spawnWorker } from "../support/service.ts";
import { testChain } from "../support/solana.ts";

const run = promisify(execFile);
/** The examples of a page that are marked as runnable, in their order. */
const examplesOf = (page: string) =>
  [...readFileSync(page, "utf8").matchAll(/<!-- example -->\n```(\w+)\n([\s\S]*?)```/g)].map(
    ([, language = "", code = ""]) => ({ language, code }),
  );
const pages = [
  "README.md",
  "docs/guides/formats.md",
  "docs/guides/media-and-uploads.md",
  "docs/guides/x402.md",
  "docs/guides/routing.md",
  "docs/guides/response-cache.md",
];
const openaiForPython = "openai==3.52.0";

/** The Python client, installed once into the cache. */
async function pythonPath(): Promise<string> {
  const folder = join(cacheDirOf(process.env), openaiForPython.replace("==", "-"));
  if (existsSync(folder)) return folder;
  const partial = `${folder}.${process.pid}`;
  await mkdir(partial, { recursive: true });
  await run("python3", ["-m", "pip", "install", "--quiet", "--target", partial, openaiForPython]);
  await rename(partial, folder).catch(() => rm(partial, { recursive: true, force: true }));
  return folder;
}

async function start(): Promise<{ env: NodeJS.ProcessEnv; payer: Customer; service: Client }> {
  const [stores, chain] = await Promise.all([testStores(), testChain()]);
  const [{ client: service }] = await Promise.all([spawnApi(stores, settingsOf(chain)), spawnWorker(stores)]);
  await ready(service);
  const payer = await service.account("1.00");
  const caller = { INFERENCE_URL: service.baseUrl, INFERENCE_KEY: payer.key };
  const { secret } = await chain.wallet("1.00");
  const env = { ...process.env, ...caller, PAYER_KEY: secret, SOLANA_RPC_URL: chain.rpcUrl };
  return { env, payer, service };
}

const commands: Readonly<Record<string, (code: string) => readonly [string, readonly string[]]>> = {
  sh: (code) => ["bash", ["-euo", "pipefail", "-c", code]],
  ts: (code) => [process.execPath, ["--input-type=module-typescript", "-e", code]],
  python: (code) => ["python3", ["-c", code]],
};

async function runExample(
  { language, code }: { language: string; code: string },
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const command = commands[language];
  if (!command) throw new Error(`no way to run an example in '${language}'`);
  const [program, args] = command(code);
  return (await run(program, args, { env })).stdout;
}

test("the documents' curl and TypeScript examples run as printed, and are paid for", async () => {
  const { env, payer, service } = await start();
  const outputs: string[] = [];
  for (const example of pages.flatMap(examplesOf).filter(({ language }) => language !== "python"))
    outputs.push(await runExample(example, env));
  const [
    json = "",
    stream,
    tools,
    native,
    media,
    edited,
    spoken,
    transcript,
    upload = "",
    parts,
    paying,
    routed = "",
    sorted,
    cacheable,
    repeated,
    ...others
  ] = outputs;
  expect(others).toEqual([]);
  expect(JSON.parse(json)).toMatchObject({ object: "chat.completion", model: "local/chat" });
  expect(stream).toMatch(/Count to three/);
  expect(tools).toMatch(/"name":"get_weather"/);
  expect(native).toMatch(/Hello!.*\d+\n.*Hello!.*\n.*Hello!/s);
  expect(media).toMatch(/media\/file_\w+.*media\/file_\w+.*video\/mp4 0\.\d+/s);
  expect(edited).toMatch(/^http\S+\/media\/file_\w+ 2\n$/);
  expect(spoken).toBe("");
  expect(transcript).toMatch(/^This is a recording of 0\.\d+ seconds/);
  expect(JSON.parse(upload)).toMatchObject({
    choices: [{ message: { content: expect.stringContaining("PNG image of 256 x 256") as string } }],
  });
  expect(parts).toMatch(/^upl_\w+\n$/);
  expect(paying).toMatch(/^200 http\S+\/media\/file_\w+ 0\.01\n\w{64,88}\n$/);
  expect(JSON.parse(routed)).toMatchObject({ model: "local/chat" });
  expect(sorted).toMatch(/^local\/chat .*Hello!/);
  expect(cacheable).toMatch(/^HTTP\/1.1 200 .*^x-xm-cache: miss.*What is the capital of France/ms);
  expect(repeated).toMatch(/^miss You said.*of Italy.*\nhit You said.*of Italy.*\nrefresh You said.*of Italy.*\n$/);
  await service.settled();
  expect(await payer.ledger("usage")).toHaveLength(21);
  expect(await payer.ledger("storage")).toHaveLength(2);
});

test("the README's Python example runs as printed", async () => {
  const { env } = await start();
  const [example] = examplesOf("README.md").filter(({ language }) => language === "python");
  if (!example) throw new Error("The README has no example in Python.");
  const output = await runExample(example, { ...env, PYTHONPATH: await pythonPath() });
  expect(output).toMatch(/Hello!.*\d+\n2 vectors of 256 numbers\n/s);
});

test("the documents' TypeScript examples compile with the clients' own types", async () => {
  const folder = await temporaryFolder();
  await symlink(resolve("node_modules"), join(folder, "node_modules"));
  const examples = pages.flatMap(examplesOf).filter(({ language }) => language === "ts");
  for (const [at, { code }] of examples.entries()) await writeFile(join(folder, `example-${at}.mts`), code);
  const compilerOptions = { noEmit: true, strict: true, skipLibCheck: true, module: "nodenext", types: ["node"] };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.mts"] }));
  const { stdout } = await run(resolve("node_modules/.bin/tsc"), ["-p", folder]).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout).toBe("");
  expect(examples.length).toBeGreaterThan(5);
});
