import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { env, type Installed } from "./install.ts";

export interface Check {
  readonly name: string;
  readonly state: "passed" | "failed" | "skipped";
  /** The error of a failure; the reason of a check that was skipped, or failed as expected. */
  readonly message: string;
}

const limitMs = 600_000;
const isSecret = (name: string) => /(_KEY|_TOKEN|_SECRET|_BASE_URL)$/.test(name);
const inherited = Object.fromEntries(Object.entries(env).filter(([name]) => !isSecret(name)));

/** Runs the client's file against the service at `url`. */
export async function runClient(
  { command: [program, ...args], folder }: Installed,
  report: string,
  { url, key }: { readonly url: string; readonly key: string },
): Promise<readonly Check[]> {
  const child = spawn(program, args, {
    cwd: folder,
    timeout: limitMs,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...inherited,
      SERVICE_URL: url,
      SERVICE_KEY: key,
      NO_PROXY: "127.0.0.1",
      PYTHONDONTWRITEBYTECODE: "1",
      LLM_USER_PATH: join(folder, "llm"),
    },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data: Buffer) => {
      output = (output + data.toString()).slice(-20_000);
    });
  const [code] = (await once(child, "close")) as [number | null];
  const text = await readFile(report, "utf8").catch(() => "");
  const checks = text.startsWith("{") ? goChecks(text) : junitChecks(text);
  const isExplained = code === 0 ? checks.length > 0 : checks.some(({ state }) => state === "failed");
  return isExplained
    ? checks
    : [...checks, { name: "the run", state: "failed", message: `ended with ${code}\n${output}` }];
}

/** Reads the reports of `node --test` and pytest. Node does not escape `>` in attributes. */
function junitChecks(xml: string): Check[] {
  const attributes = String.raw`((?:[^"<>]|"[^"]*")*?)`;
  const cases = xml.matchAll(new RegExp(`<testcase ${attributes}(?:/>|>([^]*?)</testcase>)`, "g"));
  return Array.from(cases, ([, head = "", body = ""]) => {
    const name = attribute(head, "name");
    const [, expected] = new RegExp(`<skipped ${attributes}/?>`).exec(body) ?? [];
    if (expected !== undefined) {
      const kind = /xfail|todo/.test(attribute(expected, "type")) ? "expected to fail" : "skipped";
      return { name, state: "skipped", message: `${kind}, ${attribute(expected, "message")}` };
    }
    const [, failure] = /<(?:failure|error)\b[^]*?>([^]*?)<\/(?:failure|error)>/.exec(body) ?? [];
    if (failure !== undefined) return { name, state: "failed", message: plain(failure) };
    return { name, state: "passed", message: "" };
  });
}

const attribute = (attributes: string, name: string): string =>
  plain(new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1] ?? "");

const plain = (xml: string): string =>
  xml
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#10;", "\n")
    .replaceAll("&amp;", "&")
    .trim();

/** Reads the lines of `go test -json`. */
function goChecks(text: string): Check[] {
  const lines = text.split("\n").filter((line) => line.startsWith("{"));
  const events = lines.map((line) => JSON.parse(line) as { Action: string; Test?: string; Output?: string });
  const states: Readonly<Record<string, Check["state"]>> = { pass: "passed", fail: "failed", skip: "skipped" };
  return events.flatMap(({ Action, Test }) => {
    const state = states[Action];
    if (Test === undefined || state === undefined) return [];
    const said = events.filter((event) => event.Test === Test).map(({ Output = "" }) => Output);
    return [{ name: Test, state, message: state === "passed" ? "" : said.join("").trim() }];
  });
}
