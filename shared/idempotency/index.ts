/**
 * `Idempotency-Key`: the same key and body joins the running work or gets the stored response for 24 hours
 * (docs/api/wire-details.md, "Uploads and long calls"). Owns the collection `idempotency`: one document for each key of
 * an account, which names the request that holds it.
 *
 * A response is stored before its call is captured, and becomes valid once the ledger says that the call succeeded; so
 * a crash between the two loses neither the response nor the charge. A failed call frees its key, so that a corrected
 * retry succeeds. So does a call that can no longer end because its process and its job are gone. It is first captured
 * at zero, in case they are still alive.
 *
 * The response of an upload is its id, so that a repeated request returns its current state.
 *
 * Throws `invalidValue("idempotency-key")`, `conflict` for a key that was used with another body, and `noCapacity` if a
 * large response cannot be stored.
 */
import type { mongo as driver } from "mongoose";
import { type DetachedCalls, isEnded, type PackedAnswer, type Reserve, type StoredAnswer } from "#detached-calls";
import { checkIdempotencyKey, idempotencyKeyReused, ServiceError } from "#errors";
import type { Money } from "#money";
import { dayMs } from "#platform/clock";
import { retry } from "#platform/concurrency/retry";
import { hashedId } from "#platform/ids";
import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { isDuplicate } from "#platform/mongo/connection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import { UnansweredError } from "#platform/mongo/timeouts";
import type { Uses } from "#platform/uses";

export interface ClaimRequest extends Owner {
  readonly account: string;
  /** The unmodified header: 1 to 255 characters. */
  readonly key: string;
  /** The hash of the request. Undefined until the body has been read, if the hash depends on it. */
  readonly hash: string | undefined;
}

/** Resolves to true if some process may still end the request that holds a key. */
type IsAlive = (owner: Owner) => Promise<boolean>;

/** The request that holds a key. */
export interface Owner {
  readonly requestId: string;
  /** The API instance that received it. */
  readonly instance: string;
  /** The queue of its job, if it has one. */
  readonly pool?: string | undefined;
}

export type Claim =
  /** `before`: the request that held the key previously. A call is captured; an upload may not have ended. */
  | { readonly kind: "new"; readonly id: string; readonly before?: string }
  /** `isJob`: the request is a job, which its account can read. */
  | { readonly kind: "running"; readonly requestId: string; readonly isJob: boolean }
  | { readonly kind: "answered"; readonly requestId: string; readonly hash: string; readonly answer: Answer };

export type Answer = Pick<StoredAnswer, "text" | "costNanoUsd" | "headers"> | { readonly upload: string };

const releaseBackoff = { firstMs: 1_000, maxMs: 1_000 };
const releaseTimeoutMs = 600_000;

/** A `dead` request is not captured, and no live process is known that could end it. */
type State<A> = { readonly answer: A } | { readonly isJob: boolean } | "free" | "dead" | "changed";
const isFree = <A>(state: State<A>): state is "free" | "dead" => state === "free" || state === "dead";

const definition = {
  /** A hash of the account and the key. */
  _id: { type: String, required: true },
  account: { type: String, required: true },
  requestId: { type: String, required: true },
  instance: { type: String, required: true },
  pool: { type: String },
  hash: { type: String },
  /** The answer of an upload. Those of calls are detached calls, except those that version 1.0.0 stored here. */
  answer: { type: Object },
  expiresAt: { type: Date, required: true },
} as const;
type Stored = DocumentOf<typeof definition, { answer?: { readonly upload: string } | PackedAnswer }>;

export const idempotencySchema = {
  module: "idempotency",
  shardKeys: { idempotency: "_id" },
  migrations: [
    createCollections("idempotency", [
      { collection: "idempotency", indexes: [{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }] },
    ]),
  ],
} satisfies ModuleSchema;

