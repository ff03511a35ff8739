/**
 * `Idempotency-Key`: the same key and body joins the running work or gets the stored answer, for 24 hours (wire-details,
 * "Uploads and long calls"). Owns the collection `idempotency`: one document for a key of an account, which names the request
 * that has it.
 *
 * An answer is stored before its call is decided, and counts once the ledger says that the call succeeded; so a crash
 * between the two loses neither the answer nor the charge. A call that failed frees its key, so that a corrected retry
 * succeeds. So does one that can end no more, because nobody is left who would end it.
 *
 * Answers are stored compressed: in the document up to 1 MB, larger ones in object storage.
 *
 * Throws `invalidValue("idempotency-key")`, `conflict` for a key that came with another body, `noCapacity` while the object
 * storage is unavailable that a large answer needs. An upload's answer is the upload itself, which is shown as it is when it
 * is asked for again.
 */
import { createHash } from "node:crypto";
import { type mongo as driver, type InferRawDocType, Schema } from "mongoose";
import type { Usage } from "#catalog";
import { conflict, invalidValue, noCapacity, ServiceError } from "#errors";
import type { Files } from "#files";
import type { Money } from "#money";
import { type Clock, sleep } from "#platform/clock";
import { openCollection } from "#platform/collection";
import { answered, isDuplicate, type Mongo } from "#platform/mongo";
import { compress, decompress } from "./compression.ts";

export interface IdempotencyStore {
  prepare(): Promise<void>;
  /** `isAlive`: whether anybody may still end the request that has the key. */
  claim(ask: ClaimRequest, isAlive: (owner: Owner) => Promise<boolean>): Promise<Claim>;
  /** Whether there is something under the key to join or to get: `begin` would not find it free. */
  has(key: Pick<ClaimRequest, "account" | "key">, isAlive: (owner: Owner) => Promise<boolean>): Promise<boolean>;
  /** False: another answer is kept already, or the key is another request's by now. `hash` where it was not known at the beginning. */
  store(id: string, requestId: string, answer: StoredOutcome, hash?: string): Promise<boolean>;
  stored(id: string, requestId: string): Promise<StoredCall | undefined>;
  /** Of a request that ended before anything was decided. */
  release(id: string, requestId: string): Promise<void>;
}

export interface ClaimRequest extends Owner {
  readonly account: string;
  /** As the caller sent it: 1 to 255 characters. */
  readonly key: string;
  /** Of the body; undefined where it is known only once the body was read. */
  readonly hash: string | undefined;
}

/** The request that has a key. */
export interface Owner {
  readonly requestId: string;
  /** The API instance that took it in. */
  readonly instance: string;
  /** The queue that its job goes to, if it has one. */
  readonly pool?: string | undefined;
}

export type Claim =
  /** `before`: the request that had the key and left it without an end. */
  | { readonly kind: "new"; readonly id: string; readonly before?: string }
  | { readonly kind: "running" }
  | { readonly kind: "answered"; readonly requestId: string; readonly hash: string; readonly answer: Answer };

export interface StoredCall {
  readonly text: string;
  readonly usage: Usage;
  readonly estimated: boolean;
  readonly costNanoUsd: bigint;
  /** Headers that the first answer had, such as `x-ignored-params`. */
  readonly headers?: Headers;
}
type Headers = Readonly<Record<string, string>>;
export type StoredOutcome = StoredCall | { readonly upload: string };
export type Answer =
  | { readonly text: string; readonly costNanoUsd: bigint; readonly headers?: Headers }
  | { readonly upload: string };

const lifeMs = 24 * 3_600_000;
/** Compressed answers over this go to object storage. */
const inlineBytes = 1024 * 1024;
const giveBackAgainMs = 1_000;
const mostGiveBacks = 600;

const answer = {
  upload: { type: String },
  zstd: { type: Buffer },
  headers: { type: Map, of: String },
  usage: { type: Map, of: Number },
  estimated: { type: Boolean },
  costNanoUsd: { type: BigInt },
} as const;
const definition = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  requestId: { type: String, required: true },
  instance: { type: String, required: true },
  pool: { type: String },
  hash: { type: String },
  answer: { type: answer, _id: false },
  expiresAt: { type: Date, required: true },
} as const;
const schema = new Schema(definition, { collection: "idempotency", strict: "throw", versionKey: false });
schema.index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

interface StoredAnswer {
  readonly upload?: string;
  /** Absent if it is in object storage. */
  readonly zstd?: Buffer;
  readonly headers?: Headers;
  readonly usage?: Usage;
  readonly estimated?: boolean;
  readonly costNanoUsd?: bigint;
}
type Stored = Omit<InferRawDocType<typeof definition>, "answer"> & { readonly answer?: StoredAnswer };

const idOf = (account: string, key: string) =>
  createHash("sha256")
    .update(JSON.stringify([account, key]))
    .digest("base64url");

