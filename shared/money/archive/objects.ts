import {
  DeleteObjectCommand,
  GetBucketLifecycleConfigurationCommand,
  GetObjectCommand,
  type LifecycleRule,
  PutObjectCommand,
} from "@aws-sdk/client-s3";
import type { Config } from "#platform/config";
import { connectS3, type S3Config } from "#platform/s3";

/** The lifecycle rules of `shared/files` do not cover this prefix. */
const prefix = "ledger/";
const timeoutMs = 120_000;

/** S3 error codes for "no lifecycle configuration" and "not implemented". */
const saysNoRules = ["NoSuchLifecycleConfiguration", "NotImplemented", "MethodNotAllowed"];

export type ArchiveObjects = ReturnType<typeof createArchiveObjects>;

/** The files of the archive, in `ARCHIVE_BUCKET` or alongside the other objects. A key is written once. */
export function createArchiveObjects(config: S3Config & Pick<Config, "S3_BUCKET" | "ARCHIVE_BUCKET">) {
  const s3 = connectS3(config, "transfers");
  const Bucket = config.ARCHIVE_BUCKET ?? config.S3_BUCKET;
  const keyOf = (part: string) => `${prefix}${part}.jsonl.zst`;
  const options = () => ({ abortSignal: AbortSignal.timeout(timeoutMs) });

  return {
    /** The metadata describes the contents, in case the database is lost. */
    async put(part: string, Body: Buffer, Metadata: Record<string, string>): Promise<void> {
      const object = { Bucket, Key: keyOf(part), Body, ContentLength: Body.length, ContentType: "application/zstd" };
      await s3.send(new PutObjectCommand({ ...object, Metadata }), options());
    },

    async get(part: string): Promise<Buffer> {
      const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key: keyOf(part) }), options());
      if (!Body) throw new Error(`the archive ${keyOf(part)} is empty`);
      return Buffer.from(await Body.transformToByteArray());
    },

    async remove(part: string): Promise<void> {
      await s3.send(new DeleteObjectCommand({ Bucket, Key: keyOf(part) }), options());
    },

    /** Throws if a lifecycle rule of the bucket would delete archives, or if the rules cannot be read. */
    async assertNotExpired(): Promise<void> {
      const { Rules = [] } = await s3
        .send(new GetBucketLifecycleConfigurationCommand({ Bucket }), options())
        .catch((error: Error): { Rules?: LifecycleRule[] } => {
          if (saysNoRules.includes(error.name)) return {};
          const hint = "nothing is archived: its rules may delete archives (grant s3:GetLifecycleConfiguration)";
          throw new Error(`the lifecycle rules of the bucket ${Bucket} cannot be read, so ${hint}`, { cause: error });
        });
      const rule = Rules.find((each) => expiresArchives(each));
      if (rule) throw new Error(`rule ${rule.ID ?? "without id"} of the bucket ${Bucket} would delete ${prefix}`);
    },
  };
}

/** Rules filtered by tag or size count as matching; operators must exclude the prefix. */
export function expiresArchives({ Status, Expiration, Filter, Prefix }: LifecycleRule): boolean {
  if (Status !== "Enabled" || (Expiration?.Days === undefined && Expiration?.Date === undefined)) return false;
  const concerned = Filter?.Prefix ?? Filter?.And?.Prefix ?? Prefix ?? "";
  return concerned.startsWith(prefix) || prefix.startsWith(concerned);
}
