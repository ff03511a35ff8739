/**
 * What is kept in object storage: uploads, generated files, and the text of calls that is too large to ride in a job or a
 * record. Owns the collections `uploads`, `files` and `generations` and the prefixes `uploads/`, `files/`, `bodies/` and
 * `answers/` of the bucket. Sources: the specification, parts 2 ("Upload"), 3, 4 (notes 2 and 3), 7 and 8; wire-details,
 * "Uploads and long calls"; ARCHITECTURE, sections 5 and 7.
 *
 * An upload is pending -> active -> expired | deleted, or pending -> expired | deleted: each a compare-and-set of its record
 * in MongoDB, exact where it is read, whenever expiry comes by. Its way: hold the cost -> pending record -> bytes to
 * storage -> type from the bytes -> decide the charge -> active -> apply. So nothing is active without a charge, and a charge
 * without an active file is finished by the next completion or refunded by expiry. The record comes before the object: what
 * is in storage is known here, and what nobody was told of leaves no trace.
 *
 * Records of uploads and files stay for good: 410, not 404, after their 24 hours.
 *
 * Sizes in bytes, times in unix milliseconds, money in nano-USD. Throws the service errors that each function names; 503
 * (`noCapacity`) while storage or MongoDB is away. `putBody`, `getBody`, `putAnswer`, `getAnswer` reject with storage's own error.
 */
import type { Money } from "#money";
import { isPublicHost } from "#platform/addresses";
import type { Clock } from "#platform/clock";
import type { Config } from "#platform/config";
import type { Logger } from "#platform/logger";
import type { Mongo } from "#platform/mongo";
import { connectS3, type S3Config } from "#platform/s3";
import { createAbandonedParts } from "./abandoned-parts.ts";
import { createBodies } from "./bodies.ts";
import { prepareBucket } from "./bucket.ts";
import { createCharges } from "./charges.ts";
import { createExpiry } from "./expiry.ts";
import { createGenerated } from "./generated.ts";
import { createLinks } from "./links.ts";
import { createOutcome } from "./outcome.ts";
import { storagePrice } from "./price.ts";
import { createGenerations } from "./provider-jobs.ts";
import { createRecords } from "./records.ts";
import { createStorage } from "./storage.ts";
import type { Expired, Files } from "./types.ts";
import { createShow, uploadKey } from "./upload-view.ts";
import { createUploads } from "./uploads.ts";

export type {
  Expired,
  Files,
  GeneratedFile,
  GeneratedFiles,
  InputFile,
  Kind,
  Parts,
  ProviderJob,
  Receiving,
  Upload,
  UploadAsk,
  UploadStatus,
  Uploads,
} from "./types.ts";

export function createFiles(deps: {
  config: S3Config & Pick<Config, "S3_BUCKET" | "UPLOAD_USD_PER_GB_DAY">;
  mongo: Mongo;
  money: Money;
  clock: Clock;
  log: Logger;
}): Files {
  const { config, mongo, money, clock, log } = deps;
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
  const charges = createCharges({ money, price: storagePrice(config.UPLOAD_USD_PER_GB_DAY), clock });
  const outcome = createOutcome({ records, charges, storage, clock, log });
  const { settle } = outcome;
  const lives = createExpiry({ collection: records.lives, keyOf: uploadKey, settle, storage, clock, log });
  const show = createShow({ links, clock });
  const generated = createGenerated({ mongo, storage, clock, log });
  const generations = createGenerations({ mongo, clock });
  const endForgotten = createAbandonedParts({ storage, clock });

  async function expire(): Promise<Expired> {
    // One that fails does not keep the others from their work.
    const [uploads, files, forgotten] = await Promise.allSettled([lives.round(), generated.round(), endForgotten()]);
    if (forgotten.status === "rejected") throw forgotten.reason;
    if (uploads.status === "rejected") throw uploads.reason;
    if (files.status === "rejected") throw files.reason;
    return {
      expired: uploads.value.expired + files.value.expired,
      removed: uploads.value.removed + files.value.removed,
    };
  }

  return {
    async prepare() {
      await Promise.all([records.prepare(), generated.prepare(), generations.prepare()]);
    },
    prepareBucket: () => prepareBucket({ s3, bucket, log }),
    ...createBodies({ s3, bucket, clock }),
    uploads: createUploads({ records, charges, storage, outcome, lives, links, providersReachLinks, show, clock, log }),
    generated: { ...generated, ...generations },
    expire,
  };
}
