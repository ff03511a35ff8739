import type { mongo as driver } from "mongoose";
import { conflict, notFound } from "#errors";
import { findPage, type Page } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import type {
  Collections,
  ProviderKeyConfig,
  ProviderKeyMode,
  ProviderKeyStatus,
  StoredProviderKey,
} from "./collection.ts";

const maxKeys = 100;
const usedEveryMs = 60_000;
const maxRecentlyUsed = 10_000;
/** A state that has not changed is written at most this often. */
const sameStateMs = 1_000;
const eventsPerRun = 500;

/** A provider key without its credential. */
export interface ProviderKey {
  readonly id: string;
  readonly account: string;
  /** The upstream of the catalog that takes the credential; `provider` in the API. */
  readonly upstream: string;
  readonly name: string | null;
  /** The shown part of the credential, such as `sk-...AbCd`. */
  readonly label: string;
  readonly mode: ProviderKeyMode;
  /** Keys with lower numbers are tried first. */
  readonly priority: number;
  readonly disabled: boolean;
  /** Ids of models; null stands for all. */
  readonly models: readonly string[] | null;
  /** The account's keys that may use it; null stands for all. */
  readonly keyIds: readonly string[] | null;
  readonly config: ProviderKeyConfig;
  /** The number of the credential: raised with each rotation. */
  readonly version: number;
  readonly status: ProviderKeyStatus;
  readonly statusMessage: string | null;
  readonly checkedAt: Date | null;
  readonly lastUsedAt: Date | null;
  readonly createdAt: Date;
}

export type SealedProviderKey = ProviderKey & { readonly sealed: string };

/** The known state of a credential. */
export interface ProviderKeyState {
  readonly status: ProviderKeyStatus;
  readonly message?: string | undefined;
}

/** A credential, sealed under `sealedAs`. */
export interface NewCredential {
  readonly sealed: string;
  readonly label: string;
  readonly version: number;
}

export interface ProviderKeyFields {
  readonly name?: string | null | undefined;
  readonly mode?: ProviderKeyMode | undefined;
  readonly priority?: number | undefined;
  readonly disabled?: boolean | undefined;
  readonly models?: readonly string[] | null | undefined;
  readonly keyIds?: readonly string[] | null | undefined;
  readonly config?: ProviderKeyConfig | undefined;
}

export type NewProviderKey = ProviderKeyFields &
  NewCredential & {
    readonly id: string;
    readonly upstream: string;
    readonly config: ProviderKeyConfig;
    /** The outcome of its check, if one was made. */
    readonly state: ProviderKeyState | undefined;
  };

const toRecord = (stored: StoredProviderKey): ProviderKey => ({
  id: stored._id,
  account: stored.account,
  upstream: stored.upstream,
  name: stored.name ?? null,
  label: stored.label,
  mode: stored.mode,
  priority: stored.priority,
  disabled: stored.disabled ?? false,
  models: stored.models ?? null,
  keyIds: stored.keyIds ?? null,
  config: stored.config,
  version: stored.version,
  status: stored.status,
  statusMessage: stored.statusMessage ?? null,
  checkedAt: stored.checkedAt ?? null,
  lastUsedAt: stored.lastUsedAt ?? null,
  createdAt: stored.createdAt,
});

type Filter = driver.Filter<StoredProviderKey>;
type Update = driver.UpdateFilter<StoredProviderKey>;

const withoutSealed = { projection: { sealed: 0 } } as const;

/** The fields that are set, and those that null or undefined removes. */
function updateOf(fields: Readonly<Record<string, unknown>>): Update {
  const entries = Object.entries(fields);
  const set = entries.filter(([, value]) => value != null);
  const unset = entries.filter(([, value]) => value == null).map(([field]) => [field, ""]);
  return {
    ...(set.length > 0 && { $set: Object.fromEntries(set) as object }),
    ...(unset.length > 0 && { $unset: Object.fromEntries(unset) as object }),
  } as Update;
}

const given = (fields: object) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

