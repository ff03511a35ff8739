import { type DestinationStream, type Logger as PinoLogger, pino } from "pino";

export type Logger = PinoLogger;

/** pino writes on an error and on what hangs on it. Some of that is frozen, and no line is worth the call that writes it. */
function err(error: unknown): unknown {
  try {
    return pino.stdSerializers.err(error as Error);
  } catch {
    return error instanceof Error ? { type: error.name, message: error.message, stack: error.stack } : String(error);
  }
}

/** JSON lines. No secret, key or prompt ever goes into one. */
export const createLogger = (name: string, level: string, output: DestinationStream = pino.destination(1)): Logger =>
  pino(
    { name, level, base: { name, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err } },
    output,
  );

/**
 * The log of a process, on standard output. Lines are written some together (a system call for each would cost a call a
 * tenth of its time), within a fifth of a second, and before the process exits.
 */
export function createProcessLogger(name: string, level: string): Logger {
  const output = pino.destination({ dest: 1, sync: false, minLength: 8_192, periodicFlush: 200 });
  process.once("exit", () => output.flushSync());
  return createLogger(name, level, output);
}
