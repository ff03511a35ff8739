import { join } from "node:path";
import { Writable } from "node:stream";
import { pino } from "pino";
import pretty from "pino-pretty";
import type { Logger } from "#platform/logger";
import type { Progress } from "../embedded/index.ts";
import type { Demo } from "./demo.ts";
import type { SignInCodes } from "./sign-in-codes.ts";
import { defaultDataDir } from "./start-config.ts";

export type Terminal = ReturnType<typeof createTerminal>;

const progressIntervalMs = 5_000;

/** The output of `npm start`: downloads, instructions for a first call, then the logs of its processes. */
export function createTerminal(out: NodeJS.WriteStream) {
  const fetching = new Map<string, string>();
  let lastShownAt = Number.NEGATIVE_INFINITY;
  let overwrite = false;

  function write(text: string): void {
    out.write(overwrite ? `\r\u001b[K${text}` : text);
    overwrite = false;
  }

  const stream = pretty({
    destination: new Writable({
      write(text: Buffer, _, done) {
        write(text.toString());
        done();
      },
    }),
    colorize: out.isTTY === true && !process.env.NO_COLOR,
    translateTime: "SYS:HH:MM:ss",
    ignore: "hostname,pid",
    singleLine: true,
  });
  const log: Logger = pino({ name: "start", base: { name: "start" } }, stream);

  /** A terminal shows one line that is overwritten; a file gets a line every few seconds. */
  function progress({ what, step, elapsedMs, state }: Progress): void {
    const text = `${what}: ${step === "" ? "" : `${step}, `}${Math.round(elapsedMs / 1000)} s`;
    if (state !== "running") {
      fetching.delete(what);
      return write(`${state === "done" ? "Fetched" : "Could not fetch"} ${text}\n`);
    }
    fetching.set(what, text.replace(/ \([^()]*\)/, ""));
    if (!out.isTTY && performance.now() - lastShownAt < progressIntervalMs) return;
    lastShownAt = performance.now();
    const all = `Fetching ${[...fetching.values()].join("; ")}`;
    write(out.isTTY ? all.slice(0, (out.columns || 80) - 1) : `${all}\n`);
    overwrite = out.isTTY;
  }

  return {
    log,
    /** Prints a line of a process: JSON log lines are formatted, other lines are shown unchanged. */
    line: (text: string) => void stream.write(`${text}\n`),
    progress,
    ready: (demo: Demo, codes: SignInCodes, dataDir: string) => write(banner(demo, codes, dataDir)),
    failure: (error: unknown) => write(`\n${error instanceof Error ? error.message : String(error)}\n`),
  };
}

/** The demo commands find the demo by its data directory. */
const demoCommands = ({ x402 }: Demo, dataDir: string): string => {
  const run = `${dataDir === defaultDataDir ? "" : `DATA_DIR='${dataDir}' `}npm run`;
  const onChain = `
  Pay for an image without a key, by x402, on the demo's own chain, and top up the account there:

  ${run} demo:x402
  ${run} demo:topup
`;
  return `
  Fill the dashboard with 300 calls:

  ${run} demo:traffic

  Make an image and a film as jobs, and follow them by polling and by webhooks:

  ${run} demo:async

  Run 2,000 calls as a batch:

  ${run} demo:batch
${x402 ? onChain : ""}`;
};

/** The code is in the fragment, which is never sent to a server, so that link previews cannot use it up. */
const signInLink = ({ baseUrl }: Demo, code: string) => `${baseUrl}/dashboard/sign-in#code=${code}`;

const banner = (demo: Demo, codes: SignInCodes, dataDir: string): string => `
  The inference service is ready.

  Address   ${demo.baseUrl}
  API key   ${demo.apiKey}
  Dashboard ${demo.baseUrl}/dashboard
  Pages     ${demo.baseUrl}/docs
  Saved in  ${join(dataDir, "demo.json")}

  Sign in to the dashboard, once and within five minutes, later with the API key or the admin token:

  as the demo account  ${signInLink(demo, codes.account)}
  as its operator      ${signInLink(demo, codes.operator)}

  Try it:

  curl ${demo.baseUrl}/v1/chat/completions \\
    -H 'Authorization: Bearer ${demo.apiKey}' \\
    -H 'Content-Type: application/json' \\
    -d '{"model": "local/chat", "messages": [{"role": "user", "content": "Hello!"}]}'
${demoCommands(demo, dataDir)}
  Ctrl-C stops everything in order.

`;