export function createProviderKeyStore({ keys, clock }: Uses<"clock"> & Pick<Collections, "keys">) {
  const now = () => new Date(clock.now());
  const recentlyUsed = new Map<string, number>();

  const stateFields = (state: ProviderKeyState | undefined) => ({
    status: state?.status ?? "unknown",
    statusMessage: state?.message,
    checkedAt: state && now(),
  });

  async function assertRoom(account: string, atMost: number): Promise<void> {
    if ((await keys.countDocuments({ account }, { limit: atMost + 1 })) > atMost)
      throw conflict(`This account has ${maxKeys} provider keys, which is the maximum. Delete one.`);
  }

  async function find(account: string, id: string): Promise<SealedProviderKey | undefined> {
    const stored = await keys.findOne({ _id: id, account });
    return stored ? { ...toRecord(stored), sealed: stored.sealed } : undefined;
  }

  async function get(account: string, id: string): Promise<ProviderKey> {
    const stored = await keys.findOne({ _id: id, account }, withoutSealed);
    if (!stored) throw notFound("provider key");
    return toRecord(stored as StoredProviderKey);
  }

  return {
    /** Throws 409 for more than a hundred keys. */
    async assertRoom(account: string): Promise<void> {
      await assertRoom(account, maxKeys - 1);
    },

    /** Throws 409 for more than a hundred keys. */
    async insert(account: string, key: NewProviderKey): Promise<ProviderKey> {
      const { id: _id, state, mode = "first", priority = 0, disabled, ...others } = key;
      const stored = Object.fromEntries(
        Object.entries({
          ...others,
          ...stateFields(state),
          _id,
          account,
          mode,
          priority,
          disabled: disabled || undefined,
          createdAt: now(),
        }).filter(([, value]) => value != null),
      ) as unknown as StoredProviderKey;
      await keys.insertOne(stored);
      // Counted again with this one: if several are created concurrently, the last sees all of them.
      try {
        await assertRoom(account, maxKeys);
      } catch (error) {
        await keys.deleteOne({ _id, account });
        throw error;
      }
      return toRecord(stored);
    },

    /** Newest first. Throws 400 for an unknown `after`. */
    async list(account: string, page: Page): Promise<ProviderKey[]> {
      const unknown = "this account has no provider key";
      return (await findPage(keys, page, { unknown, owner: { account }, ...withoutSealed })).map(toRecord);
    },

    /**
     * The keys that calls of the account may use, in the order in which they are tried. The API caches them, so they are
     * without the names of deployments, which may be long and which only workers need.
     */
    async listFor(account: string): Promise<ProviderKey[]> {
      const enabled = { account, disabled: { $exists: false } } as Filter;
      const projection = { sealed: 0, statusMessage: 0, "config.deployments": 0 };
      const found = await keys.find(enabled, { projection, limit: maxKeys }).toArray();
      return found
        .map((stored) => toRecord(stored as StoredProviderKey))
        .toSorted((a, b) => a.priority - b.priority || a.createdAt.getTime() - b.createdAt.getTime());
    },

    /** Finds a key with its sealed credential for workers, even if it is disabled. Undefined if it was deleted. */
    find,

    /** Throws 404. */
    get,

    /** Changes the fields that are given. Throws 404. */
    async update(account: string, id: string, fields: ProviderKeyFields): Promise<ProviderKey> {
      const { disabled, ...others } = fields;
      const update = updateOf({ ...given(others), ...(disabled !== undefined && { disabled: disabled || undefined }) });
      if (Object.keys(update).length === 0) return get(account, id);
      const changed = await keys.findOneAndUpdate({ _id: id, account }, update, { returnDocument: "after" });
      if (!changed) throw notFound("provider key");
      return toRecord(changed);
    },

    /**
     * Replaces the credential, or what was checked together with it. `version` is that of the credential when the change
     * began. Throws 404, and 409 if the credential was replaced meanwhile.
     */
    async rotate(
      account: string,
      id: string,
      version: number,
      change: ProviderKeyFields & Partial<NewCredential> & { readonly state: ProviderKeyState | undefined },
    ): Promise<ProviderKey> {
      const { state, disabled, ...others } = change;
      const update = updateOf({
        ...given(others),
        ...(disabled !== undefined && { disabled: disabled || undefined }),
        ...stateFields(state),
      });
      const changed = await keys.findOneAndUpdate({ _id: id, account, version }, update, { returnDocument: "after" });
      if (changed) return toRecord(changed);
      await get(account, id);
      throw conflict("The credential of this provider key was changed at the same time. Read the key and repeat.");
    },

    /** Throws 404. */
    async delete(account: string, id: string): Promise<void> {
      const { deletedCount } = await keys.deleteOne({ _id: id, account });
      if (deletedCount === 0) throw notFound("provider key");
    },

    /**
     * Notes what the provider said about the credential of this version; of an earlier one it says nothing any more.
     * Resolves with true if the state is another than before. An event follows from the change to `invalid`.
     */
    async noteState(
      account: string,
      id: string,
      version: number,
      status: ProviderKeyStatus,
      message?: string,
    ): Promise<boolean> {
      const at = now();
      const isNews = {
        $or: [{ status: { $ne: status } }, { checkedAt: { $lte: new Date(at.getTime() - sameStateMs) } }],
      };
      const fields = {
        status,
        statusMessage: message === undefined ? "$$REMOVE" : { $literal: message },
        checkedAt: at,
        ...(status === "invalid" && { eventDueAt: { $cond: [{ $eq: ["$status", status] }, "$eventDueAt", at] } }),
      };
      const before = await keys.findOneAndUpdate(
        { _id: id, account, version, ...isNews } as Filter,
        [{ $set: fields }],
        { returnDocument: "before", projection: { status: 1 } },
      );
      return before !== null && before.status !== status;
    },

    /** Notes a use, at most once a minute for each process. */
    async noteUsed(account: string, id: string): Promise<void> {
      const at = clock.now();
      if (at - (recentlyUsed.get(id) ?? 0) < usedEveryMs) return;
      recentlyUsed.delete(id);
      recentlyUsed.set(id, at);
      const [oldest] = recentlyUsed.keys();
      if (recentlyUsed.size > maxRecentlyUsed && oldest !== undefined) recentlyUsed.delete(oldest);
      await keys.updateOne({ _id: id, account }, { $max: { lastUsedAt: new Date(at) } } as unknown as Update);
    },

    /** Keys that became invalid, where that is not recorded as an event yet. */
    async eventsDue(): Promise<{ readonly key: ProviderKey; readonly since: Date }[]> {
      const due = keys.find({ eventDueAt: { $lte: now() } } as Filter, {
        ...withoutSealed,
        sort: { eventDueAt: 1 },
        limit: eventsPerRun,
      });
      return (await due.toArray()).map((stored) => ({
        key: toRecord(stored as StoredProviderKey),
        since: stored.eventDueAt ?? now(),
      }));
    },

    /** Changes nothing if the key has become invalid again. */
    async noteRecorded({ id, account }: ProviderKey, since: Date): Promise<void> {
      await keys.updateOne({ _id: id, account, eventDueAt: since } as Filter, { $unset: { eventDueAt: "" } } as Update);
    },
  };
}
