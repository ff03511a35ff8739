import { type InferRawDocType, Schema } from "mongoose";
import type { Clock } from "#platform/clock";
import { openCollection } from "#platform/collection";
import type { Mongo } from "#platform/mongo";
import type { GeneratedFiles } from "./types.ts";
import { reach } from "./unavailable.ts";

const definition = {
  /** The request. */
  _id: { type: String, required: true },
  upstream: { type: String, required: true },
  /** The provider's own id. */
  job: { type: String, required: true },
  expiresAt: { type: Date, required: true },
} as const;
const schema = new Schema(definition, { collection: "generations", strict: "throw", versionKey: false });
schema.index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

type Stored = InferRawDocType<typeof definition>;

const lifeMs = 24 * 3_600_000;

/** The collection `generations`: jobs that providers run for calls. */
export function createGenerations({ mongo, clock }: { mongo: Mongo; clock: Clock }) {
  const { model, prepare } = openCollection<Stored>(mongo, "generations", schema);

  const jobs: Pick<GeneratedFiles, "remember" | "remembered"> = {
    async remember(requestId, { upstream, job }) {
      const $set = { upstream, job, expiresAt: new Date(clock.now() + lifeMs) };
      await reach(model.updateOne({ _id: requestId }, { $set }, { upsert: true }).exec());
    },
    async remembered(requestId) {
      const standing = { _id: requestId, expiresAt: { $gt: new Date(clock.now()) } };
      const found = await reach(model.findOne(standing).lean<Stored>().exec());
      return found ? { upstream: found.upstream, job: found.job } : undefined;
    },
  };

  return { prepare, ...jobs };
}
