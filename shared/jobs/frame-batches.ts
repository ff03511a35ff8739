import type { ObserveWrite } from "#platform/group-commit";
import { limitUnits } from "./frames.ts";

/** A frame that waits to be written. */
export interface Unsent {
  /** A field of the stream entry: its name and its value. */
  readonly field: readonly [name: string, value: string];
  /** See `Reply.write`. */
  readonly mark: number;
}

/** The API instance is gone, or Redis refused a frame. */
export type Failure = "gone" | { readonly error: unknown };

/** One call's frames, in their order, and what becomes of them. */
export interface Outbox {
  readonly unsent: Unsent[];
  /** It is skipped until it is sent again. */
  isPaused(): boolean;
  written(frame: Unsent): void;
  /** A frame was not written, and no later one is. Called once for each frame of the write. */
  failed(reason: Failure): void;
}

const endOfTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** In turn one frame of each call, so that a large answer does not hold up the others. A longer frame goes by itself. */
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
    // The loop comes to it again, after the others.
    if (outbox.unsent.length > 0) outboxes.add(outbox);
  }
  return batch;
}

/**
 * Gathers what all calls have for an API instance at the end of a turn of the event loop into one entry of its reply stream.
 * One write to an instance is in progress at a time, so that the order of a call's frames holds with repeated writes; what
 * comes meanwhile joins the next. `write` resolves with false when the instance is gone.
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

  /** The call has something in `unsent`. */
  return (replyTo: string, outbox: Outbox): void => {
    const outboxes = waiting.get(replyTo);
    if (outboxes) return void outboxes.add(outbox);
    const first = new Set([outbox]);
    waiting.set(replyTo, first);
    void drain(replyTo, first);
  };
}
