import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Area } from "./answer-faults.ts";
import { areas } from "./faults.ts";

/**
 * npm run test:faults -- [--only <text>] [--check] [--out file]
 *
 * Measures the tests: puts one deliberate fault after the other into the working tree, runs the tests of its area in `npm
 * test`, and if none fails those in the other suites, and prints what caught it. Every file is restored, even when the run
 * is interrupted. `--check` only checks that every fault still fits the code. Takes some two hours.
 */
const { values: options } = parseArgs({
  options: { only: { type: "string", default: "" }, check: { type: "boolean" }, out: { type: "string" } },
});
const root = join(import.meta.dirname, "../..");
const sources = globSync("{api,workers,shared}/**/*.ts", { cwd: root }).map((path) => join(root, path));
const say = (text: string) => process.stdout.write(`${text}\n`);

/** The single file that contains the fault's text. */
function placeOf(name: string, find: string): { path: string; text: string } {
  const fitting = sources
    .map((path) => ({ path, text: readFileSync(path, "utf8") }))
    .filter(({ text }) => text.includes(find));
  const [place, ...others] = fitting;
  if (place?.text.split(find).length !== 2 || others.length > 0)
    throw new Error(`${name}: its text is in ${fitting.length} files, and has to be once in one`);
  return place;
}

let restore = () => {};
let running: ReturnType<typeof spawn> | undefined;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(signal, () => {
    running?.kill("SIGTERM");
    restore();
    process.exit(1);
  });

async function fails(tests: readonly string[]): Promise<boolean> {
  running = spawn("npx", ["vitest", "run", "--bail", "1", ...tests], { cwd: root, stdio: "ignore" });
  const [code] = (await once(running, "exit")) as [number | null];
  return code !== 0;
}

async function caughtBy({ tests, others = [] }: Area): Promise<"`npm test`" | "`npm run test:all`" | undefined> {
  if (await fails(tests)) return "`npm test`";
  return others.length > 0 && (await fails(others)) ? "`npm run test:all`" : undefined;
}

async function withFault(area: Area, name: string, [find, replace]: readonly [string, string]) {
  const { path, text } = placeOf(name, find);
  restore = () => writeFileSync(path, text);
  try {
    writeFileSync(
      path,
      text.replace(find, () => replace),
    );
    return await caughtBy(area);
  } finally {
    restore();
  }
}

const all = Object.entries(areas).map(([name, area]) => ({ name, area, faults: Object.entries(area.faults) }));
for (const { faults } of all) for (const [name, [find]] of faults) placeOf(name, find);
say(`${all.flatMap(({ faults }) => faults).length} faults fit the code.`);
if (!options.check) {
  const rows = ["| area | fault | caught by |", "| --- | --- | --- |"];
  for (const { name: areaName, area, faults } of all) {
    const chosen = faults.filter(([name]) => `${areaName}: ${name}`.includes(options.only));
    if (chosen.length === 0) continue;
    if (await caughtBy(area)) throw new Error(`${areaName}: its tests fail without a fault`);
    for (const [name, change] of chosen) {
      const row = `| ${areaName} | ${name} | ${(await withFault(area, name, change)) ?? "**nothing**"} |`;
      say(row);
      rows.push(row);
    }
  }
  if (options.out) writeFileSync(options.out, `${rows.join("\n")}\n`);
}
