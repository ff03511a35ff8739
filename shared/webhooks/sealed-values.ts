import type { mongo as driver } from "mongoose";
import { longRunning, scatter } from "#platform/mongo/collection";
import { type Reseal, type SealedValues, underOtherKey } from "#secrets";
import type { Collections, StoredEndpoint } from "./collections.ts";

type Filter = driver.Filter<StoredEndpoint>;

const ofOtherKeys = (key: string) =>
  ({
    $or: [{ secrets: { $elemMatch: { sealed: underOtherKey(key) } } }, { sealedHeaders: underOtherKey(key) }],
  }) as unknown as Filter;
const options = { ...longRunning, ...scatter("secrets of webhooks under an old key") };

/** The secrets and headers of endpoints, and the secrets of callbacks. */
export function createSealedValues({ endpoints }: Pick<Collections, "endpoints">): SealedValues {
  async function resealOne(stored: StoredEndpoint, reseal: Reseal): Promise<boolean> {
    const { _id, account, secrets, sealedHeaders } = stored;
    const changed = {
      secrets: await Promise.all(
        secrets.map(async (each) => ({ ...each, sealed: await reseal(account, _id, each.sealed) })),
      ),
      ...(sealedHeaders !== undefined && { sealedHeaders: await reseal(account, _id, sealedHeaders) }),
    };
    const unchanged = { _id, account, secrets, sealedHeaders: sealedHeaders ?? { $exists: false } } as Filter;
    return (await endpoints.updateOne(unchanged, { $set: changed })).modifiedCount === 1;
  }

  return {
    countOthers: (key) => endpoints.countDocuments(ofOtherKeys(key), options),
    async resealOthers(key, reseal, onFailure, signal) {
      let count = 0;
      for await (const stored of endpoints.find(ofOtherKeys(key), options)) {
        if (signal.aborted) break;
        try {
          if (await resealOne(stored, reseal)) count++;
        } catch (error) {
          onFailure(stored._id, error);
        }
      }
      return count;
    },
  };
}
