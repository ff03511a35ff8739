import type { DestinationStream } from "pino";
import { createLogger, type Logger } from "../../shared/platform/logger.ts";

/**
 * Patterns that no log line may contain: the default prompt and answer of the tests, and API keys. Every line that the
 * service logs in a test is searched for them; `check-logs.ts` fails the test file with a match.
 */
const forbidden = new Set(["Hello there", "the-words-of-a-prompt", "live_[0-9A-Za-z]{40}"]);
let pattern: RegExp | undefined;
let read = 0;
let leaks: string[] = [];

const isSecret = (name: string) => /(KEY|SECRET|TOKEN)$/.test(name) && name !== "BUYBACK_TOKEN";
/** A shorter value may be an ordinary word. */
const shortestSecret = 10;

/** Forbids the secrets of this configuration in log lines. */
export function forbidSecrets(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env))
    if (isSecret(name) && value.length >= shortestSecret) forbidText(value);
}

function forbidText(text: string): void {
  forbidden.add(RegExp.escape(text));
  pattern = undefined;
}

export function checkLine(line: string): void {
  read += 1;
  pattern ??= new RegExp([...forbidden].join("|"));
  if (pattern.test(line)) leaks.push(line);
}

/** The number of searched lines. */
export const linesRead = (): number => read;

/** The lines found since the last call. */
export function takeLeaks(): readonly string[] {
  const found = leaks;
  leaks = [];
  return found;
}

const printed = process.env["TEST_LOG_LEVEL"];

/** Everything, unless TEST_LOG_LEVEL names a level: then the log is also printed. */
export const testLogLevel = printed ?? "trace";

const output: DestinationStream = {
  write(line) {
    checkLine(line);
    if (printed !== undefined) process.stdout.write(line);
  },
};

/** The logger of services that a test starts in its own process. */
export const createTestLogger = (): Logger => createLogger("test", testLogLevel, output);