export function createIdempotencyStore(
  deps: Uses<"mongo" | "clock"> & {
    money: Pick<Money, "entry" | "endUncaptured">;
    detachedCalls: Pick<DetachedCalls, "answer" | "find" | "hasAnswer" | "unpack">;
  },
) {
  const { mongo, money, detachedCalls, clock } = deps;
  const { collection } = openCollection<Stored>(mongo, "idempotency", definition);

  const newClaim = ({ account, requestId, instance, pool, hash }: ClaimRequest) => ({
    account,
    requestId,
    instance,
    ...(pool !== undefined && { pool }),
    ...(hash !== undefined && { hash }),
    expiresAt: new Date(clock.now() + dayMs),
  });

  /** A write that succeeds after it was treated as failed is undone, because its request was refused. */
  async function claiming<T>(id: string, { requestId }: ClaimRequest, write: Promise<T>): Promise<T> {
    try {
      return await write;
    } catch (error) {
      if (error instanceof UnansweredError)
        error.operation.then(
          () => releaseLater(id, requestId),
          () => undefined,
        );
      throw error;
    }
  }

  async function insert(_id: string, request: ClaimRequest): Promise<boolean> {
    try {
      await claiming(_id, request, collection.insertOne({ _id, ...newClaim(request) } as Stored));
      return true;
    } catch (error) {
      if (isDuplicate(error)) return false;
      throw error;
    }
  }

  /** Returns false if another request was faster, or if the previous request's response has been stored since. */
  async function takeOver(_id: string, { requestId, answer }: Stored, request: ClaimRequest): Promise<boolean> {
    const unchanged = { _id, requestId, ...(!answer && { answer: { $exists: false } }) };
    const replaced = await claiming(_id, request, collection.replaceOne(unchanged, newClaim(request) as Stored));
    return replaced.modifiedCount === 1;
  }

  const isExpired = ({ expiresAt }: Stored) => expiresAt.getTime() <= clock.now();
  const find = (filter: Pick<Stored, "_id"> & Partial<Pick<Stored, "requestId">>) =>
    collection.findOne(filter, { promoteBuffers: true });

  /** `read` resolves to the stored answer of a call that succeeded, if there is one. */
  async function stateOf<A>(
    { account, requestId, instance, pool, answer }: Stored,
    isAlive: IsAlive,
    read: (costNanoUsd: bigint) => Promise<A | undefined>,
  ): Promise<State<A | { readonly upload: string }>> {
    if (answer && "upload" in answer) return { answer };
    const entry = await money.entry(account, requestId);
    if (!entry) {
      const job = await detachedCalls.find(account, requestId);
      const isJob = job !== undefined && !isEnded(job);
      if (isJob || (await isAlive({ requestId, instance, pool }))) return { isJob };
      // The request may have ended between the two reads.
      return (await money.entry(account, requestId)) ? "changed" : "dead";
    }
    if (entry.request?.status !== "succeeded") return "free";
    const stored = await read(entry.costNanoUsd);
    return stored === undefined ? "free" : { answer: stored };
  }

  const reading =
    ({ account, requestId, answer }: Stored, reserve: Reserve | undefined) =>
    async (costNanoUsd: bigint) => {
      const stored =
        answer && !("upload" in answer)
          ? await detachedCalls.unpack(requestId, answer, reserve)
          : await detachedCalls.answer(account, requestId, reserve);
      if (!stored) return undefined;
      const { text, headers } = stored;
      return { text, costNanoUsd, ...(headers && { headers }) };
    };

  async function claim(id: string, request: ClaimRequest, isAlive: IsAlive, reserve?: Reserve): Promise<Claim> {
    for (;;) {
      // Read first, because many requests may wait and poll for one response.
      const stored = await find({ _id: id });
      if (!stored) {
        if (await insert(id, request)) return { kind: "new", id };
        continue;
      }
      const state = isExpired(stored) ? "free" : await stateOf(stored, isAlive, reading(stored, reserve));
      if (state === "changed") continue;
      // A seemingly dead process may still capture the call, so it is captured here before another call runs.
      if (state === "dead" && stored.pool !== undefined) {
        await money.endUncaptured(stored.account, stored.requestId);
        continue;
      }
      if (isFree(state)) {
        if (await takeOver(id, stored, request)) return { kind: "new", id, before: stored.requestId };
        continue;
      }
      const { requestId, hash } = stored;
      if (request.hash !== undefined && hash !== undefined && hash !== request.hash) throw idempotencyKeyReused();
      if ("isJob" in state) return { kind: "running", requestId, ...state };
      return { kind: "answered", requestId, hash: hash ?? "", answer: state.answer };
    }
  }

  /** Releases the key of a request that ended before its call was captured. */
  async function release(_id: string, requestId: string): Promise<void> {
    await collection.deleteOne({ _id, requestId, answer: { $exists: false } });
  }

  /** A claim that MongoDB did not confirm may exist, and would count as running while this process lives. */
  async function releaseLater(id: string, requestId: string): Promise<void> {
    const signal = AbortSignal.timeout(releaseTimeoutMs);
    await retry({ clock, signal, backoff: releaseBackoff }, () => release(id, requestId)).catch(() => undefined);
  }

  return {
    /** `reserve` is called before a stored response is read. */
    async claim(request: ClaimRequest, isAlive: IsAlive, reserve?: Reserve): Promise<Claim> {
      const { account, key, requestId } = request;
      checkIdempotencyKey(key);
      const id = hashedId(account, key);
      try {
        return await claim(id, request, isAlive, reserve);
      } catch (error) {
        if (!(error instanceof ServiceError)) void releaseLater(id, requestId);
        throw error;
      }
    },

    /** Returns true if the key holds running work or a response, so that `claim` would not find it free. */
    async has({ account, key }: Pick<ClaimRequest, "account" | "key">, isAlive: IsAlive): Promise<boolean> {
      const stored = await find({ _id: hashedId(account, key) });
      if (stored === null || isExpired(stored)) return false;
      const { requestId, answer } = stored;
      const exists = async () => (answer || (await detachedCalls.hasAnswer(account, requestId)) ? true : undefined);
      return !isFree(await stateOf(stored, isAlive, exists));
    },

    /**
     * Stores the id of an upload. Returns false if another one is already stored, or if another request now holds the key.
     * `hash` is set if the claim did not know it.
     */
    async storeUpload(id: string, requestId: string, upload: string, hash?: string): Promise<boolean> {
      const answer = { upload };
      const change = { $set: { answer, ...(hash !== undefined && { hash }) } };
      // Matches no answer, or this same one from a write that was not confirmed.
      const open = { _id: id, requestId, answer: { $in: [null, answer] } } as driver.Filter<Stored>;
      const { matchedCount } = await collection.updateOne(open, change);
      return matchedCount === 1;
    },

    release,
  };
}

export type IdempotencyStore = ReturnType<typeof createIdempotencyStore>;
