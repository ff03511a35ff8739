import { createHash } from "node:crypto";
import type { Request, Response } from "express";
import { idempotencyKeyReused, noCapacity } from "#errors";
import type { Files, Upload } from "#files";
import type { Caller } from "#keys";
import type { Money } from "#money";
import type { ByteBudget } from "#platform/byte-budget";
import { retry } from "#platform/concurrency/retry";
import { type JsonBody, sendContinue } from "../http/body.ts";
import { localsOf } from "../http/headers.ts";
import { parse } from "../http/input.ts";
import { hashed, type UploadBody, uploadBody } from "../http/upload-body.ts";
import { type Claimed, claimKey, type IdempotencyDeps, isSettled, markReplayed, releaseKey } from "../idempotency.ts";
import { newUpload } from "./upload-object.ts";

export interface CreateDeps extends IdempotencyDeps {
  readonly files: Pick<Files, "uploads">;
  readonly money: Pick<Money, "endUncaptured">;
  readonly instance: string;
  readonly syncTimeoutMs: number;
  readonly spoolBudget: ByteBudget;
}

/** One `POST /v1/uploads`. */
export interface UploadCall {
  readonly req: Request;
  readonly res: Response;
  readonly caller: Caller;
  /** Counts the hold against the key's budget. */
  readonly onHeld?: (heldNanoUsd: bigint) => Promise<void>;
}

interface Created {
  readonly upload: Upload;
  /** Hash of the JSON text or of the file's bytes. The same file is the same request, raw or in a form. */
  readonly hash?: string | undefined;
}

type Digest = UploadBody["digest"];

const uploadRequest = ({ res, onHeld, caller: { account, keyId, buybackToken } }: UploadCall) => ({
  onHeld,
  account,
  keyId,
  buybackToken,
  requestId: localsOf(res).requestId,
});

/** Starts an upload in parts. */
export function startUpload(deps: CreateDeps, call: UploadCall, json: JsonBody): Promise<Upload> {
  const hash = createHash("sha256").update("/v1/uploads\n").update(json.text).digest("base64url");
  return once(deps, call, hash, undefined, async () => {
    const upload = await deps.files.uploads.start({ ...uploadRequest(call), ...parse(newUpload, json.value) });
    return { upload, hash };
  });
}

/** Receives a file, as a raw body or in a form. */
export function receiveUpload(deps: CreateDeps, call: UploadCall): Promise<Upload> {
  const { req, res, caller } = call;
  const body = uploadBody(req, deps.clock, deps.spoolBudget.share(caller.account));
  const digest: Digest = () => {
    sendContinue(req, res);
    return body.digest();
  };
  return once(deps, call, undefined, digest, (needsHash) => receive(deps, call, body, needsHash));
}

async function receive(
  { files }: CreateDeps,
  call: UploadCall,
  body: UploadBody,
  needsHash: boolean,
): Promise<Created> {
  const receiving = await files.uploads.begin({ ...uploadRequest(call), maxBytes: body.maxBytes });
  try {
    sendContinue(call.req, call.res);
    const hash = needsHash ? createHash("sha256") : undefined;
    const upload = await body.read((source) => receiving.store(hash ? hashed(source, hash) : source));
    return { upload, hash: hash?.digest("base64url") };
  } catch (error) {
    await receiving.cancel();
    throw error;
  }
}

/** Creates the upload once for an `Idempotency-Key`, or on every request without one. */
async function once(
  deps: CreateDeps,
  call: UploadCall,
  hash: string | undefined,
  digest: Digest | undefined,
  create: (needsHash: boolean) => Promise<Created>,
): Promise<Upload> {
  const { req, res, caller } = call;
  const key = req.get("idempotency-key");
  if (key === undefined) return (await create(false)).upload;

  const { requestId, arrivedAt } = localsOf(res);
  const claim = { account: caller.account, key, hash, requestId, instance: deps.instance };
  const claimed = await claimKey(deps, claim, { answerBy: arrivedAt + deps.syncTimeoutMs, res }, isSettled);
  if (claimed.kind === "answered") return findEarlier(deps, call, claimed, digest);
  let created: Created;
  try {
    const { before } = claimed;
    const recovered = before === undefined ? undefined : await recoverOrEnd(deps, call, before, digest);
    created = recovered ?? (await create(true));
  } catch (error) {
    await releaseKey(deps, claimed.id, requestId);
    throw error;
  }
  await storeAnswer(deps, claimed.id, requestId, created);
  return created.upload;
}

/** The current state of the upload that an earlier request created from the same file. */
async function findEarlier(
  { files }: CreateDeps,
  { res, caller: { account } }: UploadCall,
  { requestId, hash, answer }: Extract<Claimed, { kind: "answered" }>,
  digest: Digest | undefined,
): Promise<Upload> {
  if (!("upload" in answer)) throw idempotencyKeyReused();
  if (digest && (await digest()).hash !== hash) throw idempotencyKeyReused();
  const upload =
    (await files.uploads.findByRequest(account, requestId)) ?? (await files.uploads.find(account, answer.upload));
  markReplayed(res, upload.requestId);
  return upload;
}

/** Finds an upload that an instance created before it died. Its hash is lost, so only the length is compared. */
async function recover(
  { files }: CreateDeps,
  { res, caller }: UploadCall,
  before: string,
  digest: Digest | undefined,
): Promise<Created | undefined> {
  const upload = await files.uploads.findByRequest(caller.account, before);
  if (!upload || (upload.status !== "active" && !upload.multipart)) return undefined;
  const file = await digest?.();
  if (file && file.bytes !== upload.bytes) throw idempotencyKeyReused();
  markReplayed(res, upload.requestId);
  return { upload, hash: file?.hash };
}

/**
 * Ends a request that is not recovered: its instance may still be alive, and nothing it completes from here on may be
 * charged.
 */
async function recoverOrEnd(
  deps: CreateDeps,
  call: UploadCall,
  before: string,
  digest: Digest | undefined,
): Promise<Created | undefined> {
  const recovered = await recover(deps, call, before, digest);
  if (recovered) return recovered;
  const { request } = await deps.money.endUncaptured(call.caller.account, before);
  return request?.status === "succeeded" ? recover(deps, call, before, digest) : undefined;
}

const backoff = { firstMs: 1_000, maxMs: 1_000 };

/**
 * Retries until it succeeds, because the upload is already charged. If the process stops first, the next request recovers
 * the upload.
 */
async function storeAnswer(
  { idempotency, clock, ending, log }: CreateDeps,
  id: string,
  requestId: string,
  { upload, hash }: Created,
): Promise<void> {
  const retryIf = (error: unknown) => {
    log.warn({ err: (error as Error).message, requestId }, "the idempotency key of an upload could not be stored");
    return !ending();
  };
  try {
    await retry({ clock, backoff, retryIf }, () => idempotency.storeUpload(id, requestId, upload.id, hash));
  } catch (error) {
    throw noCapacity("The Idempotency-Key cannot be stored right now; repeat the request.", 1, error);
  }
}
