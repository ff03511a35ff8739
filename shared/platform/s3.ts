import { S3Client } from "@aws-sdk/client-s3";
import type { Config } from "./config.ts";

type S3Config = Pick<Config, "S3_ENDPOINT" | "S3_REGION" | "S3_ACCESS_KEY_ID" | "S3_SECRET_ACCESS_KEY">;

/** `WHEN_REQUIRED`: with the default, presigned parts carry the checksum of an empty body and real S3 refuses them. */
export const connectS3 = (config: S3Config): S3Client =>
  new S3Client({
    endpoint: config.S3_ENDPOINT,
    region: config.S3_REGION,
    credentials: { accessKeyId: config.S3_ACCESS_KEY_ID, secretAccessKey: config.S3_SECRET_ACCESS_KEY },
    forcePathStyle: true,
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    maxAttempts: 2,
    // A server that hangs is noticed by its silence; a long upload is not silent.
    requestHandler: { connectionTimeout: 1_000, socketTimeout: 5_000 },
  });
