import { type DestinationStream, type Logger as PinoLogger, pino } from "pino";
import { z } from "zod";

export type Logger = PinoLogger;

/**
 * The logged properties of an error. Other properties may contain data sent by a caller: ioredis attaches the refused
 * command to its errors, MongoDB the refused documents, the AWS SDK the request.
 */
const loggedProperties = [
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

const maxMessageLength = 500;
const maxErrors = 5;
const maxCauseDepth = 5;

/** Redis, MongoDB and V8 quote rejected data: arguments of a command, a key or document, text that is not JSON. */
const quotations: readonly (readonly [quotation: RegExp, replacement: string])[] = [
  [/,? with args beginning with:[\s\S]*/, ""],
  [/^([^"]*?)(\.\.\.)?"[\s\S]*"(\.\.\.)? is not valid JSON/, "$1the text is not valid JSON"],
  [/(dup key|First element|in element|in document|for field|Document):? ?[{"'][\s\S]*/, "$1"],
];

function withoutQuotations(message: string): string {
  const plain = quotations.reduce((text, [quotation, replacement]) => text.replace(quotation, replacement), message);
  return plain.length > maxMessageLength ? `${plain.slice(0, maxMessageLength)}...` : plain;
}

/** zod may quote the input and names of unknown fields, so only the path and code of each issue are logged. */
function messageOf(error: Error): string {
  if (!(error instanceof z.ZodError)) return withoutQuotations(String(error.message));
  const issues = error.issues.map(({ code, path }) => `${code} at ${path.join(".") || "the root"}`);
  return withoutQuotations(issues.join(", "));
}

function framesOf({ stack = "", message }: Error): string {
  const frames = stack
    .replace(message, () => "")
    .split("\n")
    .slice(1);
  return frames.filter((line) => /^\s+at /.test(line)).join("\n");
}

type LoggedError = Readonly<Record<"type" | "message" | "stack", string> & Record<string, unknown>>;

function serialize(error: Error, depth = 0): LoggedError {
  const type = error.name === "Error" ? error.constructor.name : String(error.name);
  const plain = messageOf(error);
  const cause = error.cause instanceof Error && depth < maxCauseDepth ? serialize(error.cause, depth + 1) : undefined;
  const parts: unknown = Reflect.get(error, "errors");
  const errors = Array.isArray(parts) ? parts.filter((part) => part instanceof Error).slice(0, maxErrors) : [];
  const properties: [name: string, value: string | number][] = [];
  for (const name of loggedProperties) {
    const value: unknown = Reflect.get(error, name);
    if (typeof value === "string") properties.push([name, withoutQuotations(value)]);
    if (typeof value === "number") properties.push([name, value]);
  }
  return {
    type,
    message: cause ? `${plain}: ${cause.message}` : plain,
    stack: `${type}: ${plain}\n${framesOf(error)}${cause ? `\ncaused by: ${cause.stack}` : ""}`,
    ...Object.fromEntries(properties),
    ...(errors.length > 0 && { errors: errors.map((each) => serializeAny(each, depth + 1)) }),
  };
}

/** Returns the logged form of an error or of its message. Never throws, because logging must not fail a call. */
function serializeAny(error: unknown, depth = 0): unknown {
  if (error === undefined || error === null) return error;
  try {
    if (error instanceof Error && depth < maxCauseDepth) return serialize(error, depth);
    return typeof error === "string" ? withoutQuotations(error) : `not an error: ${typeof error}`;
  } catch {
    return "an unreadable error";
  }
}

/** Writes JSON lines, which never contain a secret, key or prompt. */
export const createLogger = (name: string, level: string, output: DestinationStream = pino.destination(1)): Logger =>
  pino(
    {
      name,
      level,
      base: { name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: (error: unknown) => serializeAny(error) },
    },
    output,
  );

/**
 * Creates the log of a process, on standard output. Lines are buffered, because a system call for each costs a tenth of
 * a call's CPU time. The buffer is flushed every 200 ms and when the process exits.
 */
export function createProcessLogger(name: string, level: string): Logger {
  const output = pino.destination({ dest: 1, sync: false, minLength: 8_192, periodicFlush: 200 });
  process.once("exit", () => output.flushSync());
  const log = createLogger(name, level, output);
  // Node would print the error with all its properties.
  process.once("uncaughtException", (error) => {
    log.fatal({ err: error }, "uncaught exception");
    process.exit(1);
  });
  return log;
}
