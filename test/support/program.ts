import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

type Env = Readonly<Record<string, string>>;

export interface Ended {
  /** Null if a signal ended it. */
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Starts a program of the service with only these environment variables. It ends with the test. */
export function startProgram(args: readonly string[], env: Env = {}) {
  const { PATH = "", NODE_COMPILE_CACHE = "" } = process.env;
  const child = spawn(process.execPath, args, {
    env: { PATH, NODE_COMPILE_CACHE, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const all = [once(child, "close"), text(child.stdout), text(child.stderr)] as const;
  const ended = Promise.all(all).then(([[code], out, err]): Ended => ({ code: code as number | null, out, err }));
  return { child, ended };
}

export const runProgram = (args: readonly string[], env?: Env): Promise<Ended> => startProgram(args, env).ended;

/** A folder that is removed after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "inference-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}
