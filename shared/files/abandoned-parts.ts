import type { Clock } from "#platform/clock";
import type { Storage } from "./storage.ts";
import { uploadKey } from "./upload-view.ts";

/** Longer than any upload is pending. */
const dayMs = 24 * 3_600_000;
const prefix = uploadKey("");

/** Ends multipart uploads in storage that nobody can complete any more, a page a round: all come by in time. */
export function createAbandonedParts({ storage, clock }: { storage: Storage; clock: Clock }) {
  /** Where the last round ended. */
  let mark: Awaited<ReturnType<Storage["multipart"]["page"]>>["next"];

  return async function endForgotten(): Promise<void> {
    const { uploads, next } = await storage.multipart.page(prefix, mark);
    mark = next;
    const old = new Set(uploads.filter(({ at }) => at < clock.now() - dayMs).map(({ key }) => key));
    for (const key of old) await storage.multipart.abort(key);
  };
}
