import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  BucketAlreadyExists,
  BucketAlreadyOwnedByYou,
  CreateBucketCommand,
  S3Client,
  type S3ClientConfig,
} from "@aws-sdk/client-s3";
import { openFolder, type Server, type ServerOptions, startServer } from "./server.ts";

const region = "us-east-1";
const bucket = "inference";

/** Starts versitygw over a folder, with one bucket. Its secret key is stored, so that presigned links stay valid. */
export async function startS3(options: ServerOptions): Promise<Server> {
  const folder = await openFolder(options.dataDir);
  const { data, port } = folder;
  const credentials = { accessKeyId: "embedded", secretAccessKey: folder.secret ?? randomBytes(24).toString("hex") };
  folder.save({ secret: credentials.secretAccessKey });
  // Metadata needs a sidecar folder or a file system with extended attributes.
  const sidecar = join(dirname(data), "meta");
  mkdirSync(sidecar, { recursive: true, mode: 0o700 });
  const endpoint = `http://127.0.0.1:${port}`;
  const listen = ["--port", `127.0.0.1:${port}`, "--cors-allow-origin", "*"];
  return startServer(folder, {
    name: "S3",
    command: options.binary,
    args: ["--quiet", "--keep-alive", ...listen, ...(options.args ?? []), "posix", "--sidecar", sidecar, data],
    processEnv: { ROOT_ACCESS_KEY: credentials.accessKeyId, ROOT_SECRET_KEY: credentials.secretAccessKey },
    env: {
      S3_ENDPOINT: endpoint,
      S3_BUCKET: bucket,
      S3_ACCESS_KEY_ID: credentials.accessKeyId,
      S3_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      S3_REGION: region,
    },
    isReady: () => createBucket({ endpoint, credentials }),
  });
}

async function createBucket(address: Pick<S3ClientConfig, "endpoint" | "credentials">): Promise<void> {
  const s3 = new S3Client({
    ...address,
    region,
    forcePathStyle: true,
    maxAttempts: 1,
    requestHandler: { connectionTimeout: 1_000, requestTimeout: 5_000 },
  });
  try {
    await s3.send(new CreateBucketCommand({ Bucket: bucket }));
  } catch (error) {
    if (!(error instanceof BucketAlreadyOwnedByYou) && !(error instanceof BucketAlreadyExists)) throw error;
  } finally {
    s3.destroy();
  }
}
