import { type Collection, mongo, type QueryFilter } from "mongoose";
import { noCapacity, ServiceError, uploadDeleted, uploadExpired, uploadNotFound } from "#errors";
import { dayMs } from "#platform/clock";
import { newUploadId } from "#platform/ids";
import { type DocumentOf, findPage, openCollection, type Page } from "#platform/mongo/collection";
import { duplicateKey } from "#platform/mongo/connection";
import type { Uses } from "#platform/uses";
import { mediaKinds } from "./media-types.ts";

const statuses = ["pending", "active", "expired", "deleted"] as const;
type UploadStatus = (typeof statuses)[number];

/** The fields that uploads and generated files share and that expiry reads. */
export const objectFields = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  requestId: { type: String, required: true },
  status: { type: String, enum: statuses, required: true },
  /** A caller has the id, so the record is stored forever. Other records are deleted together with their object. */
  announced: { type: Boolean, required: true },
  createdAt: { type: Date, required: true },
  expiresAt: { type: Date, required: true },
  /** The time at which expiry next checks the record. Unset once its object is deleted and its money is settled. */
  dueAt: { type: Date },
} as const;

const multipart = {
  /** Unique among the pending multipart uploads of a key, which bounds their number. */
  slot: { type: Number },
  /** Unique among those of an account. */
  accountSlot: { type: Number },
  /** Written after storage has created the multipart upload. */
  uploadId: { type: String },
  partSize: { type: Number, required: true },
  linksExpireAt: { type: Date, required: true },
  /** Storage assembles the parts until this time and may have neither the parts nor the file. */
  completingUntil: { type: Date },
} as const;
const definition = {
  ...objectFields,
  /** The id of the API key. */
  key: { type: String, required: true },
  /** The mint of the token that the buyback of the charge purchases. */
  buybackToken: { type: String },
  mime: { type: String },
  kind: { type: String, enum: mediaKinds },
  bytes: { type: Number, required: true },
  held: { type: BigInt, required: true },
  /** The amount held while the upload is pending, and charged once it is active. */
  cost: { type: BigInt, required: true },
  /** The deadline of an upload that was never active; `expiresAt` is that of an active one. */
  pendingUntil: { type: Date, required: true },
  /** Set if the upload was active, in which case its charge remains valid. */
  activatedAt: { type: Date },
  multipart: { type: multipart, _id: false },
} as const;

/** Small, because it contains only pending uploads. */
export const pendingIndex = { status: 1, dueAt: 1 } as const;
const countLimit = 100_000;

export type StoredUpload = DocumentOf<typeof definition>;
export type StoredObject = DocumentOf<typeof objectFields>;

/** Uploads, generated files and stored responses are deleted after this time. */
export const fileLifetimeMs = dayMs;
/** A multipart upload can be completed for this long after its start. */
export const partsPendingMs = 70 * 60_000;
/** Operations that start before an upload's `pendingUntil` end within this time; expiry waits for them. */
export const expiryGraceMs = 120_000;

/** Returns the status at a moment, even if expiry has not run yet. */
export function statusAt({ status, pendingUntil, expiresAt }: StoredUpload, now: number): UploadStatus {
  const end = status === "pending" ? pendingUntil : status === "active" ? expiresAt : undefined;
  return end !== undefined && end.getTime() <= now ? "expired" : status;
}

export const uploadKey = (id: string) => `uploads/${id}`;

export interface UploadRequest {
  readonly account: string;
  readonly keyId: string;
  readonly requestId: string;
  /** The account's choice; null selects the service's own token. */
  readonly buybackToken?: string | null | undefined;
  /** Called once the cost is held. If it throws, the upload is refused and the hold is released. */
  readonly onHeld?: ((heldNanoUsd: bigint) => Promise<void>) | undefined;
}

/** Creates the record of an upload that starts now and fails unless it is active within `pendingMs`. */
export const newRecord = (
  { account, keyId, requestId, buybackToken }: UploadRequest,
  { now, pendingMs, bytes, held }: { now: number; pendingMs: number; bytes: number; held: bigint },
): StoredUpload => ({
  _id: newUploadId(),
  account,
  key: keyId,
  ...(buybackToken != null && { buybackToken }),
  requestId,
  status: "pending",
  announced: false,
  bytes,
  held,
  cost: held,
  createdAt: new Date(now),
  expiresAt: new Date(now + fileLifetimeMs),
  pendingUntil: new Date(now + pendingMs),
  dueAt: new Date(now + pendingMs + expiryGraceMs),
});

interface TakenSlots {
  readonly key: string;
  readonly slot: number | null | undefined;
  /** Missing in uploads that the previous version began. */
  readonly accountSlot: number | null | undefined;
}

const isSlotTaken = (error: unknown): boolean =>
  error instanceof mongo.MongoServerError &&
  error.code === duplicateKey &&
  Object.keys((error["keyPattern"] ?? {}) as object).some((name) => name.startsWith("multipart."));

export async function fromMongo<T>(operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw noCapacity("The records of files cannot be reached right now.", 1, error);
  }
}

export const uploadEnded = ({ _id }: { _id: string }, status: UploadStatus, param?: string): ServiceError =>
  status === "deleted" ? uploadDeleted(_id, param) : uploadExpired(_id, param);

export type Records = ReturnType<typeof createRecords>;

