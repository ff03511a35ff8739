import type { mongo as driver } from "mongoose";
import { longRunning } from "#platform/mongo/collection";
import { type SealedValues, underOtherKey } from "#secrets";
import type { Collections, StoredProviderKey } from "./collection.ts";
import { sealedAs } from "./sealed-as.ts";

const ofOtherKeys = (key: string) => ({ sealed: underOtherKey(key) }) as unknown as driver.Filter<StoredProviderKey>;

/** The credentials of provider keys. Those of checks live for a minute. */
export function createSealedValues({ keys }: Pick<Collections, "keys">): SealedValues {
  return {
    countOthers: (key) => keys.countDocuments(ofOtherKeys(key), longRunning),
    async resealOthers(key, reseal, onFailure, signal) {
      let count = 0;
      for await (const { _id, account, upstream, version, sealed } of keys.find(ofOtherKeys(key), longRunning)) {
        if (signal.aborted) break;
        try {
          const changed = { sealed: await reseal(account, sealedAs({ id: _id, upstream, version }), sealed) };
          const { modifiedCount } = await keys.updateOne({ _id, account, sealed }, { $set: changed });
          count += modifiedCount;
        } catch (error) {
          onFailure(_id, error);
        }
      }
      return count;
    },
  };
}
