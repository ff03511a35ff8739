import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { type Area, areas, type Fault } from "./faults.ts";

/**
 * npm run test:faults -- [--only <text>] [--check] [--out file]
 *
 * Measures the tests: puts one deliberate fault after the other into the working tree, runs the tests of its area, and prints
 * the faults that were caught. Every file is restored, even when the run is interrupted. `--check` only checks that every
 * fault still fits the code. Takes some two hours.
 */
const { values: options } = parseArgs({
  options: { only: { type: "string", default: "" }, check: { type: "boolean" }, out: { type: "string" } },
});
const root = join(import.meta.dirname, "../..");
const sources = globSync("{api,workers,shared}/**/*.ts", { cwd: root }).map((path) => join(root, path));
const say = (text: string) => process.stdout.write(`${text}\n`);

/** The single file that contains the fault's text. */
function placeOf({ name, file, find }: Fault): { path: string; text: string } {
  const named = sources
    .filter((path) => basename(path) === file)
    .map((path) => ({ path, text: readFileSync(path, "utf8") }));
  const fitting = named.filter(({ text }) => text.split(find).length === 2);
  const [place, ...others] = fitting;
  if (!place || others.length > 0) throw new Error(`${name}: fits ${fitting.length} files named ${file}, not one`);
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

async function isCaught({ tests }: Area, fault: Fault): Promise<boolean> {
  const { path, text } = placeOf(fault);
  restore = () => writeFileSync(path, text);
  try {
    writeFileSync(
      path,
      text.replace(fault.find, () => fault.replace),
    );
    return await fails(tests);
  } finally {
    restore();
  }
}

for (const { faults } of areas) for (const fault of faults) placeOf(fault);
say(`${areas.flatMap(({ faults }) => faults).length} faults fit the code.`);
if (!options.check) {
  const rows = ["| area | fault | caught |", "| --- | --- | --- |"];
  for (const area of areas) {
    const chosen = area.faults.filter(({ name }) => `${area.name}: ${name}`.includes(options.only));
    if (chosen.length === 0) continue;
    if (await fails(area.tests)) throw new Error(`${area.name}: its tests fail without a fault`);
    for (const fault of chosen) {
      const row = `| ${area.name} | ${fault.name} | ${(await isCaught(area, fault)) ? "yes" : "**no**"} |`;
      say(row);
      rows.push(row);
    }
  }
  if (options.out) writeFileSync(options.out, `${rows.join("\n")}\n`);
}
