import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDirOf } from "../../infra/embedded/index.ts";
import { freeOrigin, type Measured, measured, startNode } from "./processes.ts";
import type { Target } from "./workload.ts";

/**
 * Portkey's gateway as its package starts it, with the HTTP adapter that its streams work with (Portkey-AI/gateway
 * #1389).
 */
export const portkeyVersion = "1.15.2";
const packages = { "@portkey-ai/gateway": portkeyVersion, "@hono/node-server": "1.13.8" };

/** Portkey has no option for the listening address. */
const listenOnLoopback = `data:text/javascript,${encodeURIComponent(`
  import { Server } from "node:net";
  const { listen } = Server.prototype;
  Server.prototype.listen = function (port, host, ...rest) {
    return listen.call(this, port, "127.0.0.1", ...rest);
  };
`)}`;

/** Installs Portkey once, into the cache: it is not a dependency of the project. */
async function installed(onProgress: (text: string) => void): Promise<string> {
  const folder = join(cacheDirOf(process.env), "bench", `portkey-${portkeyVersion}`);
  const main = join(folder, "node_modules/@portkey-ai/gateway/build/start-server.js");
  if (existsSync(main)) return main;
  onProgress(`Fetching Portkey's gateway ${portkeyVersion} into ${folder}`);
  await mkdir(folder, { recursive: true });
  const overrides = { "@hono/node-server": packages["@hono/node-server"] };
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, dependencies: packages, overrides }));
  const args = ["install", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
  await promisify(execFile)("npm", args, { cwd: folder, timeout: 300_000 });
  return main;
}

export interface Portkey {
  readonly target: Target;
  readonly processes: readonly Measured[];
  readonly stop: () => Promise<void>;
}

export async function startPortkey(options: {
  readonly mockOrigin: string;
  readonly logDir: string;
  readonly onProgress: (text: string) => void;
}): Promise<Portkey> {
  const { mockOrigin, logDir, onProgress } = options;
  const main = await installed(onProgress);
  const { port, origin } = await freeOrigin();
  const args = ["--import", listenOnLoopback, main, "--headless", `--port=${port}`];
  const program = await startNode({ name: "portkey", args, logDir, readyUrl: origin });
  return {
    target: {
      origin,
      path: "/v1/chat/completions",
      headers: {
        "content-type": "application/json",
        authorization: "Bearer bench",
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": `${mockOrigin}/v1`,
      },
      model: "gpt-4.1-mini",
    },
    processes: [measured("portkey", program)],
    stop: program.stop,
  };
}
