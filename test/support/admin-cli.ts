import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import { adminToken, startAdminServer } from "./admin-server.ts";

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export const start = (args: readonly string[], env: Readonly<Record<string, string>>) =>
  spawn(process.execPath, ["infra/cli/admin.ts", ...args], {
    env: { PATH: process.env["PATH"], DATA_DIR: "/nonexistent", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });

/** `npm run admin -- ...` as a process, with only the given environment. */
export async function run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> {
  const child = start(args, env);
  const [[code], out, err] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  return { code: code as number, out, err };
}

export async function setup() {
  const server = await startAdminServer();
  const env = { ADMIN_URL: server.url, ADMIN_TOKEN: adminToken };
  const admin = (...args: string[]) => run(args, env);
  const json = async (...args: string[]) => {
    const { code, out, err } = await run([...args, "--json"], env);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    return JSON.parse(out) as { id: string; key: string };
  };
  return { server, env, admin, json };
}
