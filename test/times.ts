/** `npm run test:times`: where the time of the last `npm test` went, as the tables of docs/testing.md. */
import { readFileSync } from "node:fs";
import { type FileTimes, type Times, timesFile } from "./support/times.ts";

const slowest = 20;
const { globalSetupMs, totalMs, files } = JSON.parse(readFileSync(timesFile, "utf8")) as Times;

const seconds = (ms: number) => (ms / 1_000).toFixed(ms < 10_000 ? 1 : 0);
const sum = (list: readonly FileTimes[], of: "ms" | "setupMs" | "cpuMs" | "tests") =>
  list.reduce((total, file) => total + file[of], 0);
const row = (...cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;

const projects = [...new Set(files.map(({ project }) => project))].map((project) => {
  const own = files.filter((file) => file.project === project);
  const [setup, ms, cpu] = (["setupMs", "ms", "cpuMs"] as const).map((of) => seconds(sum(own, of)));
  return row(project, own.length, sum(own, "tests"), setup ?? "", ms ?? "", cpu ?? "");
});
const byTime = files.toSorted((a, b) => b.ms - a.ms).slice(0, slowest);

const lines = [
  `Whole run ${seconds(totalMs)} s, of which ${seconds(globalSetupMs)} s before the first file.`,
  "",
  row("project", "files", "tests", "imports, s", "tests and hooks, s", "processor of the worker, s"),
  row("---", "---", "---", "---", "---", "---"),
  ...projects,
  "",
  row("file", "tests", "tests and hooks, s", "processor of the worker, s"),
  row("---", "---", "---", "---"),
  ...byTime.map(({ file, tests, ms, cpuMs }) => row(`\`${file}\``, tests, seconds(ms), seconds(cpuMs))),
];
process.stdout.write(`${lines.join("\n")}\n`);
