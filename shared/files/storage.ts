import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectsCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  type MultipartUpload,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import { isErrorNamed, storageUnavailable } from "./errors.ts";
import { type OpenedObject, open, type SentObject, send } from "./transfer.ts";

/** Objects in the bucket. A failure of storage is `noCapacity`. */
export interface Storage {
  /** Streams an object of known size. Throws what `chunks` throws. Resolves with the ETag. */
  send(object: SentObject): Promise<string>;
  put(key: string, contentType: string, body: Buffer, signal: AbortSignal): Promise<string>;
  /** Undefined: there is no such object. */
  open(
    key: string,
    range: { start: number; end: number } | undefined,
    signal: AbortSignal,
  ): Promise<OpenedObject | undefined>;
  /** The first bytes, and the size of the whole object. */
  head(key: string, bytes: number): Promise<{ size: number; head: Buffer } | undefined>;
  /** Never rejects: returns the keys of objects that may still exist. */
  remove(keys: readonly string[]): Promise<ReadonlySet<string>>;
  readonly multipart: {
    create(key: string, contentType: string): Promise<string>;
    /** By part number. Undefined: no such upload, so it was completed or aborted. */
    parts(key: string, uploadId: string): Promise<ReadonlyMap<number, Part> | undefined>;
    /** `not_found`: no such upload. `changed`: a part was sent again meanwhile. */
    complete(key: string, uploadId: string, parts: readonly Part[]): Promise<"done" | "not_found" | "changed">;
    /** Aborts every multipart upload to this key, whatever its id. */
    abort(key: string): Promise<void>;
    /** One page of the open multipart uploads under a prefix, from the marker that the last page returned. */
    list(
      prefix: string,
      after: MultipartMarker | undefined,
    ): Promise<{
      uploads: readonly { key: string /** Unix milliseconds. */; startedAt: number }[];
      next: MultipartMarker | undefined;
    }>;
  };
}

export interface Part {
  readonly partNumber: number;
  readonly bytes: number;
  readonly etag: string;
}
export interface MultipartMarker {
  readonly key: string | undefined;
  readonly uploadId: string | undefined;
}

const createTimeoutMs = 10_000;
/** Long, because some servers copy the parts on completion. */
export const completeTimeoutMs = 120_000;
/** The limit of one DeleteObjects request. */
const maxKeys = 1_000;

const fromStorage = <T>(operation: Promise<T>): Promise<T> =>
  operation.catch((error: unknown) => {
    throw storageUnavailable(error);
  });

export function createStorage(deps: {
  commands: S3Client;
  transfers: S3Client;
  bucket: string;
  clock: Clock;
  log: Logger;
}): Storage {
  const { commands, transfers, bucket: Bucket, log } = deps;

  async function removeBatch(keys: readonly string[]): Promise<readonly string[]> {
    try {
      const Objects = keys.map((Key) => ({ Key }));
      const { Errors = [] } = await commands.send(
        new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }),
      );
      const refused = Errors.filter(({ Code }) => Code !== "NoSuchKey");
      if (refused.length > 0) log.warn({ objects: refused.length, first: refused[0] }, "objects could not be removed");
      return refused.some(({ Key }) => Key === undefined) ? keys : refused.map(({ Key }) => Key as string);
    } catch (error) {
      log.warn({ err: (error as Error).message, objects: keys.length }, "objects could not be removed");
      return keys;
    }
  }

  async function listMultipart(Prefix: string, after: MultipartMarker | undefined) {
    const page = await commands.send(
      new ListMultipartUploadsCommand({
        Bucket,
        Prefix,
        ...(after && { KeyMarker: after.key, UploadIdMarker: after.uploadId }),
      }),
    );
    const next = page.IsTruncated ? { key: page.NextKeyMarker, uploadId: page.NextUploadIdMarker } : undefined;
    return { uploads: page.Uploads ?? [], next };
  }

  async function abortOne({ Key, UploadId }: MultipartUpload): Promise<void> {
    try {
      await commands.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }));
    } catch (error) {
      if (!isErrorNamed(error, "NoSuchUpload")) throw error;
    }
  }

  return {
    send: (object) => send({ ...deps, s3: transfers }, object),
    async put(Key, ContentType, Body, abortSignal) {
      const put = new PutObjectCommand({ Bucket, Key, Body, ContentType, ContentLength: Body.length });
      try {
        return (await commands.send(put, { abortSignal })).ETag ?? "";
      } catch (error) {
        abortSignal.throwIfAborted();
        throw storageUnavailable(error);
      }
    },
    open: (key, range, signal) => open({ ...deps, s3: transfers }, { key, range, signal }),
    async head(key, bytes) {
      const range = { start: 0, end: bytes - 1 };
      const opened = await open({ ...deps, s3: transfers }, { key, range });
      return opened && { size: opened.size, head: Buffer.concat(await Array.fromAsync(opened.body)) };
    },
    async remove(keys) {
      const remaining: string[] = [];
      for (let from = 0; from < keys.length; from += maxKeys)
        remaining.push(...(await removeBatch(keys.slice(from, from + maxKeys))));
      return new Set(remaining);
    },
    multipart: {
      // Not retried: the first attempt may have created an upload whose id is lost.
      async create(Key, ContentType) {
        const create = new CreateMultipartUploadCommand({ Bucket, Key, ContentType });
        const { UploadId } = await fromStorage(
          transfers.send(create, { abortSignal: AbortSignal.timeout(createTimeoutMs) }),
        );
        if (UploadId === undefined) throw storageUnavailable(new Error("a multipart upload without an id"));
        return UploadId;
      },
      async parts(Key, UploadId) {
        try {
          const { Parts = [] } = await commands.send(new ListPartsCommand({ Bucket, Key, UploadId }));
          return new Map(
            Parts.map(({ PartNumber = 0, Size = 0, ETag = "" }) => [
              PartNumber,
              { partNumber: PartNumber, bytes: Size, etag: ETag },
            ]),
          );
        } catch (error) {
          if (isErrorNamed(error, "NoSuchUpload")) return undefined;
          throw storageUnavailable(error);
        }
      },
      async complete(Key, UploadId, parts) {
        const Parts = parts.map(({ partNumber, etag }) => ({ PartNumber: partNumber, ETag: etag }));
        const complete = new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } });
        try {
          await transfers.send(complete, { abortSignal: AbortSignal.timeout(completeTimeoutMs) });
          return "done";
        } catch (error) {
          if (isErrorNamed(error, "NoSuchUpload")) return "not_found";
          if (isErrorNamed(error, "InvalidPart")) return "changed";
          throw storageUnavailable(error);
        }
      },
      async abort(key) {
        const { uploads } = await fromStorage(listMultipart(key, undefined));
        for (const each of uploads) if (each.Key === key) await fromStorage(abortOne(each));
      },
      async list(prefix, after) {
        const { uploads, next } = await fromStorage(listMultipart(prefix, after));
        return {
          uploads: uploads.map(({ Key = "", Initiated }) => ({ key: Key, startedAt: Initiated?.getTime() ?? 0 })),
          next,
        };
      },
    },
  };
}
