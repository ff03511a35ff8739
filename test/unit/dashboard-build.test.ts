import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";

const limitBytes = 200_000;
const vite = fileURLToPath(new URL("../../node_modules/vite/bin/vite.js", import.meta.url));
const sources = fileURLToPath(new URL("../../dashboard/", import.meta.url));

let folder = "";
let html = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "dashboard-"));
  const args = [vite, "build", sources, "--outDir", folder, "--emptyOutDir", "--logLevel", "error"];
  await promisify(execFile)(process.execPath, args, { env: { ...process.env, NODE_ENV: "test" } });
  html = await readFile(join(folder, "index.html"), "utf8");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const read = (address: string) => readFile(join(folder, address.replace("/dashboard/", "")));

/** The bytes that the browser loads before it shows a screen: the files named by the page, and the screen's own. */
async function firstLoadBytes(screen: string): Promise<number> {
  const named = [...html.matchAll(/(?:src|href)="(\/dashboard\/assets\/[^"]+)"/g)].map(([, address = ""]) => address);
  const own = (await readdir(join(folder, "assets"))).filter((name) => name.startsWith(`${screen}-`));
  expect(own, "the screen is a file of its own").not.toEqual([]);
  const files = await Promise.all([...named, ...own.map((name) => `/dashboard/assets/${name}`)].map(read));
  return files.reduce((sum, bytes) => sum + gzipSync(bytes).length, gzipSync(html).length);
}

test("the first load is at most 200 KB compressed, without charts", async () => {
  for (const screen of ["overview", "usage"]) expect(await firstLoadBytes(screen)).toBeLessThan(limitBytes);
  const charts = await Promise.all(
    [...html.matchAll(/(?:src|href)="(\/dashboard\/assets\/[^"]+\.js)"/g)].map(async ([, address = ""]) =>
      (await read(address)).includes("recharts-responsive-container"),
    ),
  );
  expect(charts).not.toContain(true);
});

test("the page has nothing inline and names no other host, as its content policy asks", async () => {
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=/);
  expect([...html.matchAll(/<script[^>]*>([^<]*)/g)].map(([, inline]) => inline)).toEqual([""]);
  expect(html).not.toMatch(/(?:src|href)="(?!\/dashboard\/)/);
  const sheets = (await readdir(join(folder, "assets"))).filter((name) => name.endsWith(".css"));
  for (const name of sheets)
    expect(String(await read(`/dashboard/assets/${name}`))).not.toMatch(/url\(["']?(?:data|http)/);
});
