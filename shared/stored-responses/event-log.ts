import { countEvents, firstWorkerEvent } from "#formats";
import { compress, decompress } from "#platform/compression";
import { createScriptRunner } from "#platform/redis-scripts";
import type { Uses } from "#platform/uses";
import { appendScript, closeScript } from "./event-log-script.ts";

/** Names the log of one response. */
export interface EventLogName {
  readonly account: string;
  readonly requestId: string;
}

/** An entry of a log. Numbers are those of events. */
export type EventLogEntry =
  | { readonly kind: "events"; readonly first: number; readonly last: number; readonly text: string }
  /** The response has ended. Its last event has this number. */
  | { readonly kind: "end"; readonly number: number }
  /** The log was larger than a limit, and is not kept. */
  | { readonly kind: "over" };

export type EventLogWriter = ReturnType<ReturnType<typeof createEventLogs>["open"]>;
export type EventLogs = ReturnType<typeof createEventLogs>;

const limits = { logBytes: 8 * 1024 * 1024, accountBytes: 64 * 1024 * 1024 };
/** How long a log stays in Redis after its end. */
const keptMs = 600_000;
const batchMs = 25;
const maxEntryUnits = 64 * 1024;
/** Text of this length is compressed until it is stored: a worker runs many calls. */
const chunkUnits = 256 * 1024;

const keysOf = ({ account, requestId }: EventLogName) =>
  [requestId, "sizes", "expiry"].map((name) => `events:{${account}}:${name}`);

/** Keeps the whole text of a log, compressed. */
function keepText() {
  const chunks: Promise<Buffer>[] = [];
  let recent = "";
  return {
    add(text: string): void {
      recent += text;
      if (recent.length < chunkUnits) return;
      chunks.push(compress(recent));
      recent = "";
    },
    async text(): Promise<string> {
      const parts = await Promise.all(chunks.map(async (chunk) => decompress(await chunk)));
      return parts.join("") + recent;
    },
  };
}

/**
 * The events of responses in the background, in one Redis Stream for each response, from which any API instance reads
 * them. `limit` may be lowered in tests.
 */
export function createEventLogs(deps: Uses<"redis" | "clock" | "log"> & { limits?: Partial<typeof limits> }) {
  const { redis, clock, log } = deps;
  const { logBytes, accountBytes } = { ...limits, ...deps.limits };
  const run = createScriptRunner(redis);

  /** `last`: the number of the last event. Omit it if only the log tells. */
  async function close(name: EventLogName, last?: number): Promise<void> {
    await run(closeScript, keysOf(name), [name.requestId, last === undefined ? "" : last, clock.now(), keptMs]);
  }

  return {
    close,

    /** Begins the log of a response that runs until `until` (unix milliseconds) at most. Its writer never waits for Redis. */
    open(name: EventLogName, until: number) {
      const keys = keysOf(name);
      const kept = keepText();
      let last = firstWorkerEvent - 1;
      let bytes = 0;
      let isOver = false;
      let unsent = "";
      /** The number of the first event that is not sent. */
      let next = last + 1;
      let sending: Promise<void> | undefined;
      let stopTimer: (() => void) | undefined;

      async function send(): Promise<void> {
        while (unsent !== "" && !isOver) {
          const text = unsent;
          const first = next;
          unsent = "";
          next = last + 1;
          const ttl = Math.max(0, until - clock.now()) + keptMs;
          const args = [name.requestId, `0-${last}`, first, text, clock.now(), ttl, logBytes, accountBytes];
          isOver ||= (await run(appendScript, keys, args)) === 0;
        }
      }

      function sendNow(): Promise<void> {
        stopTimer?.();
        stopTimer = undefined;
        sending ??= send()
          // Readers notice the gap. The events are stored at the end.
          .catch((error: Error) => log.warn({ err: error.message, ...name }, "events could not be written"))
          .finally(() => {
            sending = undefined;
          });
        return sending;
      }

      return {
        /** Appends whole events, the next ones by number. */
        append(text: string): void {
          if (isOver || bytes > logBytes) return;
          bytes += Buffer.byteLength(text);
          last += countEvents(text);
          unsent += text;
          kept.add(text);
          // The script refuses the text that is over the limit, and marks the log.
          if (bytes > logBytes || unsent.length > maxEntryUnits) void sendNow();
          else stopTimer ??= clock.after(batchMs, () => void sendNow());
        },
        /** The whole text, or undefined if it is over a limit. */
        text: async (): Promise<string | undefined> => (isOver || bytes > logBytes ? undefined : kept.text()),
        last: (): number => last,
        async close(): Promise<void> {
          await sendNow();
          if (unsent !== "") await sendNow();
          await close(name, last);
        },
      };
    },

    /** Reads entries with events after this number, at most `count`. */
    async read(name: EventLogName, after: number, count: number): Promise<readonly EventLogEntry[]> {
      const [key = ""] = keysOf(name);
      const entries = await redis.xrange(key, `(0-${after}`, "+", "COUNT", count);
      return entries.map(([id, [field, value = "", , text = ""]]) => {
        const number = Number(id.split("-")[1]);
        if (field === "first") return { kind: "events", first: Number(value), last: number, text };
        return field === "end" ? { kind: "end", number } : { kind: "over" };
      });
    },
  };
}
