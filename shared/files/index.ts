/**
 * Objects in S3: uploads, generated files, files for batches, and call bodies and responses that are too large for a job
 * or a MongoDB document. Owns the collections `uploads`, `files`, `generations`, `batchFiles` and `batchFileUsage` and the
 * bucket's prefixes `uploads/`, `files/`, `batch/`, `bodies/`, `answers/` and `cached/`. Sources: docs/api/inference.md ("Upload"),
 * docs/api/wire-details.md ("Uploads and long calls"), docs/api/batch-files.md.
 *
 * An upload is pending -> active -> expired | deleted, or pending -> expired | deleted. The order is: hold the cost,
 * insert a pending record, stream to storage, detect the type from the bytes, capture the charge, activate, settle the
 * charge. The record precedes the object, so every object in storage is known; an upload whose id no caller received
 * leaves no trace.
 *
 * Records of uploads and generated files are stored forever, so that they return 410 rather than 404 after 24 hours.
 *
 * A file for batches (`batchFiles`) is the input that a customer uploads, or the output of a batch. Its content is a list
 * of parts, objects that a reader gets one after the other, so that the parts of an output are never joined. It belongs
 * to an account, lives for 30 days unless it says otherwise, and its record is deleted a day after it has expired.
 *
 * Sizes are in bytes, times in unix milliseconds, money in nano-USD. Throws the service errors that each function
 * names, and 503 (`noCapacity`) while storage or MongoDB is unavailable; `putBody`, `getBody`, `putAnswer` and
 * `getAnswer` reject with the error of the S3 client.
 */
import type { Money } from "#money";
import { isPublicHost } from "#platform/addresses";
import { createBackground } from "#platform/concurrency/background";
import type { Config } from "#platform/config";
import { connectS3, type S3Config } from "#platform/s3";
import type { Uses } from "#platform/uses";
import { createBatchFiles } from "./batch-files.ts";
import { createBodies } from "./bodies.ts";
import { prepareBucket } from "./bucket.ts";
import { createMultipartCleanup } from "./expiry.ts";
import { createGenerated } from "./generated.ts";
import { createLifecycle, storagePrice } from "./lifecycle.ts";
import { createRecords, uploadKey } from "./records.ts";
import { createStorage } from "./storage.ts";
import { createTemporary } from "./temporary.ts";
import { createLinks, createToUpload } from "./upload-view.ts";
import { createUploads } from "./uploads.ts";

export { type BatchFile, batchFilePurposes, type FilePart, type ListedFile } from "./batch-files.ts";
export type { ProviderJob } from "./generated.ts";
export { detect, type MediaType, unsupportedFile } from "./media-types.ts";
export { filesSchema } from "./migrations.ts";
export { fileLifetimeMs } from "./records.ts";
export type { FileSizes, TemporaryFile } from "./temporary.ts";
export type { Upload } from "./upload-view.ts";

export type Files = ReturnType<typeof createFiles>;
export type GeneratedFile = Exclude<Awaited<ReturnType<Files["generated"]["find"]>>, "expired" | undefined>;

export function createFiles(
  deps: Uses<"mongo" | "clock" | "log"> & {
    config: S3Config & Pick<Config, "S3_BUCKET" | "UPLOAD_USD_PER_GB_DAY" | "BATCH_FILE_QUOTA_BYTES">;
    money: Money;
  },
) {
  const { config, mongo, money, clock, log } = deps;
  const background = createBackground({ log });
  const s3 = connectS3(config, "commands");
  const bucket = config.S3_BUCKET;
  const storage = createStorage({ commands: s3, transfers: connectS3(config, "transfers"), bucket, clock, log });
  const publicEndpoint = config.S3_PUBLIC_ENDPOINT;
  const links = createLinks({
    s3: connectS3(config, "links"),
    endpoint: publicEndpoint ?? config.S3_ENDPOINT,
    bucket,
  });
  const providersReachLinks = publicEndpoint !== undefined && isPublicHost(new URL(publicEndpoint).hostname);

  const records = createRecords({ mongo, clock });
  const price = storagePrice(config.UPLOAD_USD_PER_GB_DAY);
  const lifecycle = createLifecycle({ records, money, price, storage, background, clock, log });
  const toUpload = createToUpload({ links, clock });
  const { generated, ...files } = createGenerated({ mongo, storage, clock, log });
  const quotaBytes = config.BATCH_FILE_QUOTA_BYTES;
  const { batchFiles, expiry: batchExpiry } = createBatchFiles({ mongo, storage, quotaBytes, clock, log });
  const expiries = [lifecycle.expiry, files.expiry, batchExpiry];
  const abortAbandoned = createMultipartCleanup({ storage, clock, prefix: uploadKey("") });

  return {
    /** Sets lifecycle rules and CORS of the bucket where the server supports them. Logs failures. Never throws. */
    prepareBucket: () => prepareBucket({ s3, bucket, log }),
    ...createBodies({ s3, bucket, clock }),
    uploads: createUploads({ records, storage, lifecycle, links, providersReachLinks, toUpload, clock, log }),
    temporary: createTemporary({ records, storage, lifecycle, links, toUpload, clock }),
    generated,
    batchFiles,
    /**
     * Resolves once no upload is being ended in the background, within two minutes. MongoDB must stay open until then.
     */
    settled: () => background.settled(),
    /** Counts uploads by state for the metrics, and finds the time at which the oldest due file became due. */
    async counts() {
      const [uploads, ...due] = await Promise.all([records.count(), ...expiries.map((each) => each.dueSince())]);
      const since = due.flatMap((at) => at ?? []);
      return { uploads, dueSince: since.length > 0 ? Math.min(...since) : undefined };
    },
    /** Runs expiry once, for a bounded time. Safe in many workers at once. */
    async expire() {
      // All run to completion even if one fails.
      const runs = await Promise.allSettled([abortAbandoned(), ...expiries.map((each) => each.run())]);
      const failed = runs.find((run) => run.status === "rejected");
      if (failed) throw failed.reason;
      const counts = runs.flatMap((run) => (run.status === "fulfilled" && run.value ? [run.value] : []));
      return {
        expired: counts.reduce((sum, { expired }) => sum + expired, 0),
        removed: counts.reduce((sum, { removed }) => sum + removed, 0),
      };
    },
  };
}
