import {
  type CORSRule,
  GetBucketCorsCommand,
  GetBucketLifecycleConfigurationCommand,
  type LifecycleRule,
  PutBucketCorsCommand,
  PutBucketLifecycleConfigurationCommand,
  type S3Client,
  type TransitionDefaultMinimumObjectSize,
} from "@aws-sdk/client-s3";
import type { Logger } from "#platform/logger";
import { isNamed } from "./unavailable.ts";

/** Expiry removes everything sooner: what is older than that was forgotten. */
const days = 2;
const ownRule = "inference-service";

const lifecycleRules: readonly LifecycleRule[] = ["uploads/", "files/", "bodies/", "answers/"].map((prefix) => ({
  ID: `${ownRule}-${prefix.slice(0, -1)}`,
  Status: "Enabled",
  Filter: { Prefix: prefix },
  Expiration: { Days: days },
  AbortIncompleteMultipartUpload: { DaysAfterInitiation: days },
}));

/** Browsers send parts, and need their ETag to complete an upload by the usual libraries. */
const corsRules: readonly CORSRule[] = [
  {
    ID: ownRule,
    AllowedOrigins: ["*"],
    AllowedMethods: ["GET", "HEAD", "PUT"],
    AllowedHeaders: ["*"],
    ExposeHeaders: ["ETag"],
    MaxAgeSeconds: 3_600,
  },
];

/** A second net under expiry, and browsers' access. The rules of others stay as they are. */
export async function prepareBucket(deps: { s3: S3Client; bucket: string; log: Logger }): Promise<void> {
  const { s3, bucket: Bucket, log } = deps;

  async function tryTo(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { name, message } = error as Error;
      log.info({ bucket: Bucket, err: `${name}: ${message}` }, `${what} of the bucket cannot be set here`);
    }
  }

  await tryTo("lifecycle rules", async () => {
    const { Rules = [], TransitionDefaultMinimumObjectSize } = await s3
      .send(new GetBucketLifecycleConfigurationCommand({ Bucket }))
      .catch(none("NoSuchLifecycleConfiguration"));
    const merged = mergeById(Rules, lifecycleRules);
    if (!merged) return;
    const LifecycleConfiguration = { Rules: merged };
    await s3.send(
      new PutBucketLifecycleConfigurationCommand({
        Bucket,
        LifecycleConfiguration,
        TransitionDefaultMinimumObjectSize,
      }),
    );
  });

  await tryTo("CORS", async () => {
    const { CORSRules = [] } = await s3
      .send(new GetBucketCorsCommand({ Bucket }))
      .catch(none("NoSuchCORSConfiguration"));
    const merged = mergeById(CORSRules, corsRules);
    if (merged) await s3.send(new PutBucketCorsCommand({ Bucket, CORSConfiguration: { CORSRules: merged } }));
  });
}

/** Undefined: ours are there already, as they should be. */
export function mergeById<Rule extends { ID?: string | undefined }>(
  there: readonly Rule[],
  ours: readonly Rule[],
): Rule[] | undefined {
  const same = ours.every((rule) => there.some((each) => contains(each, rule)));
  if (same) return undefined;
  const ids = new Set(ours.map(({ ID }) => ID));
  return [...there.filter(({ ID }) => !ids.has(ID)), ...ours];
}

/** Servers may add fields of their own. */
function contains(there: unknown, wanted: unknown): boolean {
  if (typeof wanted !== "object" || wanted === null) return there === wanted;
  if (typeof there !== "object" || there === null) return false;
  return Object.entries(wanted).every(([name, value]) => contains((there as Record<string, unknown>)[name], value));
}

interface Nothing {
  readonly Rules?: LifecycleRule[];
  readonly CORSRules?: CORSRule[];
  readonly TransitionDefaultMinimumObjectSize?: TransitionDefaultMinimumObjectSize;
}

const none =
  (name: string) =>
  (error: unknown): Nothing => {
    if (isNamed(error, name)) return {};
    throw error;
  };
