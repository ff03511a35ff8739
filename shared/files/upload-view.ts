import type { S3Client } from "@aws-sdk/client-s3";
import { S3RequestPresigner } from "@aws-sdk/s3-request-presigner";
import type { Uses } from "#platform/uses";
import type { Lifecycle } from "./lifecycle.ts";
import { type Records, type StoredUpload, statusAt, uploadKey } from "./records.ts";
import type { Storage } from "./storage.ts";

/** Unix milliseconds, rounded down to seconds. */
interface Life {
  readonly from: number;
  readonly until: number;
}

/**
 * Presigned path-style URLs. The presigner is called directly, without the client's middleware, which takes a fifth of
 * the time; a list of multipart uploads has up to 13 links for each.
 */
export function createLinks({ s3, endpoint, bucket }: { s3: S3Client; endpoint: string; bucket: string }) {
  const presigner = new S3RequestPresigner({ ...s3.config });
  const { protocol, hostname, port, host, pathname } = new URL(endpoint);
  const base = `${pathname.replace(/(?<!\/)\/+$/, "")}/${bucket}`;

  async function sign(
    request: { method: string; key: string; query: Record<string, string>; headers?: Record<string, string> },
    { from, until }: Life,
  ): Promise<string> {
    const { method, key, query: parameters, headers } = request;
    const path = `${base}/${key}`;
    const { query } = await presigner.presign(
      {
        method,
        protocol,
        hostname,
        ...(port !== "" && { port: Number(port) }),
        path,
        query: parameters,
        headers: { host, ...headers },
      },
      { signingDate: new Date(from), expiresIn: Math.max(1, Math.floor((until - from) / 1_000)) },
    );
    const pairs = Object.entries(query ?? {}).map(([name, value]) => `${encode(name)}=${encode(String(value))}`);
    return `${protocol}//${host}${path}?${pairs.join("&")}`;
  }

  return {
    /** A link that reads an object. The response has the detected type, regardless of the declared one. */
    get: (key: string, mime: string, life: Life) =>
      sign({ method: "GET", key, query: { "response-content-type": mime } }, life),
    /** A link that accepts one part. Its length is signed, because storage would otherwise accept any length. */
    part(key: string, part: { uploadId: string; partNumber: number; bytes: number }, life: Life) {
      const query = { partNumber: String(part.partNumber), uploadId: part.uploadId };
      return sign({ method: "PUT", key, query, headers: { "content-length": String(part.bytes) } }, life);
    },
  };
}

/** Signatures require every character except the unreserved ones to be escaped. */
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

type Links = ReturnType<typeof createLinks>;
export type ToUpload = ReturnType<typeof createToUpload>;
export type Upload = Awaited<ReturnType<ToUpload>>;

export interface UploadDeps extends Uses<"clock"> {
  readonly records: Records;
  readonly storage: Storage;
  readonly lifecycle: Lifecycle;
  readonly links: Links;
  readonly toUpload: ToUpload;
}

/** A link to an active upload is valid for this long, but no longer than the upload. */
const linkLifetimeMs = 15 * 60_000;

/** Every part except the last has `partSize` bytes. */
export const partsOf = (bytes: number, partSize: number): readonly { partNumber: number; bytes: number }[] =>
  Array.from({ length: Math.ceil(bytes / partSize) }, (_, at) => ({
    partNumber: at + 1,
    bytes: Math.min(partSize, bytes - at * partSize),
  }));

/** Returns the current public view of an upload's record. Times are unix milliseconds. */
export function createToUpload({ links, clock }: Uses<"clock"> & { links: Links }) {
  async function multipartLinks(record: StoredUpload) {
    const { uploadId, partSize, linksExpireAt } = record.multipart ?? {};
    if (!uploadId || !partSize || !linksExpireAt) return undefined;
    const key = uploadKey(record._id);
    // Signed as of the creation, so that every read returns the same links.
    const life = { from: record.createdAt.getTime(), until: linksExpireAt.getTime() };
    const parts = partsOf(record.bytes, partSize).map(async (part) => ({
      ...part,
      url: await links.part(key, { uploadId, ...part }, life),
    }));
    return { partSize, linksExpireAt: linksExpireAt.getTime(), parts: await Promise.all(parts) };
  }

  return async (record: StoredUpload) => {
    const { _id: id, account, requestId, mime, kind, bytes, cost, activatedAt } = record;
    const now = clock.now();
    const status = statusAt(record, now);
    if (!mime || !kind) throw new Error(`the record of ${id} has no type`);
    const expiresAt = (activatedAt ? record.expiresAt : record.pendingUntil).getTime();
    const until = Math.min(now + linkLifetimeMs, expiresAt);
    const multipart = status === "pending" ? await multipartLinks(record) : undefined;
    return {
      id,
      account,
      requestId,
      mime,
      kind,
      bytes,
      createdAt: record.createdAt.getTime(),
      expiresAt,
      status,
      /** Held while pending, charged once active, 0 if it never was. */
      costNanoUsd: activatedAt || status === "pending" ? cost : 0n,
      /** Signed anew on every read; null unless active. */
      url: status === "active" ? await links.get(uploadKey(id), mime, { from: now, until }) : null,
      /** Set only for a pending multipart upload. */
      ...(multipart && { multipart }),
    };
  };
}
