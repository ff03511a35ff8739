import { type DestinationStream, type Logger as PinoLogger, pino } from "pino";
import { z } from "zod";

export type Logger = PinoLogger;

/**
 * The properties of an error that are logged. Every other one may carry what a caller sent: ioredis puts the refused
 * command on its errors, MongoDB the refused documents, the AWS SDK the request.
 */
const shownProperties = [
  "code",
  "codeName",
  "errno",
  "syscall",
  "address",
  "port",
  "status",
  "statusCode",
  "kind",
  "param",
] as const;

const longestMessage = 500;
const mostErrors = 5;
const deepestCause = 5;

/** Redis, MongoDB and V8 quote what they refuse: the arguments of a command, a key or document, a text that is no JSON. */
const quotations: readonly (readonly [quotation: RegExp, replacement: string])[] = [
  [/,? with args beginning with:[\s\S]*/, ""],
  [/(\.\.\.)?"[\s\S]*"(\.\.\.)? is not valid JSON/, "the text is not valid JSON"],
  [/(dup key|First element|in element|in document|for field|Document):? ?[{"'][\s\S]*/, "$1"],
];

function withoutQuotations(message: string): string {
  const plain = quotations.reduce((text, [quotation, replacement]) => text.replace(quotation, replacement), message);
  return plain.length > longestMessage ? `${plain.slice(0, longestMessage)}...` : plain;
}

/** zod may repeat the input and names of unknown fields: the place and the kind of each flaw say enough. */
function messageOf(error: Error): string {
  if (!(error instanceof z.ZodError)) return withoutQuotations(String(error.message));
  const issues = error.issues.map(({ code, path }) => `${code} at ${path.join(".") || "the top"}`);
  return withoutQuotations(issues.join(", "));
}

/** The lines that say where: what stands above them repeats the message. */
function framesOf({ stack = "", message }: Error): string {
  const frames = stack
    .replace(message, () => "")
    .split("\n")
    .slice(1);
  return frames.filter((line) => /^\s+at /.test(line)).join("\n");
}

interface Shown {
  readonly type: string;
  readonly message: string;
  readonly stack: string;
  readonly [property: string]: unknown;
}

function show(error: Error, depth = 0): Shown {
  const type = error.name === "Error" ? error.constructor.name : String(error.name);
  const plain = messageOf(error);
  const cause = error.cause instanceof Error && depth < deepestCause ? show(error.cause, depth + 1) : undefined;
  const parts: unknown = Reflect.get(error, "errors");
  const errors = Array.isArray(parts) ? parts.filter((part) => part instanceof Error).slice(0, mostErrors) : [];
  const shown: [name: string, value: string | number][] = [];
  for (const name of shownProperties) {
    const value: unknown = Reflect.get(error, name);
    if (typeof value === "string") shown.push([name, withoutQuotations(value)]);
    if (typeof value === "number") shown.push([name, value]);
  }
  return {
    type,
    message: cause ? `${plain}: ${cause.message}` : plain,
    stack: `${type}: ${plain}\n${framesOf(error)}${cause ? `\ncaused by: ${cause.stack}` : ""}`,
    ...Object.fromEntries(shown),
    ...(errors.length > 0 && { errors: errors.map((each) => err(each, depth + 1)) }),
  };
}

/** What is logged of an error, or of the text of one. It never throws: no line is worth the call that writes it. */
function err(error: unknown, depth = 0): unknown {
  if (error === undefined || error === null) return error;
  try {
    if (error instanceof Error && depth < deepestCause) return show(error, depth);
    return typeof error === "string" ? withoutQuotations(error) : `not an error, but ${typeof error}`;
  } catch {
    return "an error that cannot be read";
  }
}

/** JSON lines. No secret, key or prompt ever goes into one. */
export const createLogger = (name: string, level: string, output: DestinationStream = pino.destination(1)): Logger =>
  pino(
    {
      name,
      level,
      base: { name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: (error: unknown) => err(error) },
    },
    output,
  );

/**
 * The log of a process, on standard output. Lines are written some together (a system call for each would cost a call a
 * tenth of its time), within a fifth of a second, and before the process exits.
 */
export function createProcessLogger(name: string, level: string): Logger {
  const output = pino.destination({ dest: 1, sync: false, minLength: 8_192, periodicFlush: 200 });
  process.once("exit", () => output.flushSync());
  const log = createLogger(name, level, output);
  // Node would print the error with everything that hangs on it.
  process.once("uncaughtException", (error) => {
    log.fatal({ err: error }, "uncaught");
    process.exit(1);
  });
  return log;
}
