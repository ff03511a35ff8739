import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { z } from "zod";
import type { Program } from "./program.ts";

/** A store that runs here, with what the service needs to reach it. */
export interface Server extends Program {
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
}

export interface ServerOptions {
  readonly binary: string;
  /** The server's own folder. It keeps the port, so that a later start finds the same one. */
  readonly dataDir: string;
  /** Default: the one that the folder keeps, or any free one. */
  readonly port?: number;
  /** Put after the server's own arguments. */
  readonly args?: readonly string[];
}

const kept = z.object({ port: z.number(), pid: z.number().optional(), secret: z.string().optional() });
type Kept = z.infer<typeof kept>;

/** A server's folder: its data, its log, and what must be the same at the next start. */
export interface Folder {
  readonly data: string;
  readonly log: string;
  readonly port: number;
  readonly secret: string | undefined;
  keep(changes: Partial<Kept>): void;
}

export async function openFolder({ dataDir, port }: Pick<ServerOptions, "dataDir" | "port">): Promise<Folder> {
  const root = resolve(dataDir);
  const data = join(root, "data");
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const file = join(root, "server.json");
  let before = readStored(file);
  if (before?.pid !== undefined) await untilGone(before.pid, before.port, root);
  const chosen = port ?? (before && (await isFree(before.port)) ? before.port : await freePort());
  const keep = (changes: Partial<Kept>) => {
    before = { ...before, port: chosen, ...changes };
    writeFileSync(file, JSON.stringify(before), { mode: 0o600 });
  };
  keep({});
  return { data, log: join(root, "log"), port: chosen, secret: before?.secret, keep };
}

function readStored(file: string): Kept | undefined {
  try {
    return kept.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return undefined;
  }
}

/** After a kill -9 of its parent the former server takes up to 5 s to end; two on the same data would destroy it. */
async function untilGone(pid: number, port: number, root: string): Promise<void> {
  const deadline = performance.now() + 6_000;
  while (isAlive(pid) && performance.now() < deadline) await setTimeout(50);
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
    const probe = createServer();
    probe.once("error", () => done(false));
    probe.listen(port, host, () => probe.close(() => done(true)));
  });

/**
 * Below the range that outgoing connections take their ports from: there another process may take the port while the
 * server is stopped, and a client that keeps reconnecting to it may end up connected to itself.
 */
export async function freePort(host?: string): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    if (await isFree(port, host)) return port;
  }
}

/** The program and its addresses as one; the folder forgets the process when it was stopped in order. */
export const serverOf = (program: Program, folder: Folder, env: Readonly<Record<string, string>>): Server => ({
  name: program.name,
  port: folder.port,
  env,
  get pid() {
    return program.pid;
  },
  start: program.start,
  async stop() {
    await program.stop();
    folder.keep({ pid: undefined });
  },
  kill: program.kill,
  onCrash: program.onCrash,
});