/** The collection `uploads`. Every change of state is a compare-and-set of one document. */
export function createRecords({ mongo, clock }: Uses<"mongo" | "clock">) {
  const { model, collection } = openCollection<StoredUpload>(mongo, "uploads", definition);
  const objects = collection as unknown as Collection<StoredObject>;

  async function insert(record: StoredUpload): Promise<void> {
    await fromMongo(model.create([record]));
  }

  /** Returns false if another upload of the key or the account has one of its slots. */
  async function insertInSlot(record: StoredUpload): Promise<boolean> {
    try {
      await insert(record);
      return true;
    } catch (error) {
      if (isSlotTaken((error as Error).cause)) return false;
      throw error;
    }
  }

  /** The slots that an account's pending multipart uploads have. */
  async function takenSlots(account: string): Promise<readonly TakenSlots[]> {
    const pending = { account, status: "pending", "multipart.slot": { $exists: true } } as const;
    const projection = { key: 1, "multipart.slot": 1, "multipart.accountSlot": 1 };
    const found = await fromMongo(collection.find(pending, { projection }).toArray());
    return found.map(({ key, multipart: parts }) => ({ key, slot: parts?.slot, accountSlot: parts?.accountSlot }));
  }

  const findOne = (filter: QueryFilter<StoredUpload>): Promise<StoredUpload | null> =>
    fromMongo(model.findOne(filter).lean<StoredUpload>().exec());

  const find = (id: string) => findOne({ _id: id });

  /** Finds an upload whose id its owner has received. Throws 404. */
  async function findOwned(account: string, id: string): Promise<StoredUpload> {
    const record = await findOne({ _id: id, account, announced: true });
    if (!record) throw uploadNotFound(id);
    return record;
  }

  const change = (filter: QueryFilter<StoredUpload>, set: Partial<StoredUpload>): Promise<StoredUpload | null> =>
    fromMongo(model.findOneAndUpdate(filter, { $set: set }, { returnDocument: "after" }).lean<StoredUpload>().exec());

  /** Returns null if the upload is no longer pending. */
  function update(id: string, set: Partial<Omit<StoredUpload, "status">>): Promise<StoredUpload | null> {
    return change({ _id: id, status: "pending" }, set);
  }

  async function postpone(id: string, dueAt: Date): Promise<void> {
    await fromMongo(collection.updateOne({ _id: id, status: "pending" }, { $set: { dueAt } }));
  }

  const isPending = async (account: string, requestId: string): Promise<boolean> =>
    (await findOne({ account, requestId, status: "pending" })) !== null;

  /** Returns null if the upload was not pending or had expired. */
  function activate(id: string, found: Pick<StoredUpload, "mime" | "kind" | "bytes" | "cost" | "expiresAt">) {
    const now = new Date(clock.now());
    const set = { ...found, announced: true, activatedAt: now, dueAt: found.expiresAt };
    return change({ _id: id, status: "pending", pendingUntil: { $gt: now } }, { ...set, status: "active" });
  }

  /** Returns null if the upload has already ended. */
  function remove(id: string): Promise<StoredUpload | null> {
    const now = new Date(clock.now());
    const pending = { status: "pending", pendingUntil: { $gt: now } } as const;
    const active = { status: "active", expiresAt: { $gt: now } } as const;
    return change({ _id: id, $or: [pending, active] }, { status: "deleted", dueAt: now });
  }

  /**
   * Ends a pending upload as deleted, or as expired if its deadline has passed. `dueAt` is the time at which expiry
   * cleans up what the caller cannot. Returns null if the upload was not pending.
   */
  async function fail(id: string, dueAt: Date): Promise<StoredUpload | null> {
    const now = new Date(clock.now());
    const pending = { _id: id, status: "pending" } as const;
    return (
      (await change({ ...pending, pendingUntil: { $gt: now } }, { status: "deleted", dueAt })) ??
      (await change(pending, { status: "expired", dueAt }))
    );
  }

  /**
   * Lists uploads of the last 24 hours, and older ones that are still active, newest first. Returns one more than
   * `limit` if there are more.
   */
  function list(account: string, { limit, after }: Page): Promise<StoredUpload[]> {
    const now = clock.now();
    // Bounds the index range; a multipart upload expires up to this much later than others.
    const createdAt = { $gt: new Date(now - fileLifetimeMs - partsPendingMs) };
    const filter = { createdAt, expiresAt: { $gt: new Date(now) } };
    const query = { unknown: "this account has no upload", owner: { account, announced: true }, filter };
    return fromMongo(findPage(collection, { limit: limit + 1, after }, query));
  }

  const findByRequest = (account: string, requestId: string) => findOne({ requestId, account, announced: true });

  /** Counts up to `countLimit` of each state from indexes, because records of uploads are stored forever. */
  async function count() {
    const now = new Date(clock.now());
    const counted = (filter: object, hint: object) =>
      fromMongo(objects.countDocuments(filter, { limit: countLimit, hint: hint as mongo.Hint }));
    const later = { dueAt: { $gt: now } };
    const [pending, due, notDue] = await Promise.all([
      counted({ status: "pending", ...later }, pendingIndex),
      counted({ dueAt: { $lte: now } }, { dueAt: 1 }),
      counted(later, { dueAt: 1 }),
    ]);
    return { pending, active: notDue - Math.min(pending, notDue), due };
  }

  function findAll(ids: readonly string[]): Promise<StoredUpload[]> {
    const found = model.find({ _id: { $in: [...ids] } });
    return fromMongo(found.lean<StoredUpload[]>().exec());
  }

  return {
    objects,
    insert,
    insertInSlot,
    takenSlots,
    find,
    findOwned,
    update,
    postpone,
    isPending,
    activate,
    remove,
    fail,
    list,
    findByRequest,
    findAll,
    count,
  };
}
