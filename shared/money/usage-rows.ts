import { type InferRawDocType, Schema } from "mongoose";

/** Absent of calls of which only the hold was known: key, model, endpoint. */
export const group = { key: { type: String }, model: { type: String }, endpoint: { type: String } } as const;
const days = {
  /** Day, account, key, model and endpoint: the rows of a day are a range. */
  _id: { type: Schema.Types.Mixed, required: true },
  /** `2026-11-23`, in UTC. */
  day: { type: String, required: true },
  account: { type: String, required: true },
  ...group,
  /** Of the ledger that it is made from. */
  entries: { type: Number, required: true },
  calls: { type: Number, required: true },
  failed: { type: Number, required: true },
  input: { type: Number, required: true },
  output: { type: Number, required: true },
  cached: { type: Number, required: true },
  /** Of what is not counted in tokens: images, seconds, characters. */
  units: { type: Number, required: true },
  /** Refunds are subtracted. */
  cost: { type: BigInt, required: true },
  /** Of the run that wrote the row. */
  version: { type: Number, required: true },
} as const;
export const daySchema = new Schema(days, { collection: "usageDays", strict: "throw", versionKey: false });

/** What an account used in a day by one key, of one model, at one endpoint. */
export type StoredUsageDay = InferRawDocType<typeof days>;
