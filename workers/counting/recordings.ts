import { setImmediate } from "node:timers/promises";
import { noCapacity } from "#errors";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { createLimitedThread } from "../limited-thread.ts";

const options = {
  name: "recordings",
  url: new URL("./recordings-thread.ts", import.meta.url),
  // 100 MB of MP3 take a tenth of this.
  limitMs: 1_000,
  waitLimitMs: 15_000,
  maxWaiting: 256,
  maxOfAccount: 128,
};

export interface RecordingTask {
  /** Shared memory, so that posting it to the thread does not copy it. */
  readonly bytes: Uint8Array;
  readonly mime: string;
}

export interface Measurement {
  readonly seconds: number | undefined;
}

export interface Recording {
  readonly bytes: Buffer;
  readonly mime: string;
  readonly account: string;
  /** The id of an upload. */
  readonly id?: string | undefined;
}

const partBytes = 4 * 1024 * 1024;

/** Copying 100 MB at once would block the event loop. */
async function toShared(bytes: Buffer): Promise<Uint8Array> {
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  for (let at = 0; at < bytes.length; at += partBytes) {
    if (at > 0) await setImmediate();
    shared.set(bytes.subarray(at, at + partBytes), at);
  }
  return shared;
}

/** Bounds the memory for uploads that took too long. */
const maxRemembered = 10_000;

export function createRecordings(deps: { clock: Clock; log: Logger }) {
  const thread = createLimitedThread<RecordingTask, Measurement>(options, deps);
  /**
   * Uploads that took too long. They are not measured again: each attempt blocks the thread for a second and costs the
   * caller nothing.
   */
  const tooSlow = new Set<string>();

  function remember(id: string): void {
    const [oldest] = tooSlow;
    if (tooSlow.size >= maxRemembered && oldest !== undefined) tooSlow.delete(oldest);
    tooSlow.add(id);
  }

  return {
    /**
     * The length in seconds. Returns undefined if it is unknown or cannot be determined in time. Throws 503 if too many
     * recordings wait.
     */
    async secondsOf({ bytes, mime, account, id }: Recording, signal: AbortSignal): Promise<number | undefined> {
      if (id !== undefined && tooSlow.has(id)) return undefined;
      const task = async () => ({ bytes: await toShared(bytes), mime });
      const outcome = await thread.run(task, account, signal);
      if (outcome === "busy") throw noCapacity("Too many recordings are being measured; nothing was charged.", 5);
      if (outcome !== "ended") return outcome.result.seconds;
      if (id !== undefined) remember(id);
      return undefined;
    },
    close: () => thread.close(),
  };
}
