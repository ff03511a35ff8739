import type { Logger } from "#platform/logger";
import { uploadEnded } from "./errors.ts";
import { createParts } from "./parts.ts";
import { createReceiving } from "./receiving.ts";
import { statusAt } from "./records.ts";
import { createReferences } from "./references.ts";
import type { Uploads } from "./types.ts";

type Deps = Parameters<typeof createReceiving>[0] & Parameters<typeof createReferences>[0] & { readonly log: Logger };

export function createUploads(deps: Deps): Uploads {
  const { records, lifecycle, toUpload, clock, log } = deps;

  return {
    ...createReceiving(deps),
    ...createParts(deps),
    ...createReferences(deps),
    async find(account, id) {
      const record = await records.findOwned(account, id);
      const status = statusAt(record, clock.now());
      if (status === "expired" || status === "deleted") throw uploadEnded(record, status);
      return toUpload(record);
    },
    async list(account, { limit, after }) {
      const found = await records.list(account, { limit, after });
      return { data: await Promise.all(found.slice(0, limit).map(toUpload)), hasMore: found.length > limit };
    },
    async delete(account, id) {
      const record = await records.findOwned(account, id);
      if (!(await records.remove(id))) {
        const current = (await records.find(id)) ?? record;
        throw uploadEnded(record, statusAt(current, clock.now()) === "deleted" ? "deleted" : "expired");
      }
      await lifecycle.expiry.cleanUp([id]).catch((error: unknown) => {
        log.warn({ err: error, upload: id }, "a deleted upload will be cleaned up by expiry");
      });
    },
    async findByRequest(account, requestId) {
      const record = await records.findByRequest(account, requestId);
      return record ? toUpload(record) : undefined;
    },
  };
}
