import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createListener } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { z } from "zod";
import { createProgram, type Program, type ProgramOptions } from "./program.ts";

export interface Server extends Program {
  readonly port: number;
  /** The variables through which the service reaches the server. */
  readonly env: Readonly<Record<string, string>>;
}

export interface ServerOptions {
  readonly binary: string;
  /** The server's own folder, with its data, log and port. */
  readonly dataDir: string;
  /** Appended to the server's own arguments. */
  readonly args?: readonly string[];
}

const stateShape = z.object({ port: z.number(), pid: z.number().optional(), secret: z.string().optional() });
type State = z.infer<typeof stateShape>;

type Folder = Awaited<ReturnType<typeof openFolder>>;

/** Opens a server's folder and reuses the stored port if it is free. Rejects when a running process uses the folder. */
export async function openFolder(dataDir: string) {
  const root = resolve(dataDir);
  const data = join(root, "data");
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const file = join(root, "server.json");
  let state = readState(file);
  if (state?.pid !== undefined) await untilExited(state.pid, state.port, root);
  const port = state && (await isFree(state.port)) ? state.port : await freePort();
  const save = (changes: Partial<State>) => {
    state = { ...state, port, ...changes };
    writeFileSync(file, JSON.stringify(state), { mode: 0o600 });
  };
  save({});
  return { data, log: join(root, "log"), port, secret: state?.secret, save };
}

function readState(file: string): State | undefined {
  try {
    return stateShape.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return undefined;
  }
}

/** A server takes up to 5 s to end after its parent is killed. Two servers on the same data would destroy it. */
async function untilExited(pid: number, port: number, root: string): Promise<void> {
  const deadline = performance.now() + 6_000;
  while (isAlive(pid) && performance.now() < deadline) await setTimeout(50);
  // Another program may have got the process id since, but then the port is free.
  if (isAlive(pid) && !(await isFree(port)))
    throw new Error(`${root} is in use: process ${pid} serves it on port ${port}.`);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** On some systems a listener on every address hides one on 127.0.0.1, so both are tried. */
export const isFree = async (port: number, host = "127.0.0.1"): Promise<boolean> =>
  (await canListen(port, host)) && (await canListen(port, "127.0.0.1"));

const canListen = (port: number, host: string): Promise<boolean> =>
  new Promise((done) => {
    const probe = createListener();
    probe.once("error", () => done(false));
    probe.listen(port, host, () => probe.close(() => done(true)));
  });

/**
 * Picks a port below the ephemeral range. In that range, another process may take the port while the server is stopped,
 * and a client that reconnects can end up connected to itself.
 */
export async function freePort(host?: string): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    if (await isFree(port, host)) return port;
  }
}

interface ServerDefinition extends Omit<ProgramOptions, "output" | "onPid"> {
  /** Added to the environment of this process. */
  readonly processEnv?: Readonly<Record<string, string>>;
  readonly env: Server["env"];
}

export async function startServer(folder: Folder, { processEnv, env, ...program }: ServerDefinition): Promise<Server> {
  const started = createProgram({
    ...program,
    env: { ...process.env, ...processEnv },
    output: folder.log,
    onPid: (pid) => folder.save({ pid }),
  });
  await started.start();
  return Object.assign(started, { port: folder.port, env });
}
