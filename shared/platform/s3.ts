import { S3Client } from "@aws-sdk/client-s3";
import type { Config } from "./config.ts";

export type S3Config = Pick<
  Config,
  "S3_ENDPOINT" | "S3_PUBLIC_ENDPOINT" | "S3_REGION" | "S3_ACCESS_KEY_ID" | "S3_SECRET_ACCESS_KEY"
>;

/**
 * `commands`: small requests, with a socket timeout of five seconds and one retry.
 * `transfers`: bodies that callers may send or read slowly, and requests that must not be retried or may take long.
 * Their timeouts are in `shared/files`.
 * `links`: sends nothing; signs URLs of the public endpoint.
 */
export type S3ClientKind = "commands" | "transfers" | "links";

const ignore = () => {};
/** The client's default logger writes failed transfers to the console. */
const silent = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

const clientOptions = {
  commands: { maxAttempts: 2, requestHandler: { connectionTimeout: 1_000, socketTimeout: 5_000 } },
  // The number of sockets is unlimited, because waiting for one would count towards the connection timeout.
  transfers: {
    maxAttempts: 1,
    logger: silent,
    expectContinueHeader: false,
    requestHandler: {
      connectionTimeout: 1_000,
      httpAgent: { maxSockets: Number.POSITIVE_INFINITY },
      httpsAgent: { maxSockets: Number.POSITIVE_INFINITY },
    },
  },
  links: {},
} as const;

/** With other checksum settings, presigned parts carry the checksum of an empty body, which AWS S3 refuses. */
export const connectS3 = (config: S3Config, kind: S3ClientKind = "commands"): S3Client =>
  new S3Client({
    endpoint: (kind === "links" && config.S3_PUBLIC_ENDPOINT) || config.S3_ENDPOINT,
    region: config.S3_REGION,
    credentials: { accessKeyId: config.S3_ACCESS_KEY_ID, secretAccessKey: config.S3_SECRET_ACCESS_KEY },
    forcePathStyle: true,
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    ...clientOptions[kind],
  });
