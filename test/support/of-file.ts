import { beforeAll, beforeEach, onTestFinished } from "vitest";

/** Registers a cleanup: in `ofFile` after the last test of the file, in the order of registration. */
export type OnEnd = (stop: () => Promise<unknown>) => void;

/** Registers a cleanup after the running test. */
export const afterTest: OnEnd = (stop) => onTestFinished(async () => void (await stop()));

/** A value shared by all tests of a file, started before the first of them. It can be read only inside a test. */
export function ofFile<Shared extends object>(
  start: (onEnd: OnEnd) => Promise<Shared>,
  reset: (shared: Shared) => void,
): Shared {
  let shared: Shared | undefined;
  beforeAll(async () => {
    const stops: (() => Promise<unknown>)[] = [];
    shared = await start((stop) => stops.push(stop));
    return async () => {
      for (const stop of stops) await stop();
    };
  });
  beforeEach(() => {
    if (shared) reset(shared);
  });
  return new Proxy({} as Shared, {
    get(_, name) {
      if (!shared) throw new Error("only inside a test");
      return Reflect.get(shared, name) as unknown;
    },
  });
}
