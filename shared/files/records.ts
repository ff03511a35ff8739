import { type Collection, type InferRawDocType, mongo, type QueryFilter, Schema } from "mongoose";
import { invalidValue, type ServiceError, uploadDeleted, uploadExpired, uploadNotFound } from "#errors";
import type { Clock } from "#platform/clock";
import { olderThan, openCollection } from "#platform/collection";
import type { Mongo } from "#platform/mongo";
import type { UploadStatus } from "./types.ts";
import { reach } from "./unavailable.ts";

const statuses = ["pending", "active", "expired", "deleted"] as const satisfies readonly UploadStatus[];
const kinds = ["image", "video", "audio"] as const;

/** What uploads and generated files have in common: how they end. */
export const lifeDefinition = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  requestId: { type: String, required: true },
  status: { type: String, enum: statuses, required: true },
  /** Somebody knows its id: the record stays for good. One that nobody was told of goes with its object. */
  announced: { type: Boolean, required: true },
  createdAt: { type: Date, required: true },
  expiresAt: { type: Date, required: true },
  /** When expiry looks at it next. Absent: nothing of it is left in storage, and its money is settled. */
  dueAt: { type: Date },
} as const;

const multipart = {
  /** Which of the key's unfinished uploads in parts it is: no two have the same while they are pending. */
  slot: { type: Number },
  /** Written after storage has begun it. */
  uploadId: { type: String },
  partSize: { type: Number, required: true },
  linksExpireAt: { type: Date, required: true },
  /** Storage was asked to put the parts together, and may have neither them nor the file until then. */
  completingUntil: { type: Date },
} as const;
const definition = {
  ...lifeDefinition,
  /** The id of the API key. */
  key: { type: String, required: true },
  /** The mint that the buyback of its charge goes to. */
  buybackToken: { type: String },
  mime: { type: String },
  kind: { type: String, enum: kinds },
  bytes: { type: Number, required: true },
  held: { type: BigInt, required: true },
  /** What is held while it is pending, and charged once it is active. */
  cost: { type: BigInt, required: true },
  pendingUntil: { type: Date, required: true },
  /** It was active once: its charge stands. */
  activatedAt: { type: Date },
  multipart: { type: multipart, _id: false },
} as const;
const schema = new Schema(definition, { collection: "uploads", strict: "throw", versionKey: false });
schema.index({ account: 1, createdAt: -1, _id: -1 });
schema.index({ requestId: 1 }, { unique: true });
schema.index({ dueAt: 1 }, { sparse: true });
schema.index(
  { key: 1, "multipart.slot": 1 },
  { unique: true, partialFilterExpression: { status: "pending", "multipart.slot": { $exists: true } } },
);

export type StoredUpload = InferRawDocType<typeof definition>;
export type StoredLife = InferRawDocType<typeof lifeDefinition>;

const dayMs = 24 * 3_600_000;
/** Expiry leaves a pending upload alone until whatever began in its time has ended. */
export const settlingMs = 120_000;

/** Exact, whatever expiry has written so far. */
export function statusAt({ status, pendingUntil, expiresAt }: StoredUpload, now: number): UploadStatus {
  const end = status === "pending" ? pendingUntil : status === "active" ? expiresAt : undefined;
  return end !== undefined && end.getTime() <= now ? "expired" : status;
}

/** The 410 of an upload that has ended. */
export const gone = ({ _id }: { _id: string }, status: "expired" | "deleted", param?: string): ServiceError =>
  status === "expired" ? uploadExpired(_id, param) : uploadDeleted(_id, param);

/** The one unique index with a `slot` refused it. */
const isTaken = (error: unknown): boolean =>
  error instanceof mongo.MongoServerError &&
  error.code === 11000 &&
  Object.hasOwn((error["keyPattern"] ?? {}) as object, "multipart.slot");

export type Records = ReturnType<typeof createRecords>;

