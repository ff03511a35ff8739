import type { Files } from "#files";
import type { Logger } from "#platform/logger";

interface Deps {
  readonly files: Files;
  readonly log: Logger;
}

/** Deletes files that are past their 24 hours, and uploads that were never completed. */
export async function expireFiles({ files, log }: Deps): Promise<void> {
  const { expired, removed } = await files.expire();
  if (expired + removed > 0) log.info({ expired, removed }, "files expired");
}

/** Deletes request bodies that remain after a crash. */
export async function expireBodies({ files, log }: Deps): Promise<void> {
  const removed = await files.expireBodies();
  if (removed > 0) log.info({ removed }, "orphaned request bodies were removed");
}
