import { CreateBucketCommand, ListObjectsV2Command } from "@aws-sdk/client-s3";
import { beforeAll } from "vitest";
import { randomBase62 } from "../../shared/platform/ids.ts";
import { connectS3 } from "../../shared/platform/s3.ts";
import { storesOfRun } from "./servers.ts";

/** A bucket for the service of one file, so that the objects in it can be counted. */
export function bucketOfFile() {
  const name = `t-${randomBase62(16).toLowerCase()}`;
  let s3: ReturnType<typeof connectS3>;
  beforeAll(async () => {
    s3 = connectS3(await storesOfRun());
    await s3.send(new CreateBucketCommand({ Bucket: name }));
    return () => s3.destroy();
  });
  const count = async (prefix = ""): Promise<number> =>
    (await s3.send(new ListObjectsV2Command({ Bucket: name, Prefix: prefix }))).KeyCount ?? 0;
  return { name, count };
}
