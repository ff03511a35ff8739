import type { Clock } from "#platform/clock";
import { isHandedOver } from "../../running.ts";
import { type Generated, type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { finished, within } from "./polling.ts";

const cancelMs = 5_000;
const longestId = 1_000;

/** How one kind of job is begun, looked at, fetched and taken back at its provider. */
export interface JobProtocol {
  submit(): Promise<JsonObject>;
  idOf(submitted: JsonObject): unknown;
  look(id: string, signal: AbortSignal): Promise<JsonObject>;
  /** Well or not; undefined for a job in a state that is unknown. */
  isOver(job: JsonObject): boolean | undefined;
  /** What a job made that is over. Throws if it failed. */
  fetch(job: JsonObject, id: string): Promise<Generated>;
  /** As far as the provider lets one. Nobody waits for it. */
  cancel(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Cancels a job in this state if its provider documents that it bills nothing then, and says whether it did. Absent
   * where no provider says so.
   */
  withdraw?(job: JsonObject, id: string, signal: AbortSignal): Promise<boolean>;
}

/**
 * Submitted once, then asked for until it is done, by another delivery of the call if need be. What nobody will ask for any
 * more is taken back. A job whose caller has disconnected is withdrawn while that is free; else it goes on to its end.
 */
export async function runJob(clock: Clock, call: GenerationCall, jobs: JobProtocol): Promise<Generated> {
  const submitted = call.job === undefined ? await jobs.submit() : undefined;
  // A job takes minutes, and what it was asked with is sent.
  for (const file of call.uploads.values()) file.release();
  const id = call.job ?? checkedId(jobs.idOf(submitted ?? {}));
  let isWithdrawn = false;
  const withdraw = async (job: JsonObject) => {
    try {
      const withdrawn = within(clock, cancelMs, call.signal, async (signal) => jobs.withdraw?.(job, id, signal));
      isWithdrawn = (await withdrawn) ?? false;
    } catch (error) {
      call.signal.throwIfAborted();
      call.log.debug({ err: (error as Error).message }, "a job that nobody waits for could not be withdrawn");
    }
    return isWithdrawn;
  };
  try {
    if (submitted) await call.remember(id);
    const job = await finished(clock, call, submitted, {
      look: (signal) => jobs.look(id, signal),
      isOver: (job) => jobs.isOver(job),
      withdraw,
    });
    return await jobs.fetch(job, id);
  } catch (error) {
    if (!isWithdrawn && !isHandedOver(call.signal))
      within(clock, cancelMs, undefined, (signal) => jobs.cancel(id, signal)).catch((failure: Error) =>
        call.log.debug({ err: failure.message }, "a job that nobody waits for stays at the provider"),
      );
    throw error;
  }
}

function checkedId(id: unknown): string {
  if (typeof id === "string" && id !== "" && id.length <= longestId) return id;
  throw new UpstreamFailure("unavailable", "a job without an id");
}
