import type { UploadRef } from "#formats";
import type { ByteShare } from "#platform/byte-budget";

export type Kind = "image" | "video" | "audio";
export type UploadStatus = "pending" | "active" | "expired" | "deleted";

/** The specification's Upload. Times are unix milliseconds. */
export interface Upload {
  readonly id: string;
  readonly account: string;
  readonly requestId: string;
  readonly mime: string;
  readonly kind: Kind;
  readonly bytes: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly status: UploadStatus;
  /** What it costs: held while pending, charged once it is active, 0 if it never was. */
  readonly costNanoUsd: bigint;
  /** Signed, made anew; null unless active. */
  readonly url: string | null;
  /** Only while pending, of an upload in parts. */
  readonly multipart?: Parts;
}

export interface Parts {
  readonly partSize: number;
  readonly linksExpireAt: number;
  readonly parts: readonly { readonly partNumber: number; readonly url: string; readonly bytes: number }[];
}

export interface UploadAsk {
  readonly account: string;
  readonly keyId: string;
  readonly requestId: string;
  /** The account's: null is the service's own. */
  readonly buybackToken?: string | null | undefined;
}

export interface Uploads {
  /**
   * Holds the cost of `mostBytes` and writes a pending record, before a byte is read. 402, 403, 429, 503. Whoever gets
   * a `Receiving` ends it: by `store` or by `drop`.
   */
  begin(ask: UploadAsk & { readonly mostBytes: number }): Promise<Receiving>;
  /** Of up to 200 MB in parts, which the caller sends to storage. 400 `bytes`, 413, 415 `mime`, and as `begin`. */
  start(ask: UploadAsk & { readonly bytes: number; readonly mime: string }): Promise<Upload>;
  /** Again, or twice at once: the same answer. 400 naming parts (and it stays pending), 404, 410, 415, 503. */
  complete(account: string, id: string): Promise<Upload>;
  /** 404, 410. */
  find(account: string, id: string): Promise<Upload>;
  /** Of the last 24 hours, in every state, newest first. 400 for an `after` that is not there. */
  list(
    account: string,
    page: { readonly limit: number; readonly after?: string | undefined },
  ): Promise<{ readonly data: readonly Upload[]; readonly hasMore: boolean }>;
  /** 404, 410. */
  delete(account: string, id: string): Promise<void>;
  /** In any state, for idempotency: what a request made. */
  byRequest(account: string, requestId: string): Promise<Upload | undefined>;
  /** Owner, life, state and kind of every upload that a request names. Errors name the field of `refs`. */
  check(
    account: string,
    refs: readonly UploadRef[],
  ): Promise<ReadonlyMap<string, { readonly bytes: number; readonly mime: string; readonly kind: Kind }>>;
  /** The same again in the worker, as files that a provider may use. What is read of them is taken from `memory`. */
  resolve(
    account: string,
    refs: readonly UploadRef[],
    signal: AbortSignal,
    memory?: ByteShare,
  ): Promise<ReadonlyMap<string, InputFile>>;
}

export interface Receiving {
  readonly id: string;
  /**
   * Streams to storage while the type is detected, then charges and activates. If it fails nothing stays: no object, no
   * record, no hold. 400 for another length than `bytes` and for what broke off, 413, 415, 503. The body is taken at
   * storage's pace and ended (`return`) as soon as it is of no use.
   */
  store(source: { readonly bytes: number; readonly body: AsyncIterable<Buffer> }): Promise<Upload>;
  /** Gives up: hold released, record gone. After `store` it does nothing. Never rejects. */
  drop(): Promise<void>;
}

/** An upload as a provider may use it. */
export interface InputFile {
  readonly id: string;
  /** The field that names it, for errors. */
  readonly param: string;
  readonly mime: string;
  readonly kind: Kind;
  readonly bytes: number;
  /** A signed address that the provider can fetch it from; undefined where storage cannot be reached from outside. */
  readonly link: string | undefined;
  /**
   * All of it. Throws 400 naming the field if it has more bytes than the provider takes, and 503 if there is no memory for
   * it now.
   */
  read(limitBytes: number): Promise<Buffer>;
  /** The same in base64, to be written into a request so many times. */
  base64(limitBytes: number, times?: number): Promise<string>;
  /** What was read is no longer used. Else its memory is given back when the call ends. */
  release(): void;
}

export interface GeneratedFile {
  readonly id: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly expiresAt: number;
}

/** What models made. Ids cannot be guessed: they are all that is needed to read a file. */
export interface GeneratedFiles {
  /** The type is read from the bytes. Rejects with the signal's reason, `noCapacity`, or 502 over the limit. */
  keep(ask: {
    readonly account: string;
    readonly requestId: string;
    readonly body: Buffer | AsyncIterable<Buffer>;
    readonly limitBytes: number;
    readonly signal: AbortSignal;
  }): Promise<GeneratedFile & { readonly createdAt: number }>;
  /** Those of an attempt that failed. Never rejects: what cannot be removed now expires. */
  drop(ids: readonly string[]): Promise<void>;
  /** Undefined: it never was. */
  find(id: string): Promise<(GeneratedFile & { readonly etag: string }) | "expired" | undefined>;
  /** `end` is inclusive. 410 when the object is gone, 503 while storage is away. */
  open(
    id: string,
    range: { readonly start: number; readonly end: number } | undefined,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Buffer>>;
  /** The provider's job of a call, for 24 hours: the next delivery goes on with it. */
  remember(requestId: string, job: ProviderJob): Promise<void>;
  remembered(requestId: string): Promise<ProviderJob | undefined>;
}

export interface ProviderJob {
  readonly upstream: string;
  readonly job: string;
}

export interface Expired {
  /** Records whose time was over. */
  readonly expired: number;
  /** Objects that are gone. */
  readonly removed: number;
}

export interface Files {
  /** Makes collections and indexes. Any number of processes may do it at once. */
  prepare(): Promise<void>;
  /** Lifecycle rules and CORS of the bucket, where the server takes them; says once what it does not. Never throws. */
  prepareBucket(): Promise<void>;
  ping(): Promise<void>;
  /** Keeps a call's body. Rejects when storage is away. */
  putBody(requestId: string, json: string): Promise<void>;
  getBody(requestId: string, signal: AbortSignal): Promise<string>;
  dropBody(requestId: string): Promise<void>;
  /** An answer under an `Idempotency-Key`, for 24 hours. */
  putAnswer(requestId: string, bytes: Uint8Array): Promise<void>;
  getAnswer(requestId: string): Promise<Buffer>;
  /** Removes bodies whose call ended long ago, and old answers; returns how many. */
  expireBodies(): Promise<number>;
  readonly uploads: Uploads;
  readonly generated: GeneratedFiles;
  /** One round of expiry, of bounded length. Safe in many workers at once. */
  expire(): Promise<Expired>;
}
