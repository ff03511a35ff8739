import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { spawnGuarded } from "../embedded/index.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const built = join(root, "dashboard/dist/index.html");
/** The dashboard imports nothing from the rest of the project. */
const sources = ["package-lock.json", "dashboard"];

/** Builds the dashboard if its build is missing or outdated. Throws an error that contains the build's output. */
export async function buildDashboard(say: (line: string) => void): Promise<void> {
  const builtAt = await changedAt(built);
  const changes = await Promise.all(sources.map((source) => newestIn(join(root, source))));
  if (builtAt > Math.max(...changes)) return;
  say("Building the dashboard.");
  const lines: string[] = [];
  const { ended } = spawnGuarded({
    command: process.execPath,
    args: [join(root, "node_modules/vite/bin/vite.js"), "build", join(root, "dashboard")],
    env: process.env,
    output: (line) => lines.push(line),
  });
  const reason = await ended;
  if (reason !== "exit code 0") throw new Error(`The dashboard could not be built.\n${lines.join("\n")}`);
}

const changedAt = (path: string): Promise<number> =>
  stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );

async function newestIn(path: string): Promise<number> {
  if (!(await stat(path)).isDirectory()) return changedAt(path);
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.map((entry) => join(entry.parentPath, entry.name));
  const times = files.filter((file) => !file.startsWith(join(path, "dist"))).map(changedAt);
  return Math.max(...(await Promise.all(times)));
}
