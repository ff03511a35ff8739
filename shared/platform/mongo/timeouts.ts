/**
 * Bounds every operation of a MongoDB client. The driver (7.8) waits forever if it writes to a closed socket before it
 * learns of the close, as happens when a server is killed under load, and if a server responds only to heartbeats. Its
 * own `timeoutMS` has no effect (docs/adr/0030-mongodb-timeouts.md).
 */
import { mongo as driver } from "mongoose";
import { onTimeout, systemClock } from "../clock.ts";

const defaultMs = 4_000;
/** An operation may take this much longer than its `maxTimeMS`. */
const graceMs = 1_000;

/** An operation took too long. It may still be carried out: `operation` settles if the server responds after all. */
export class UnansweredError extends driver.MongoNetworkTimeoutError {
  readonly operation: Promise<unknown>;

  constructor(operation: Promise<unknown>, timeoutMs: number) {
    super(`MongoDB has not answered for ${timeoutMs} ms`);
    this.operation = operation;
  }
}

/** Rejects with `UnansweredError` after the timeout. */
export async function withMongoTimeout<T>(operation: Promise<T>, timeoutMs = defaultMs): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const cancel = onTimeout(systemClock, timeoutMs, () => reject(new UnansweredError(operation, timeoutMs)));
  try {
    return await Promise.race([operation, late]);
  } finally {
    cancel();
  }
}

/**
 * Bounds everything that a client creates from now on: databases, collections, cursors and sessions. An operation may
 * take four seconds, or slightly more than its `maxTimeMS`; the same applies to each batch of a cursor.
 */
export function limitTimes(client: driver.MongoClient): void {
  const db = client.db.bind(client);
  const startSession = client.startSession.bind(client);
  client.db = (...args) => limited(db(...args));
  client.startSession = (...args) => limitSession(startSession(...args));
}

type Method = (...args: readonly unknown[]) => unknown;

/** Limits the results of an object's methods, and the methods of these results. */
const limited = <T extends object>(target: T): T =>
  new Proxy(target, {
    get(_, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: readonly unknown[]) =>
        limitResult(Reflect.apply(value as Method, target, args), timeoutOf(args));
    },
  });

function limitResult(result: unknown, timeoutMs: number | undefined): unknown {
  if (result instanceof Promise) return withMongoTimeout(result, timeoutMs);
  if (result instanceof driver.AbstractCursor) return limitCursor(result, timeoutMs);
  return typeof result === "object" && result !== null ? limited(result) : result;
}

function timeoutOf(args: readonly unknown[]): number | undefined {
  const options = args.findLast((each) => typeof each === "object" && each !== null && "maxTimeMS" in each);
  return options && (options as { maxTimeMS: number }).maxTimeMS + graceMs;
}

function limitCursor<Cursor extends driver.AbstractCursor>(cursor: Cursor, timeoutMs: number | undefined): Cursor {
  const limit = <T>(operation: Promise<T>) => withMongoTimeout(operation, timeoutMs);
  const next = cursor.next.bind(cursor);
  const hasNext = cursor.hasNext.bind(cursor);
  const tryNext = cursor.tryNext.bind(cursor);
  const close = cursor.close.bind(cursor);
  const read = <T>(operation: Promise<T>): Promise<T> =>
    limit(operation).catch((error: unknown) => {
      // The driver would wait for the end of the cursor before it throws.
      if (error instanceof UnansweredError) close().catch(() => undefined);
      throw error;
    });
  return Object.assign(cursor, {
    next: () => (cursor.bufferedCount() > 0 ? next() : read(next())),
    hasNext: () => read(hasNext()),
    tryNext: () => read(tryNext()),
    close: () => limit(close()),
  });
}

function limitSession(session: driver.ClientSession): driver.ClientSession {
  const commit = session.commitTransaction.bind(session);
  const abort = session.abortTransaction.bind(session);
  return Object.assign(session, {
    commitTransaction: () => withMongoTimeout(commit()),
    // The server ends a transaction that cannot be aborted, and the driver also ignores errors of an abort.
    abortTransaction: (options?: object) =>
      withMongoTimeout(abort(options)).catch((error: unknown) => {
        if (!(error instanceof UnansweredError)) throw error;
      }),
  });
}
