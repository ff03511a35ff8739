import {
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import { nextTurnIfLarge } from "#platform/concurrency/next-turn";
import type { Uses } from "#platform/uses";
import { fileLifetimeMs } from "./records.ts";

const prefixes = ["bodies/", "answers/", "cached/"] as const;
const bodyKey = (requestId: string) => `bodies/${requestId}`;
const answerKey = (requestId: string) => `answers/${requestId}`;
const cachedKey = (name: string) => `cached/${name}`;

/**
 * Request bodies too large for a job, stored responses too large for a MongoDB document, and cached answers too large for
 * Redis.
 */
export function createBodies(deps: Uses<"clock"> & { s3: S3Client; bucket: string }) {
  const { s3, bucket, clock } = deps;

  async function put(Key: string, Body: Uint8Array): Promise<void> {
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key, Body, ContentLength: Body.length }));
  }

  async function get(Key: string, signal?: AbortSignal): Promise<Buffer> {
    const options = signal ? { abortSignal: signal } : {};
    const object = await s3.send(new GetObjectCommand({ Bucket: bucket, Key }), options);
    const { buffer, byteOffset, byteLength } = (await object.Body?.transformToByteArray()) ?? new Uint8Array();
    return Buffer.from(buffer, byteOffset, byteLength);
  }

  async function remove(Key: string): Promise<void> {
    await s3.send(new DeleteObjectCommand({ Bucket: bucket, Key }));
  }

  /** Deletes the objects under a prefix that are older than this time. Returns their number. */
  async function removeAll(prefix: string, oldest: number): Promise<number> {
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
  }

  return {
    putBody: (requestId: string, json: string) => put(bodyKey(requestId), Buffer.from(json)),
    async getBody(requestId: string, signal: AbortSignal): Promise<string> {
      const bytes = await get(bodyKey(requestId), signal);
      await nextTurnIfLarge(bytes.length);
      return bytes.toString("utf8");
    },
    deleteBody: (requestId: string) => remove(bodyKey(requestId)),
    putAnswer: (requestId: string, bytes: Uint8Array) => put(answerKey(requestId), bytes),
    getAnswer: (requestId: string) => get(answerKey(requestId)),
    deleteAnswer: (requestId: string) => remove(answerKey(requestId)),
    putCached: (name: string, bytes: Uint8Array) => put(cachedKey(name), bytes),
    getCached: (name: string) => get(cachedKey(name)),
    /** Deletes all whose names begin like this. */
    deleteCached: (prefix: string) => removeAll(cachedKey(prefix), Number.POSITIVE_INFINITY),
    /** Deletes bodies and answers older than 24 hours. Returns the number deleted. */
    async expireBodies(): Promise<number> {
      const oldest = clock.now() - fileLifetimeMs;
      let removed = 0;
      for (const prefix of prefixes) removed += await removeAll(prefix, oldest);
      return removed;
    },
    async ping(): Promise<void> {
      await s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefixes[0], MaxKeys: 1 }));
    },
  };
}
