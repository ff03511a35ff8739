import { join } from "node:path";
import { Writable } from "node:stream";
import { pino } from "pino";
import pretty from "pino-pretty";
import type { Logger } from "#platform/logger";
import type { Progress } from "../embedded/index.ts";
import type { Demo } from "./demo.ts";
import type { LogFile } from "./log-file.ts";
import type { SignInCodes } from "./sign-in-codes.ts";
import { defaultDataDir } from "./start-config.ts";

export type Terminal = ReturnType<typeof createTerminal>;

const progressIntervalMs = 5_000;

/** pino's number for `error`. */
const errorLevel = 50;

/**
 * Returns true for a line that is shown although the log file has it: an error, or what is no line of the log, such as a
 * stack trace of a process that ended.
 */
function isShown(line: string): boolean {
  if (!line.startsWith("{")) return true;
  const level = Number(/^\{"level":(\d+)/.exec(line)?.[1]);
  return !(level < errorLevel);
}

/** The output of `npm start`: downloads, errors of its processes, and instructions for a first call. */
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
    /** Takes a line of a process: each goes to the log file, errors also to the terminal. */
    line(text: string, file: LogFile): void {
      file.write(text);
      if (isShown(text)) stream.write(`${text}\n`);
    },
    progress,
    ready: (ready: Ready) => write(banner(ready)),
    failure: (error: unknown) => write(`\n${error instanceof Error ? error.message : String(error)}\n`),
  };
}

interface Ready {
  readonly demo: Demo;
  readonly codes: SignInCodes;
  readonly dataDir: string;
  readonly logFile: string;
}

/** The demo commands find the demo by its data directory. */
export const runOf = (dataDir: string): string =>
  `${dataDir === defaultDataDir ? "" : `DATA_DIR='${dataDir}' `}npm run`;

function demoCommands({ x402 }: Demo, dataDir: string): string {
  const run = runOf(dataDir);
  const commands = [
    ["demo:traffic", "fills the dashboard with 300 calls"],
    ["demo:async", "makes an image and a film as jobs, followed by polling and by webhooks"],
    ["demo:batch", "runs 2,000 calls as a batch"],
    ...(x402
      ? [
          ["demo:x402", "pays for an image without a key, by x402, on the demo's own chain"],
          ["demo:topup", "tops up the account there"],
        ]
      : []),
  ];
  return commands.map(([name = "", what = ""]) => `  ${run} ${name.padEnd(12)}  ${what}`).join("\n");
}

/** The code is in the fragment, which is never sent to a server, so that link previews cannot use it up. */
export const signInLinks = ({ baseUrl }: Pick<Demo, "baseUrl">, codes: SignInCodes): string =>
  `  as the demo account  ${baseUrl}/dashboard#code=${codes.account}
  as its operator      ${baseUrl}/dashboard/operator#code=${codes.operator}
`;

/** The address, the key and the links come last, where the terminal shows them. */
const banner = ({ demo, codes, dataDir, logFile }: Ready): string => `
  The inference service is ready. In another terminal:

  curl ${demo.baseUrl}/v1/chat/completions \\
    -H 'Authorization: Bearer ${demo.apiKey}' \\
    -H 'Content-Type: application/json' \\
    -d '{"model": "local/chat", "messages": [{"role": "user", "content": "Hello!"}]}'

${demoCommands(demo, dataDir)}

  Address        ${demo.baseUrl}
  API key        ${demo.apiKey}
  API reference  ${demo.baseUrl}/docs
  Saved in       ${join(dataDir, "demo.json")}
  Log            ${logFile}

  The dashboard, signed in. Each link works once, for five minutes; ${runOf(dataDir)} dashboard:link prints new ones.

${signInLinks(demo, codes)}
  Ctrl-C stops everything in order.

`;
