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
import { type Opened, open, type Sent, send } from "./transfer.ts";
import { isNamed, storageUnavailable } from "./unavailable.ts";

/** Objects in the bucket. Whatever storage does not do is `noCapacity`. */
export interface Storage {
  /** Of a known size, as fast as `chunks` come; what they throw is thrown. Resolves with the ETag. */
  send(object: Sent): Promise<string>;
  put(key: string, contentType: string, body: Buffer, signal: AbortSignal): Promise<string>;
  /** Undefined: there is no such object. */
  open(
    key: string,
    range: { start: number; end: number } | undefined,
    signal: AbortSignal,
  ): Promise<Opened | undefined>;
  /** The first bytes and the size of it all. */
  head(key: string, bytes: number): Promise<{ size: number; head: Buffer } | undefined>;
  /** Never rejects: returns the keys that storage may still have. */
  remove(keys: readonly string[]): Promise<ReadonlySet<string>>;
  readonly multipart: {
    create(key: string, contentType: string): Promise<string>;
    /** By number. Undefined: no such upload, so it was completed or aborted. */
    parts(key: string, uploadId: string): Promise<ReadonlyMap<number, Part> | undefined>;
    /** `gone`: no such upload. `changed`: a part was sent again meanwhile. */
    complete(key: string, uploadId: string, parts: readonly Part[]): Promise<"done" | "gone" | "changed">;
    /** Every multipart upload to this key, whatever its id. */
    abort(key: string): Promise<void>;
    /** One page of all that were begun under a prefix, from where the page before ended. */
    page(prefix: string, after: Mark | undefined): Promise<{ uploads: readonly Begun[]; next: Mark | undefined }>;
  };
}

export interface Part {
  readonly partNumber: number;
  readonly bytes: number;
  readonly etag: string;
}
export interface Begun {
  readonly key: string;
  /** Unix milliseconds. */
  readonly at: number;
}
interface Mark {
  readonly key: string | undefined;
  readonly uploadId: string | undefined;
}

const createMs = 10_000;
/** Some servers copy the parts together only now. */
export const completeMs = 120_000;
/** The most that S3 takes in one request. */
const mostKeys = 1_000;

const orAway = <T>(operation: Promise<T>): Promise<T> =>
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

  async function removeSome(keys: readonly string[]): Promise<readonly string[]> {
    try {
      const Objects = keys.map((Key) => ({ Key }));
      const { Errors = [] } = await commands.send(
        new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }),
      );
      const refused = Errors.filter(({ Code }) => Code !== "NoSuchKey");
      if (refused.length > 0) log.warn({ objects: refused.length, first: refused[0] }, "objects are not removed yet");
      return refused.some(({ Key }) => Key === undefined) ? keys : refused.map(({ Key }) => Key as string);
    } catch (error) {
      log.warn({ err: (error as Error).message, objects: keys.length }, "objects are not removed yet");
      return keys;
    }
  }

  async function begun(Prefix: string, after: Mark | undefined) {
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
      if (!isNamed(error, "NoSuchUpload")) throw error;
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
      const signal = new AbortController().signal;
      const opened = await open({ ...deps, s3: transfers }, { key, range: { start: 0, end: bytes - 1 }, signal });
      return opened && { size: opened.size, head: Buffer.concat(await Array.fromAsync(opened.body)) };
    },
    async remove(keys) {
      const left: string[] = [];
      for (let from = 0; from < keys.length; from += mostKeys)
        left.push(...(await removeSome(keys.slice(from, from + mostKeys))));
      return new Set(left);
    },
    multipart: {
      // Not repeated: the first try may have made one that nobody would know of.
      async create(Key, ContentType) {
        const create = new CreateMultipartUploadCommand({ Bucket, Key, ContentType });
        const { UploadId } = await orAway(transfers.send(create, { abortSignal: AbortSignal.timeout(createMs) }));
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
          if (isNamed(error, "NoSuchUpload")) return undefined;
          throw storageUnavailable(error);
        }
      },
      async complete(Key, UploadId, parts) {
        const Parts = parts.map(({ partNumber, etag }) => ({ PartNumber: partNumber, ETag: etag }));
        const complete = new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } });
        try {
          await transfers.send(complete, { abortSignal: AbortSignal.timeout(completeMs) });
          return "done";
        } catch (error) {
          if (isNamed(error, "NoSuchUpload")) return "gone";
          if (isNamed(error, "InvalidPart")) return "changed";
          throw storageUnavailable(error);
        }
      },
      async abort(key) {
        const { uploads } = await orAway(begun(key, undefined));
        for (const each of uploads) if (each.Key === key) await orAway(abortOne(each));
      },
      async page(prefix, after) {
        const { uploads, next } = await orAway(begun(prefix, after));
        return {
          uploads: uploads.map(({ Key = "", Initiated }) => ({ key: Key, at: Initiated?.getTime() ?? 0 })),
          next,
        };
      },
    },
  };
}
