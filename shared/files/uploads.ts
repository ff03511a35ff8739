import { createParts } from "./parts.ts";
import { createReceiving } from "./receiving.ts";
import { gone, statusAt } from "./records.ts";
import { createReferences } from "./references.ts";
import type { Uploads } from "./types.ts";
import type { UploadDeps } from "./upload-deps.ts";

export function createUploads(deps: UploadDeps): Uploads {
  const { records, lives, show, clock, log } = deps;

  return {
    ...createReceiving(deps),
    ...createParts(deps),
    ...createReferences(deps),
    async find(account, id) {
      const record = await records.own(account, id);
      const status = statusAt(record, clock.now());
      if (status === "expired" || status === "deleted") throw gone(record, status);
      return show(record);
    },
    async list(account, { limit, after }) {
      const found = await records.list(account, { limit, after });
      return { data: await Promise.all(found.slice(0, limit).map(show)), hasMore: found.length > limit };
    },
    async delete(account, id) {
      const record = await records.own(account, id);
      if (!(await records.remove(id))) {
        const standing = (await records.read(id)) ?? record;
        throw gone(record, statusAt(standing, clock.now()) === "deleted" ? "deleted" : "expired");
      }
      await lives.finish([id]).catch((error: unknown) => {
        log.warn({ err: error, upload: id }, "a deleted upload is left to expiry");
      });
    },
    async byRequest(account, requestId) {
      const record = await records.byRequest(account, requestId);
      return record ? show(record) : undefined;
    },
  };
}
