import type { ObserveWrite } from "#platform/concurrency/group-commit";
import { limitUnits } from "./frames.ts";

/** A frame that waits to be written. */
export interface Unsent {
  /** A field of the stream entry: its name and its value. */
  readonly field: readonly [name: string, value: string];
  /** See `Reply.write`. */
  readonly mark: number;
}

/** The API instance is dead (`gone`), or Redis refused a frame. */
export type Failure = "gone" | { readonly error: unknown };

/** The ordered frames of one call, and the callbacks for their outcome. */
export interface Outbox {
  readonly unsent: Unsent[];
  /** A paused outbox is skipped until it is sent again. */
  isPaused(): boolean;
  written(frame: Unsent): void;
  /** Called once for each frame of a failed write. Neither the frame nor any later one is written. */
  failed(reason: Failure): void;
}

const endOfTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Takes one frame of each call in turn, so that a large response does not delay others. Longer frames go alone. */
function takeBatch(outboxes: Set<Outbox>): { outbox: Outbox; frame: Unsent }[] {
  const batch: { outbox: Outbox; frame: Unsent }[] = [];
  let units = 0;
  for (const outbox of outboxes) {
    if (outbox.isPaused()) {
      outboxes.delete(outbox);
      continue;
    }
    const frame = outbox.unsent[0] as Unsent;
    units += frame.field[0].length + frame.field[1].length;
    if (units > limitUnits && batch.length > 0) break;
    batch.push({ outbox, frame });
    outbox.unsent.shift();
    outboxes.delete(outbox);
    // Re-added at the end of the set, so that the loop returns to it after the others.
    if (outbox.unsent.length > 0) outboxes.add(outbox);
  }
  return batch;
}

/**
 * Combines the frames of all calls for an API instance at the end of a turn of the event loop into one entry of its
 * reply stream. Only one write per instance is in progress at a time, so that a call's frames stay in order across
 * retries; frames that arrive during a write join the next one. `write` resolves to false when the instance is dead.
 */
export function createFrameBatches(
  write: (replyTo: string, fields: readonly string[]) => Promise<boolean>,
  observe?: ObserveWrite,
) {
  const waiting = new Map<string, Set<Outbox>>();

  async function drain(replyTo: string, outboxes: Set<Outbox>): Promise<void> {
    while (outboxes.size > 0) {
      await endOfTurn();
      const batch = takeBatch(outboxes);
      if (batch.length === 0) continue;
      const fail = (reason: Failure) => {
        for (const { outbox } of batch) {
          outboxes.delete(outbox);
          outbox.failed(reason);
        }
      };
      const startedAt = performance.now();
      const fields = batch.flatMap(({ frame }) => frame.field);
      try {
        if (await write(replyTo, fields)) for (const { outbox, frame } of batch) outbox.written(frame);
        else fail("gone");
      } catch (error) {
        fail({ error });
      }
      observe?.(batch.length, (performance.now() - startedAt) / 1_000);
    }
    waiting.delete(replyTo);
  }

  /** The outbox must have something in `unsent`. */
  return (replyTo: string, outbox: Outbox): void => {
    const outboxes = waiting.get(replyTo);
    if (outboxes) return void outboxes.add(outbox);
    const first = new Set([outbox]);
    waiting.set(replyTo, first);
    void drain(replyTo, first);
  };
}
