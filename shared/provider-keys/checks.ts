import type { mongo as driver } from "mongoose";
import { rateLimited } from "#errors";
import { randomBase62 } from "#platform/ids";
import type { Uses } from "#platform/uses";
import type { Collections, StoredCheck } from "./collection.ts";
import type { ProviderKeyState, SealedProviderKey } from "./store.ts";

const maxOpen = 5;
/** Longer than the API waits. */
const lifeMs = 60_000;

/** The credential that a worker checks, and where. */
export type CheckedCredential = Pick<
  SealedProviderKey,
  "account" | "id" | "upstream" | "config" | "sealed" | "version"
>;

/** Checks of credentials: the API stores them, a worker adds the outcome. */
export function createProviderKeyChecks({ checks, clock }: Uses<"clock"> & Pick<Collections, "checks">) {
  return {
    /** Resolves with the id of the check. Throws 429 if five checks of the account are open. */
    async begin({ id: key, account, upstream, config, sealed, version }: CheckedCredential): Promise<string> {
      const open = { account, expiresAt: { $gt: new Date(clock.now()) } };
      if ((await checks.countDocuments(open, { limit: maxOpen })) >= maxOpen)
        throw rateLimited(`${maxOpen} checks of provider keys are under way, which is the maximum.`, 5);
      const _id = `pkc_${randomBase62(20)}`;
      const createdAt = new Date(clock.now());
      const expiresAt = new Date(clock.now() + lifeMs);
      await checks.insertOne({ _id, account, key, upstream, config, sealed, version, createdAt, expiresAt });
      return _id;
    },

    /** Undefined if it has ended, or nobody waits for its outcome any more. */
    async find(account: string, id: string): Promise<CheckedCredential | undefined> {
      const open = { _id: id, account, status: { $exists: false }, expiresAt: { $gt: new Date(clock.now()) } };
      const stored = await checks.findOne(open as driver.Filter<StoredCheck>);
      if (!stored) return undefined;
      const { key, upstream, config, sealed, version } = stored;
      return { id: key, account, upstream, config, sealed, version };
    },

    async end(account: string, id: string, { status, message }: ProviderKeyState): Promise<void> {
      await checks.updateOne({ _id: id, account }, { $set: { status, ...(message !== undefined && { message }) } });
    },

    async outcome(account: string, id: string): Promise<ProviderKeyState | undefined> {
      const stored = await checks.findOne({ _id: id, account }, { projection: { status: 1, message: 1 } });
      return stored?.status && { status: stored.status, message: stored.message };
    },

    async remove(account: string, id: string): Promise<void> {
      await checks.deleteOne({ _id: id, account });
    },
  };
}
