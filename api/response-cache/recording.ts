import { type Format, toTemplate } from "#formats";
import type { Outcome } from "#jobs";
import type { ByteBudget } from "#platform/byte-budget";
import type { Background } from "#platform/concurrency/background";
import type { Uses } from "#platform/uses";
import { type CachedAnswer, type Flight, lockMs, maxAnswerBytes, type ResponseCache } from "#response-cache";
import type { Recording } from "../open-calls/index.ts";

/** A call to record, and how long its answer is kept. */
export interface RecordedCall {
  readonly flight: Flight;
  readonly account: string;
  readonly format: Format | undefined;
  readonly stream: boolean;
  readonly ttlMs: number;
  /** Unix milliseconds: files that the answer refers to may be gone then. */
  readonly notAfter: number;
}

export interface CallRecording extends Recording {
  /** The model that was asked; another one may answer (`x-xm-model`). */
  model: string;
  /** The answer goes to those who wait for it, but is not stored. */
  isTransient: boolean;
}

interface RecorderDeps extends Uses<"clock" | "log"> {
  readonly cache: ResponseCache;
  /** Budget for the text of answers until they are stored. */
  readonly memory: ByteBudget;
  readonly background: Background;
}

const batchMs = 25;
/** Longer text is sent at once. */
const maxEntryUnits = 64 * 1024;
/** Followers of a longer stream are disconnected. */
const maxLogUnits = 4 * maxAnswerBytes;
/** In UTF-16 units: a string takes up to 2 bytes for each. */
const bytesPerUnit = 2;

/** Writes the answers of calls to the cache: at their end, and for followers as they come. Never delays a call. */
export function createRecorder({ cache, memory, background, clock, log }: RecorderDeps) {
  /** The followers of each, when it was last renewed. */
  const leaders = new Map<Flight, number>();
  const warn = (error: Error) => log.warn({ err: error.message }, "the response cache could not be written");
  async function renew(): Promise<void> {
    const flights = [...leaders.keys()];
    const followers = await cache.renew(flights);
    for (const [at, flight] of flights.entries()) if (leaders.has(flight)) leaders.set(flight, followers[at] ?? 0);
  }
  const stopRenewing = clock.every(lockMs / 5, () => {
    if (leaders.size > 0) renew().catch(warn);
  });

  function record(call: RecordedCall): CallRecording {
    const { flight, account, format, stream, ttlMs, notAfter } = call;
    const share = memory.share(account);
    const template = toTemplate(format);
    let headers: Readonly<Record<string, string>> = {};
    /** Undefined if the text is too long to be stored. */
    let text: string | undefined = "";
    let logUnits = 0;
    let unsent = "";
    /** The number of the log's last entry. */
    let number = 0;
    let isLost = false;
    let hasEnded = false;
    let stopTimer: (() => void) | undefined;
    let sending = Promise.resolve();
    if (flight.role === "leader") leaders.set(flight, 0);

    /** Nobody can follow from here on. The flight is not renewed, so that those who wait go on before the call has ended. */
    function lose(): void {
      isLost = true;
      leaders.delete(flight);
    }

    const logHeaders = () => ({ ...headers, "x-xm-cache-ttl": String(Math.ceil(ttlMs / 1_000)) });

    function send(): void {
      stopTimer?.();
      stopTimer = undefined;
      const events = unsent;
      unsent = "";
      if (flight.role !== "leader" || isLost || events === "") return;
      logUnits += events.length;
      if (logUnits > maxLogUnits) lose();
      const next = ++number;
      sending = sending
        .then(async () => {
          if (!isLost) await cache.append(flight, next, events, next === 1 ? logHeaders() : undefined);
        })
        .catch((error: Error) => {
          lose();
          log.warn({ err: error.message, requestId: flight.requestId }, "a running call cannot be followed any more");
        });
    }

    function keep(part: string): void {
      const kept = (text?.length ?? 0) + part.length;
      const isKept = text !== undefined && kept <= maxAnswerBytes && share.resize(bytesPerUnit * kept);
      text = isKept ? text + part : undefined;
      if (!isKept) share.resize(0);
    }

    function answer(outcome: Outcome | undefined): CachedAnswer | undefined {
      if (!text || recording.isTransient || template.isWithheld() || outcome?.isEmpty) return undefined;
      const { requestId } = flight;
      const model = headers["x-xm-model"] ?? recording.model;
      const costNanoUsd = BigInt(outcome?.cost ?? "0");
      const storedAt = clock.now();
      const expiresAt = Math.min(storedAt + ttlMs, notAfter);
      return { text, requestId, model, headers, costNanoUsd, storedAt, expiresAt };
    }

    function finish(state: "end" | "failed", stored?: CachedAnswer): void {
      hasEnded = true;
      send();
      leaders.delete(flight);
      text = undefined;
      if (flight.role === "alone" && !stored) return share.close();
      const ending = sending.then(() => cache.end(flight, number, isLost ? "failed" : state, stored)).catch(warn);
      background.run(
        "an answer could not be stored",
        ending.finally(() => share.close()),
      );
    }

    const recording: CallRecording = {
      model: "",
      isTransient: false,
      announce(announced) {
        headers = { ...headers, ...announced };
      },
      append(events) {
        const converted = template.convert(events);
        keep(converted);
        if (flight.role !== "leader") return;
        unsent += converted;
        if (unsent.length >= maxEntryUnits) send();
        else stopTimer ??= clock.after(batchMs, send);
      },
      complete(parts, outcome) {
        if (hasEnded) return;
        if (stream) for (const part of parts) recording.append(part);
        else keep(template.convert(parts.join("")));
        finish("end", answer(outcome));
      },
      end() {
        if (!hasEnded) finish("failed");
      },
      isFollowed: () => (leaders.get(flight) ?? 0) > 0,
      async isAwaited() {
        if (flight.role !== "leader" || hasEnded) return false;
        return cache.isFollowed(flight).catch(() => false);
      },
    };
    return recording;
  }

  return { record, stop: stopRenewing };
}
