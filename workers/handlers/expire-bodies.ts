import type { Files } from "#files";
import type { Logger } from "#platform/logger";

/** Removes request bodies that a crash left in storage. */
export async function expireBodies({ files, log }: { files: Files; log: Logger }): Promise<void> {
  const removed = await files.expireBodies();
  if (removed > 0) log.info({ removed }, "left request bodies were removed");
}