export function createIdempotencyStore(deps: {
  mongo: Mongo;
  money: Pick<Money, "entry">;
  files: Pick<Files, "putAnswer" | "getAnswer">;
  clock: Clock;
}): IdempotencyStore {
  const { mongo, money, files, clock } = deps;
  const { collection, prepare } = openCollection<Stored>(mongo, "idempotency", schema);

  const fresh = ({ account, requestId, instance, pool, hash }: ClaimRequest) => ({
    account,
    requestId,
    instance,
    ...(pool !== undefined && { pool }),
    ...(hash !== undefined && { hash }),
    expiresAt: new Date(clock.now() + lifeMs),
  });

  /** A write that is done only after it counted as failed: who wanted the key was told so, and does not come for it. */
  async function taking<T>(id: string, { requestId }: ClaimRequest, write: Promise<T>): Promise<T> {
    try {
      return await answered(write);
    } catch (error) {
      write.then(
        () => giveBack(id, requestId),
        () => undefined,
      );
      throw error;
    }
  }

  async function insert(_id: string, ask: ClaimRequest): Promise<boolean> {
    try {
      await taking(_id, ask, collection.insertOne({ _id, ...fresh(ask) } as Stored));
      return true;
    } catch (error) {
      if (isDuplicate(error)) return false;
      throw error;
    }
  }

  /** From the request that had it. False: somebody else was faster, or its answer has come meanwhile. */
  async function takeOver(_id: string, { requestId, answer }: Stored, ask: ClaimRequest): Promise<boolean> {
    const asItWas = { _id, requestId, ...(!answer && { answer: { $exists: false } }) };
    const taken = await taking(_id, ask, collection.replaceOne(asItWas, fresh(ask) as Stored));
    return taken.modifiedCount === 1;
  }

  const isOver = ({ expiresAt }: Stored) => expiresAt.getTime() <= clock.now();
  const find = (filter: Pick<Stored, "_id"> & Partial<Pick<Stored, "requestId">>) =>
    answered(collection.findOne(filter, { promoteBuffers: true }));
  const textOf = async ({ requestId, answer }: Stored) =>
    decompress(answer?.zstd ?? (await files.getAnswer(requestId)));

  /** How the request that has the key stands: at what cost it answered, that it runs, or that its key is free. */
  async function stateOf(
    { requestId, instance, pool, answer }: Stored,
    isAlive: (owner: Owner) => Promise<boolean>,
  ): Promise<{ readonly costNanoUsd: bigint } | "running" | "free" | "look again"> {
    if (answer?.upload !== undefined) return { costNanoUsd: 0n };
    const entry = await money.entry(requestId);
    if (!entry) {
      if (await isAlive({ requestId, instance, pool: pool ?? undefined })) return "running";
      // Whoever was to end it may have done so between the two looks.
      return (await money.entry(requestId)) ? "look again" : "free";
    }
    return answer && entry.request?.status === "succeeded" ? { costNanoUsd: entry.costNanoUsd } : "free";
  }

  async function answerOf(stored: Stored, costNanoUsd: bigint): Promise<Answer> {
    const { upload, headers } = stored.answer ?? {};
    return upload === undefined ? { text: await textOf(stored), costNanoUsd, ...(headers && { headers }) } : { upload };
  }

  async function take(id: string, ask: ClaimRequest, isAlive: (owner: Owner) => Promise<boolean>): Promise<Claim> {
    for (;;) {
      // Read first: many may wait for one answer, and ask again and again.
      const stored = await find({ _id: id });
      if (!stored) {
        if (await insert(id, ask)) return { kind: "new", id };
        continue;
      }
      const state = isOver(stored) ? "free" : await stateOf(stored, isAlive);
      if (state === "look again") continue;
      if (state !== "free" && ask.hash !== undefined && stored.hash != null && stored.hash !== ask.hash)
        throw conflict("This Idempotency-Key was used with another request.");
      if (state === "running") return { kind: "running" };
      if (state !== "free") {
        const { requestId, hash } = stored;
        return { kind: "answered", requestId, hash: hash ?? "", answer: await answerOf(stored, state.costNanoUsd) };
      }
      if (await takeOver(id, stored, ask)) return { kind: "new", id, before: stored.requestId };
    }
  }

  /** What the document has of an answer; the text of a large one goes to object storage. */
  async function store(requestId: string, { text, ...rest }: StoredCall): Promise<StoredAnswer> {
    const zstd = await compress(text);
    if (zstd.length <= inlineBytes) return { ...rest, zstd };
    await files.putAnswer(requestId, zstd).catch((error: unknown) => {
      throw noCapacity("Storage for large answers is unavailable; nothing was charged.", 5, error);
    });
    return rest;
  }

  async function release(_id: string, requestId: string): Promise<void> {
    await answered(collection.deleteOne({ _id, requestId, answer: { $exists: false } }));
  }

  /** A write that was not answered may stand all the same, and its request would count as alive with its process. */
  async function giveBack(id: string, requestId: string): Promise<void> {
    for (let tries = 0; tries < mostGiveBacks; tries++) {
      try {
        return await release(id, requestId);
      } catch {
        await sleep(clock, giveBackAgainMs);
      }
    }
  }

  return {
    prepare,

    async claim(ask, isAlive) {
      if (ask.key.length < 1 || ask.key.length > 255)
        throw invalidValue("idempotency-key", "Idempotency-Key must have 1 to 255 characters.");
      const id = idOf(ask.account, ask.key);
      try {
        return await take(id, ask, isAlive);
      } catch (error) {
        if (!(error instanceof ServiceError)) void giveBack(id, ask.requestId);
        throw error;
      }
    },

    async has({ account, key }, isAlive) {
      const stored = await find({ _id: idOf(account, key) });
      return stored !== null && !isOver(stored) && (await stateOf(stored, isAlive)) !== "free";
    },

    async store(id, requestId, kept, hash) {
      const answer = "upload" in kept ? kept : await store(requestId, kept);
      const change = { $set: { answer, ...(hash !== undefined && { hash }) } };
      // None yet, or this very one, by a write whose answer was lost.
      const free = { _id: id, requestId, answer: { $in: [null, answer] } } as driver.Filter<Stored>;
      const { matchedCount } = await answered(collection.updateOne(free, change));
      return matchedCount === 1;
    },

    async stored(id, requestId) {
      const stored = await find({ _id: id, requestId });
      if (!stored?.answer?.usage) return undefined;
      const { usage, estimated = false, costNanoUsd = 0n, headers } = stored.answer;
      return { text: await textOf(stored), usage, estimated, costNanoUsd, ...(headers && { headers }) };
    },

    release,
  };
}
