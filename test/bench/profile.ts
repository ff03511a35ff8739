import { spawn } from "node:child_process";
import { once } from "node:events";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { openInspector } from "./inspector.ts";
import type { Round } from "./measure.ts";

/** A V8 CPU profile, as returned by `Profiler.stop`. */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly children?: readonly number[];
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  /** In microseconds. */
  readonly timeDeltas: readonly number[];
}

/** Profiles a process that was started with `--inspect`, during `run`. */
export async function profileWhile(port: number, run: Promise<unknown>): Promise<CpuProfile> {
  const { post, close } = await openInspector(port);
  try {
    await post("Profiler.enable");
    await post("Profiler.start");
    await run;
    return ((await post("Profiler.stop")) as { profile: CpuProfile }).profile;
  } finally {
    close();
  }
}

const root = join(import.meta.dirname, "../..");
const atRest = new Set(["(idle)", "(program)", "(root)"]);

function placeOf(url: string): string {
  if (!url.startsWith("file:")) return url;
  return relative(root, fileURLToPath(url)).replace(/^.*node_modules\//, "");
}

/** The npm package, or the project's own folder. */
function ownerOf({ url }: CallFrame): string {
  const place = placeOf(url);
  if (!url.includes("/node_modules/")) return place.split("/").slice(0, 2).join("/");
  return place
    .split("/")
    .slice(0, place.startsWith("@") ? 2 : 1)
    .join("/");
}

type CallFrame = CpuProfile["nodes"][number]["callFrame"];

const isNodesOwn = ({ url }: CallFrame) => url === "" || url.startsWith("node:");

/** The nearest caller outside Node: the function that requested a `writev`, for example. */
function onBehalfOf(id: number, nodes: ReadonlyMap<number, CallFrame>, parents: ReadonlyMap<number, number>) {
  for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
    const frame = nodes.get(at);
    if (frame && !isNodesOwn(frame)) return frame;
  }
  return undefined;
}

const nameOf = ({ functionName, url, lineNumber }: CallFrame) =>
  `${functionName || "(anonymous)"}${url === "" ? "" : ` ${placeOf(url)}:${lineNumber + 1}`}`;

/**
 * Self time by package or folder, and by function, in percent of the busy time. Node's own time counts towards its
 * caller. On a busy machine a function that only waited for the processor looks slow: use profiles from a quiet one.
 */
export function summarize(profile: CpuProfile, most = 40): string {
  const nodes = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const parents = new Map(
    profile.nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)),
  );
  const byFunction = new Map<string, number>();
  const byOwner = new Map<string, number>();
  const add = (to: Map<string, number>, key: string, micros: number) => to.set(key, (to.get(key) ?? 0) + micros);
  let busy = 0;
  let all = 0;
  profile.samples.forEach((id, index) => {
    const frame = nodes.get(id);
    const micros = profile.timeDeltas[index] ?? 0;
    all += micros;
    if (!frame || atRest.has(frame.functionName)) return;
    busy += micros;
    const caller = onBehalfOf(id, nodes, parents);
    add(byOwner, caller ? ownerOf(caller) : nameOf(frame), micros);
    add(byFunction, caller && caller !== frame ? `${nameOf(frame)} for ${nameOf(caller)}` : nameOf(frame), micros);
  });
  const top = (from: Map<string, number>) =>
    [...from]
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, most)
      .map(([key, micros]) => `${((micros / busy) * 100).toFixed(1).padStart(6)} %  ${key}`)
      .join("\n");
  return `busy ${((busy / all) * 100).toFixed(0)} % of ${(all / 1e6).toFixed(1)} s\n\n${top(byOwner)}\n\n${top(byFunction)}\n`;
}

/** Counts the system calls of a process, and of its threads, during a round. */
export async function systemCallsWhile(name: string, pid: number, running: Promise<Round>): Promise<string> {
  const tracing = spawn("strace", ["-c", "-f", "-p", String(pid)], { stdio: ["ignore", "ignore", "pipe"] });
  let counted = "";
  tracing.stderr.on("data", (text) => {
    counted += String(text);
  });
  const ended = once(tracing, "close").catch(() => undefined);
  const { outcome } = await running;
  tracing.kill("SIGINT");
  if (!(await ended)) return `system calls of ${name}: strace is not installed`;
  const rows = counted.split("\n").flatMap((line) => {
    const [, , , calls, ...rest] = line.trim().split(/\s+/);
    const called = rest.at(-1);
    return called && Number(calls) >= outcome.calls / 20
      ? [`${called} ${(Number(calls) / outcome.calls).toFixed(2)}`]
      : [];
  });
  return `system calls of ${name}, for each call: ${rows.join(", ")}`;
}
