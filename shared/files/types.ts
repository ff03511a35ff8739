import type { UploadRef } from "#formats";
import type { ByteShare } from "#platform/byte-budget";

export type MediaKind = "image" | "video" | "audio";
export type UploadStatus = "pending" | "active" | "expired" | "deleted";

/** Times are unix milliseconds. */
export interface Upload {
  readonly id: string;
  readonly account: string;
  readonly requestId: string;
  readonly mime: string;
  readonly kind: MediaKind;
  readonly bytes: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly status: UploadStatus;
  /** Held while pending, charged once it is active, 0 if it never was. */
  readonly costNanoUsd: bigint;
  /** Signed anew on every read; null unless active. */
  readonly url: string | null;
  /** Of a pending upload in parts. */
  readonly multipart?: MultipartLinks;
}

export interface MultipartLinks {
  readonly partSize: number;
  readonly linksExpireAt: number;
  readonly parts: readonly { readonly partNumber: number; readonly url: string; readonly bytes: number }[];
}

export interface UploadRequest {
  readonly account: string;
  readonly keyId: string;
  readonly requestId: string;
  /** The account's choice; null is the service's own token. */
  readonly buybackToken?: string | null | undefined;
}

export interface Uploads {
  /**
   * Starts an upload whose bytes pass through this process: holds the cost of `maxBytes` and writes a pending record, before
   * a byte is read. Throws 402, 403, 429, 503. The caller must end it by `store` or `cancel`.
   */
  begin(request: UploadRequest & { readonly maxBytes: number }): Promise<ReceivingUpload>;
  /** Starts an upload of up to 200 MB, whose parts the caller sends to storage. Throws 400 `bytes`, 413, 415 `mime`, and as `begin`. */
  start(request: UploadRequest & { readonly bytes: number; readonly mime: string }): Promise<Upload>;
  /** Idempotent. Throws 400 that names missing parts (the upload stays pending), 404, 410, 415, 503. */
  complete(account: string, id: string): Promise<Upload>;
  /** Throws 404, 410. */
  find(account: string, id: string): Promise<Upload>;
  /** Uploads of the last 24 hours, in every state, newest first. Throws 400 for an unknown `after`. */
  list(
    account: string,
    page: { readonly limit: number; readonly after?: string | undefined },
  ): Promise<{ readonly data: readonly Upload[]; readonly hasMore: boolean }>;
  /** Throws 404, 410. */
  delete(account: string, id: string): Promise<void>;
  /** The upload that a request created, in any state: for idempotency. */
  findByRequest(account: string, requestId: string): Promise<Upload | undefined>;
  /** Checks owner, state and kind of every upload that a request refers to. Errors name the field of `refs`. */
  check(
    account: string,
    refs: readonly UploadRef[],
  ): Promise<ReadonlyMap<string, { readonly bytes: number; readonly mime: string; readonly kind: MediaKind }>>;
  /** Checks again, in the worker, and returns files that a provider may use. Reading them takes bytes of `memory`. */
  resolve(
    account: string,
    refs: readonly UploadRef[],
    signal: AbortSignal,
    memory?: ByteShare,
  ): Promise<ReadonlyMap<string, InputFile>>;
}

export interface ReceivingUpload {
  readonly id: string;
  /**
   * Detects the type, streams to storage at its pace, then charges and activates. A failure leaves no object, record or
   * hold, and ends the body (`return`) at once. Throws 400 for a body of another length than `bytes`, 413, 415, 503.
   */
  store(source: { readonly bytes: number; readonly body: AsyncIterable<Buffer> }): Promise<Upload>;
  /** Releases the hold and deletes the record. Does nothing after `store`. Never rejects. */
  cancel(): Promise<void>;
}

/** An upload as the input of a provider. */
export interface InputFile {
  readonly id: string;
  /** The request's field that refers to it, for errors. */
  readonly param: string;
  readonly mime: string;
  readonly kind: MediaKind;
  readonly bytes: number;
  /** A signed URL for the provider; undefined where storage has no public address. */
  readonly link: string | undefined;
  /**
   * The whole content. Throws 400 that names the field if it has more than `limitBytes`, 503 if there is no memory for it now.
   */
  read(limitBytes: number): Promise<Buffer>;
  /** The same in base64, which the request will contain `times` times. */
  base64(limitBytes: number, times?: number): Promise<string>;
  /** Returns the memory of what was read before the call ends. */
  release(): void;
}

export interface GeneratedFile {
  readonly id: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly expiresAt: number;
}

/** Files made by models. Their ids cannot be guessed; whoever has one may read the file. */
export interface GeneratedFiles {
  /** Detects the type from the bytes. Rejects with the signal's reason, `noCapacity`, or 502 over the limit. */
  store(file: {
    readonly account: string;
    readonly requestId: string;
    readonly body: Buffer | AsyncIterable<Buffer>;
    readonly limitBytes: number;
    readonly signal: AbortSignal;
  }): Promise<GeneratedFile & { readonly createdAt: number }>;
  /** Never rejects: what cannot be removed now expires. */
  delete(ids: readonly string[]): Promise<void>;
  /** Undefined: there never was such a file. */
  find(id: string): Promise<(GeneratedFile & { readonly etag: string }) | "expired" | undefined>;
  /** `end` is inclusive. Throws 410 when the object was deleted, 503 while storage is unavailable. */
  open(
    id: string,
    range: { readonly start: number; readonly end: number } | undefined,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Buffer>>;
  /** Stores the provider job of a call for 24 hours, so that the next delivery continues it. */
  storeProviderJob(requestId: string, job: ProviderJob): Promise<void>;
  findProviderJob(requestId: string): Promise<ProviderJob | undefined>;
}

export interface ProviderJob {
  readonly upstream: string;
  readonly job: string;
}

export interface ExpiryCounts {
  /** Records that were marked expired. */
  readonly expired: number;
  /** Records whose objects were deleted. */
  readonly removed: number;
}

export interface Files {
  /** Creates collections and indexes. Any number of processes may do it at once. */
  prepare(): Promise<void>;
  /** Sets lifecycle rules and CORS of the bucket, where the server supports them. Logs what it does not. Never throws. */
  prepareBucket(): Promise<void>;
  ping(): Promise<void>;
  /** Stores a call's body. Rejects while storage is unavailable. */
  putBody(requestId: string, json: string): Promise<void>;
  getBody(requestId: string, signal: AbortSignal): Promise<string>;
  deleteBody(requestId: string): Promise<void>;
  /** Stores the answer of an `Idempotency-Key` for 24 hours. */
  putAnswer(requestId: string, bytes: Uint8Array): Promise<void>;
  getAnswer(requestId: string): Promise<Buffer>;
  /** Deletes bodies and answers older than 24 hours; returns how many. */
  expireBodies(): Promise<number>;
  readonly uploads: Uploads;
  readonly generated: GeneratedFiles;
  /** One run of expiry, of bounded length. Safe in many workers at once. */
  expire(): Promise<ExpiryCounts>;
}
