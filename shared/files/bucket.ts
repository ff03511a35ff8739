import {
  type CORSRule,
  GetBucketCorsCommand,
  GetBucketLifecycleConfigurationCommand,
  type LifecycleRule,
  PutBucketCorsCommand,
  PutBucketLifecycleConfigurationCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { Uses } from "#platform/uses";
import { isErrorNamed } from "./transfer.ts";

const ruleName = "inference-service";

/**
 * Days after which a rule removes leftovers; expiry deletes everything sooner. The output of a batch is written for up to a
 * day before the 30 days of its file begin.
 */
const daysOf = { "uploads/": 2, "files/": 2, "bodies/": 2, "answers/": 2, "batch/": 35 };

const lifecycleRules: readonly LifecycleRule[] = Object.entries(daysOf).map(([prefix, days]) => ({
  ID: `${ruleName}-${prefix.slice(0, -1)}`,
  Status: "Enabled",
  Filter: { Prefix: prefix },
  Expiration: { Days: days },
  AbortIncompleteMultipartUpload: { DaysAfterInitiation: 2 },
}));

/** Browsers send parts, and the usual libraries need their ETag to complete an upload. */
const corsRules: readonly CORSRule[] = [
  {
    ID: ruleName,
    AllowedOrigins: ["*"],
    AllowedMethods: ["GET", "HEAD", "PUT"],
    AllowedHeaders: ["*"],
    ExposeHeaders: ["ETag"],
    MaxAgeSeconds: 3_600,
  },
];

/** Sets the lifecycle rules, a fallback for expiry, and CORS. Leaves unrelated rules unchanged. */
export async function prepareBucket(deps: Uses<"log"> & { s3: S3Client; bucket: string }): Promise<void> {
  const { s3, bucket: Bucket, log } = deps;

  async function attempt(setting: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { name, message } = error as Error;
      // Servers such as versitygw have no lifecycle rules; that is not an error.
      const level = name === "NotImplemented" ? "debug" : "info";
      log[level]({ bucket: Bucket, err: `${name}: ${message}` }, `the ${setting} of the bucket could not be set`);
    }
  }

  await attempt("lifecycle rules", async () => {
    const { Rules = [], TransitionDefaultMinimumObjectSize } = await ifAny(
      s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket })),
      "NoSuchLifecycleConfiguration",
    );
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

  await attempt("CORS", async () => {
    const { CORSRules = [] } = await ifAny(s3.send(new GetBucketCorsCommand({ Bucket })), "NoSuchCORSConfiguration");
    const merged = mergeById(CORSRules, corsRules);
    if (merged) await s3.send(new PutBucketCorsCommand({ Bucket, CORSConfiguration: { CORSRules: merged } }));
  });
}

/** Returns undefined if the bucket already has these rules. */
export function mergeById<Rule extends { ID?: string | undefined }>(
  existing: readonly Rule[],
  wanted: readonly Rule[],
): Rule[] | undefined {
  if (wanted.every((rule) => existing.some((each) => contains(each, rule)))) return undefined;
  const ids = new Set(wanted.map(({ ID }) => ID));
  return [...existing.filter(({ ID }) => !ids.has(ID)), ...wanted];
}

/** Ignores additional fields, because servers may add them to a rule. */
function contains(existing: unknown, wanted: unknown): boolean {
  if (typeof wanted !== "object" || wanted === null) return existing === wanted;
  if (typeof existing !== "object" || existing === null) return false;
  return Object.entries(wanted).every(([name, value]) => contains((existing as Record<string, unknown>)[name], value));
}

/** Returns the settings of the bucket, or none if storage reports that with the named error. */
const ifAny = <Settings>(read: Promise<Settings>, missing: string): Promise<Partial<Settings>> =>
  read.catch((error: unknown) => {
    if (isErrorNamed(error, missing)) return {};
    throw error;
  });
