import { S3Client } from "@aws-sdk/client-s3";
import type { Config } from "./config.ts";

export type S3Config = Pick<
  Config,
  "S3_ENDPOINT" | "S3_PUBLIC_ENDPOINT" | "S3_REGION" | "S3_ACCESS_KEY_ID" | "S3_SECRET_ACCESS_KEY"
>;

/**
 * `commands`: small requests. A server that hangs is noticed by five seconds of silence; what fails is asked twice.
 * `transfers`: bodies that come or go as slowly as whoever is at the other end likes, and requests that must not be
 * repeated or that storage takes long for. Nothing is noticed here: their users watch them.
 * `links`: never sends anything; signs addresses under which callers and providers reach storage.
 */
export type S3Manner = "commands" | "transfers" | "links";

const ignore = () => {};
/** With the client's own, whatever a transfer fails of is written to the console. */
const silent = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

const manners = {
  commands: { maxAttempts: 2, requestHandler: { connectionTimeout: 1_000, socketTimeout: 5_000 } },
  // A transfer never waits for another's connection; waiting for one would count as failing to connect.
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

/** `WHEN_REQUIRED`: with the default, presigned parts carry the checksum of an empty body and real S3 refuses them. */
export const connectS3 = (config: S3Config, manner: S3Manner = "commands"): S3Client =>
  new S3Client({
    endpoint: (manner === "links" && config.S3_PUBLIC_ENDPOINT) || config.S3_ENDPOINT,
    region: config.S3_REGION,
    credentials: { accessKeyId: config.S3_ACCESS_KEY_ID, secretAccessKey: config.S3_SECRET_ACCESS_KEY },
    forcePathStyle: true,
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    ...manners[manner],
  });
