import type { Files } from "#files";
import type { Logger } from "#platform/logger";

/** Ends what is past its 24 hours, or was never completed. */
export async function expireFiles({ files, log }: { files: Files; log: Logger }): Promise<void> {
  const { expired, removed } = await files.expire();
  if (expired + removed > 0) log.info({ expired, removed }, "files expired");
}