/** The collection `uploads`. Every change of state is a compare-and-set of one document. */
export function createRecords({ mongo, clock }: { mongo: Mongo; clock: Clock }) {
  const { model, collection, prepare } = openCollection<StoredUpload>(mongo, "uploads", schema);
  const lives = collection as unknown as Collection<StoredLife>;

  async function insert(record: StoredUpload): Promise<void> {
    await reach(model.create([record]));
  }

  /** False: another upload of the key has its slot. */
  async function insertInSlot(record: StoredUpload): Promise<boolean> {
    const inserting = model.create([record]).then(
      () => true,
      (error: unknown) => (isTaken(error) ? false : Promise.reject(error)),
    );
    return reach(inserting);
  }

  /** Of the key's unfinished uploads in parts. */
  async function slots(key: string): Promise<ReadonlySet<number>> {
    const unfinished = { key, status: "pending", "multipart.slot": { $exists: true } } as const;
    const found = await reach(collection.find(unfinished, { projection: { "multipart.slot": 1 } }).toArray());
    return new Set(found.flatMap(({ multipart: parts }) => parts?.slot ?? []));
  }

  const read = (id: string): Promise<StoredUpload | null> => reach(model.findById(id).lean<StoredUpload>().exec());

  /** One that its owner was told of. 404. */
  async function own(account: string, id: string): Promise<StoredUpload> {
    const record = await reach(model.findOne({ _id: id, account, announced: true }).lean<StoredUpload>().exec());
    if (!record) throw uploadNotFound(id);
    return record;
  }

  const change = (filter: QueryFilter<StoredUpload>, set: Partial<StoredUpload>): Promise<StoredUpload | null> =>
    reach(model.findOneAndUpdate(filter, { $set: set }, { returnDocument: "after" }).lean<StoredUpload>().exec());

  /** Null: it is not pending any more. */
  function update(id: string, set: Partial<Omit<StoredUpload, "status">>): Promise<StoredUpload | null> {
    return change({ _id: id, status: "pending" }, set);
  }

  /** Null: it was not pending, or no longer in its time. */
  function activate(id: string, found: Pick<StoredUpload, "mime" | "kind" | "bytes" | "cost" | "expiresAt">) {
    const now = new Date(clock.now());
    const set = { ...found, announced: true, activatedAt: now, dueAt: found.expiresAt };
    return change({ _id: id, status: "pending", pendingUntil: { $gt: now } }, { ...set, status: "active" });
  }

  /** By its owner. Null: it has ended already. */
  function remove(id: string): Promise<StoredUpload | null> {
    const now = new Date(clock.now());
    const pending = { status: "pending", pendingUntil: { $gt: now } } as const;
    const active = { status: "active", expiresAt: { $gt: now } } as const;
    return change({ _id: id, $or: [pending, active] }, { status: "deleted", dueAt: now });
  }

  /**
   * It failed: a pending one ends, as deleted, or as expired if its time was over. `dueAt`: when expiry is to look after
   * what cannot be cleaned up at once. Null: it was not pending.
   */
  async function fail(id: string, dueAt: Date): Promise<StoredUpload | null> {
    const now = new Date(clock.now());
    const pending = { _id: id, status: "pending" } as const;
    return (
      (await change({ ...pending, pendingUntil: { $gt: now } }, { status: "deleted", dueAt })) ??
      (await change(pending, { status: "expired", dueAt }))
    );
  }

  /** Of the last 24 hours, newest first; one more than `limit` if there are more. */
  async function list(account: string, { limit, after }: { limit: number; after?: string | undefined }) {
    const listed = { account, announced: true };
    const found = after === undefined ? undefined : model.findOne({ ...listed, _id: after }).lean<StoredUpload>();
    const last = found && (await reach(found.exec()));
    if (last === null) throw invalidValue("after", `after: this account has no upload '${after}'.`);
    const older = last && olderThan(last._id, last.createdAt);
    const recent = { $gt: new Date(clock.now() - dayMs) };
    const page = model
      .find({ ...listed, createdAt: recent, ...(older && { $and: [older] }) })
      .sort({ createdAt: -1, _id: -1 });
    return reach(
      page
        .limit(limit + 1)
        .lean<StoredUpload[]>()
        .exec(),
    );
  }

  const byRequest = (account: string, requestId: string): Promise<StoredUpload | null> =>
    reach(model.findOne({ requestId, account, announced: true }).lean<StoredUpload>().exec());

  const all = (ids: readonly string[]): Promise<StoredUpload[]> =>
    reach(
      model
        .find({ _id: { $in: [...ids] } })
        .lean<StoredUpload[]>()
        .exec(),
    );

  return {
    lives,
    prepare,
    insert,
    insertInSlot,
    slots,
    read,
    own,
    update,
    activate,
    remove,
    fail,
    list,
    byRequest,
    all,
  };
}
