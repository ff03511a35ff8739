/**
 * What is kept in object storage. Here: request bodies that are too large to ride in a job (ARCHITECTURE, section 3).
 * They live under `bodies/` until their call has ended; what a crash leaves behind is removed after a day.
 */
import {
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { Clock } from "#platform/clock";

export interface Files {
  /** Keeps a call's body. Rejects when storage is away. */
  putBody(requestId: string, json: string): Promise<void>;
  getBody(requestId: string, signal: AbortSignal): Promise<string>;
  dropBody(requestId: string): Promise<void>;
  /** Removes bodies whose call ended long ago; returns how many. */
  expireBodies(): Promise<number>;
  ping(): Promise<void>;
}

const prefix = "bodies/";
const lifeMs = 24 * 3_600_000;
const keyOf = (requestId: string) => `${prefix}${requestId}`;

export function createFiles({ s3, bucket, clock }: { s3: S3Client; bucket: string; clock: Clock }): Files {
  return {
    async putBody(requestId, json) {
      const Body = Buffer.from(json);
      await s3.send(new PutObjectCommand({ Bucket: bucket, Key: keyOf(requestId), Body, ContentLength: Body.length }));
    },
    async getBody(requestId, signal) {
      const object = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: keyOf(requestId) }), {
        abortSignal: signal,
      });
      return (await object.Body?.transformToString("utf-8")) ?? "";
    },
    async dropBody(requestId) {
      await s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: keyOf(requestId) }));
    },
    async expireBodies() {
      const oldest = clock.now() - lifeMs;
      let removed = 0;
      let token: string | undefined;
      do {
        const page = await s3.send(
          new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ContinuationToken: token }),
        );
        const old = (page.Contents ?? []).filter((each) => (each.LastModified?.getTime() ?? 0) < oldest);
        if (old.length > 0) {
          const Objects = old.map(({ Key }) => ({ Key }));
          await s3.send(new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects, Quiet: true } }));
        }
        removed += old.length;
        token = page.NextContinuationToken;
      } while (token);
      return removed;
    },
    async ping() {
      await s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, MaxKeys: 1 }));
    },
  };
}
