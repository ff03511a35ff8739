/**
 * The audit log of changes by operators (docs/api/admin.md, "Audit log"). Owns the collection `auditLog`, which is
 * append-only: a record gets its result once, and never changes again.
 *
 * The record is written, journaled by a majority, before the change begins, so there is no change without one. If that write
 * fails, the call throws and nothing is changed. If a record has no result, the process died or MongoDB did not accept the
 * result: the change may or may not have been made; its targets show which.
 */
import { Schema } from "mongoose";
import { toServiceError } from "#errors";
import { newId } from "#platform/ids";
import { type DocumentOf, findPage, openCollection, type Page } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import type { Uses } from "#platform/uses";

const definition = {
  _id: { type: String, required: true },
  /** The name of the operator's token. */
  who: { type: String, required: true },
  /** The method and path, such as `POST /accounts/{id}/credits`. */
  action: { type: String, required: true },
  /** Ids of the changed or created objects, and of their account. */
  targets: { type: [String], required: true },
  /** The request's body, accepted by its schema. Bodies of this interface contain no secrets. */
  changes: { type: Schema.Types.Mixed },
  requestId: { type: String, required: true },
  createdAt: { type: Date, required: true },
  /** Missing while the outcome is unknown. */
  status: { type: Number },
  code: { type: String },
} as const;
type Stored = DocumentOf<typeof definition>;

/** Each filter has an index in the order of the list. */
const newestFirst = { createdAt: -1, _id: -1 } as const;

export const auditSchema = {
  module: "audit",
  unsharded: { auditLog: "one small document for each change by an operator" },
  migrations: [
    createCollections("auditLog", [
      {
        collection: "auditLog",
        indexes: [
          { key: newestFirst },
          { key: { who: 1, ...newestFirst } },
          { key: { action: 1, ...newestFirst } },
          { key: { targets: 1, ...newestFirst } },
        ],
      },
    ]),
  ],
} satisfies ModuleSchema;

type AuditRecord = ReturnType<typeof toRecord>;

const toRecord = ({ _id, who, action, targets, changes, requestId, createdAt, status, code }: Stored) => ({
  id: _id,
  who,
  action,
  targets: [...targets],
  changes: (changes ?? null) as Readonly<Record<string, unknown>> | null,
  requestId,
  createdAt,
  status: status ?? null,
  code: code ?? null,
});

interface Intent {
  readonly who: string;
  readonly action: string;
  readonly targets: readonly string[];
  readonly changes?: object | undefined;
  readonly requestId: string;
}

interface Result {
  readonly status: number;
  /** Added to those of the intent. */
  readonly targets?: readonly string[];
  readonly code?: string;
}

interface Filter extends Page {
  readonly who?: string | undefined;
  readonly action?: string | undefined;
  readonly target?: string | undefined;
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
}

export type Audit = ReturnType<typeof createAudit>;

export function createAudit({ mongo, clock, log }: Uses<"mongo" | "clock" | "log">) {
  const { model, collection } = openCollection<Stored>(mongo, "auditLog", definition);

  /** Records the change, runs it, and records its result. */
  async function record<T>(intent: Intent, change: () => Promise<T>, resultOf: (changed: T) => Result): Promise<T> {
    const id = newId("aud");
    await model.create([{ ...intent, _id: id, createdAt: new Date(clock.now()) } as Stored]);
    async function finish({ status, code, targets = [] }: Result): Promise<void> {
      const update = { $set: { status, ...(code && { code }) }, $addToSet: { targets: { $each: [...targets] } } };
      try {
        await model.updateOne({ _id: id }, update);
      } catch (error) {
        // The change is done, so the response must not report a failure.
        log.error({ err: error, audit: id, status }, "the result of an operator's change could not be recorded");
      }
    }
    let changed: T;
    try {
      changed = await change();
    } catch (thrown) {
      const { status, code } = toServiceError(thrown);
      await finish({ status, code });
      throw thrown;
    }
    await finish(resultOf(changed));
    return changed;
  }

  /** Newest first. Throws 400 for an unknown `after`. */
  async function list({ who, action, target, from, to, ...page }: Filter): Promise<AuditRecord[]> {
    const filter = {
      ...(who !== undefined && { who }),
      ...(action !== undefined && { action }),
      ...(target !== undefined && { targets: target }),
      ...((from || to) && { createdAt: { ...(from && { $gte: from }), ...(to && { $lt: to }) } }),
    };
    return (await findPage(collection, page, { unknown: "there is no record", filter })).map(toRecord);
  }

  return { record, list };
}
