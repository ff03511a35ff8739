import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { createProgram, until } from "./program.ts";
import { openFolder, type Server, type ServerOptions, serverOf } from "./server.ts";

/** versitygw over a folder, with one bucket. Its keys are made once and kept with the data, so that links stay valid. */
export async function startS3(options: ServerOptions & { readonly bucket?: string }): Promise<Server> {
  const folder = await openFolder(options);
  const bucket = options.bucket ?? "inference";
  const secret = folder.secret ?? randomBytes(24).toString("hex");
  folder.keep({ secret });
  // Beside the data: without it the file system must have extended attributes.
  const meta = join(dirname(folder.data), "meta");
  mkdirSync(meta, { recursive: true, mode: 0o700 });
  const env = {
    S3_ENDPOINT: `http://127.0.0.1:${folder.port}`,
    S3_BUCKET: bucket,
    S3_ACCESS_KEY_ID: "embedded",
    S3_SECRET_ACCESS_KEY: secret,
    S3_REGION: "us-east-1",
  };
  const listen = ["--port", `127.0.0.1:${folder.port}`, "--cors-allow-origin", "*"];
  const program = createProgram({
    name: "S3",
    command: options.binary,
    args: ["--quiet", "--keep-alive", ...listen, ...(options.args ?? []), "posix", "--sidecar", meta, folder.data],
    env: { ...process.env, ROOT_ACCESS_KEY: env.S3_ACCESS_KEY_ID, ROOT_SECRET_KEY: secret },
    output: folder.log,
    onSpawn: (pid) => folder.keep({ pid }),
    ready: (signal) => until(() => createBucket(env), signal),
  });
  const server = serverOf(program, folder, env);
  await server.start();
  return server;
}

async function createBucket(env: Readonly<Record<string, string>>): Promise<void> {
  const s3 = new S3Client({
    endpoint: env.S3_ENDPOINT as string,
    region: env.S3_REGION as string,
    credentials: { accessKeyId: env.S3_ACCESS_KEY_ID as string, secretAccessKey: env.S3_SECRET_ACCESS_KEY as string },
    forcePathStyle: true,
    maxAttempts: 1,
    requestHandler: { connectionTimeout: 1_000, requestTimeout: 5_000 },
  });
  try {
    await s3.send(new CreateBucketCommand({ Bucket: env.S3_BUCKET }));
  } catch (error) {
    if ((error as Error).name !== "BucketAlreadyOwnedByYou" && (error as Error).name !== "BucketAlreadyExists")
      throw error;
  } finally {
    s3.destroy();
  }
}
