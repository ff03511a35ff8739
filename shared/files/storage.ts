import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectsCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandInput,
  ListObjectsV2Command,
  ListPartsCommand,
  type MultipartUpload,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { Uses } from "#platform/uses";
import { createTransfers, isErrorNamed, storageUnavailable } from "./transfer.ts";

export type Storage = ReturnType<typeof createStorage>;

export interface Part {
  readonly partNumber: number;
  readonly bytes: number;
  readonly etag: string;
}
/** The position in storage's list at which the next page starts. */
export type MultipartMarker = Pick<ListMultipartUploadsCommandInput, "KeyMarker" | "UploadIdMarker">;

const createTimeoutMs = 10_000;
/** Long, because some servers copy the parts on completion. */
export const completeTimeoutMs = 120_000;
/** The limit of one DeleteObjects request. */
const maxKeys = 1_000;

const fromStorage = <T>(operation: Promise<T>): Promise<T> =>
  operation.catch((error: unknown) => {
    throw storageUnavailable(error);
  });

/** Objects in the bucket. Failures of storage throw `noCapacity`. */
export function createStorage(
  deps: Uses<"clock" | "log"> & { commands: S3Client; transfers: S3Client; bucket: string },
) {
  const { commands, transfers, bucket: Bucket, log } = deps;
  const { send, open } = createTransfers({ ...deps, s3: transfers });

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

  /** Returns a page of the open multipart uploads under a prefix, after the marker of the previous page. */
  async function listMultipart(Prefix: string, after?: MultipartMarker) {
    const page = await fromStorage(commands.send(new ListMultipartUploadsCommand({ Bucket, Prefix, ...after })));
    const next = page.IsTruncated
      ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
      : undefined;
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
    send,
    open,
    async put(Key: string, ContentType: string, Body: Buffer, abortSignal: AbortSignal): Promise<string> {
      const put = new PutObjectCommand({ Bucket, Key, Body, ContentType, ContentLength: Body.length });
      try {
        return (await commands.send(put, { abortSignal })).ETag ?? "";
      } catch (error) {
        abortSignal.throwIfAborted();
        throw storageUnavailable(error);
      }
    },
    /** Returns the first bytes, and the size of the whole object. */
    async head(key: string, bytes: number): Promise<{ size: number; head: Buffer } | undefined> {
      const opened = await open(key, { start: 0, end: bytes - 1 });
      return opened && { size: opened.size, head: Buffer.concat(await Array.fromAsync(opened.body)) };
    },
    /** Yields the keys that begin with a prefix, page by page. */
    async *list(Prefix: string): AsyncGenerator<readonly string[]> {
      let ContinuationToken: string | undefined;
      do {
        const page = await fromStorage(commands.send(new ListObjectsV2Command({ Bucket, Prefix, ContinuationToken })));
        yield (page.Contents ?? []).flatMap(({ Key }) => (Key === undefined ? [] : [Key]));
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
    },
    /** Never rejects. Returns the keys of objects that may still exist. */
    async remove(keys: readonly string[]): Promise<ReadonlySet<string>> {
      const remaining: string[] = [];
      for (let from = 0; from < keys.length; from += maxKeys)
        remaining.push(...(await removeBatch(keys.slice(from, from + maxKeys))));
      return new Set(remaining);
    },
    multipart: {
      // This is not retried, because the first attempt may have created an upload whose id is lost.
      async create(Key: string, ContentType: string): Promise<string> {
        const create = new CreateMultipartUploadCommand({ Bucket, Key, ContentType });
        const { UploadId } = await fromStorage(
          transfers.send(create, { abortSignal: AbortSignal.timeout(createTimeoutMs) }),
        );
        if (UploadId === undefined) throw storageUnavailable(new Error("a multipart upload without an id"));
        return UploadId;
      },
      /** Returns parts by number, or undefined if the upload was completed or aborted. */
      async parts(Key: string, UploadId: string): Promise<ReadonlyMap<number, Part> | undefined> {
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
      /** Returns `not_found` if the upload does not exist, and `changed` if a part was sent again in the meantime. */
      async complete(Key: string, UploadId: string, parts: readonly Part[]) {
        const Parts = parts.map(({ partNumber, etag }) => ({ PartNumber: partNumber, ETag: etag }));
        const complete = new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } });
        try {
          await transfers.send(complete, { abortSignal: AbortSignal.timeout(completeTimeoutMs) });
          return "done" as const;
        } catch (error) {
          if (isErrorNamed(error, "NoSuchUpload")) return "not_found" as const;
          if (isErrorNamed(error, "InvalidPart")) return "changed" as const;
          throw storageUnavailable(error);
        }
      },
      /** Aborts every multipart upload to this key, regardless of its id. */
      async abort(key: string): Promise<void> {
        const { uploads } = await listMultipart(key);
        for (const each of uploads) if (each.Key === key) await fromStorage(abortOne(each));
      },
      list: listMultipart,
    },
  };
}
