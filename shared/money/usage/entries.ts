import { inputKeys, outputKeys, pieceKeys } from "#catalog";
import { refundPrefix } from "../ledger.ts";

/** The entries from which usage is computed. With the refunds, they are all balance changes of calls and uploads. */
export const charges = { $in: ["usage", "storage"] };
export const refunds = { kind: "refund" } as const;

/** Resolves the usage once, which makes the job a tenth faster than a path from the entry for each key. */
const counted = (keys: readonly string[]) => ({
  $sum: { $let: { vars: { usage: "$request.usage" }, in: { $sum: keys.map((key) => `$$usage.${key}`) } } },
});
const cost = { $subtract: [0, "$amount"] };
const isRefund = { $eq: ["$kind", refunds.kind] };

export const entrySums = {
  entries: { $sum: 1 },
  calls: { $sum: { $cond: [isRefund, 0, 1] } },
  failed: { $sum: { $cond: [{ $eq: ["$request.status", "failed"] }, 1, 0] } },
  cancelled: { $sum: { $cond: [{ $eq: ["$request.status", "cancelled"] }, 1, 0] } },
  input: counted(inputKeys),
  output: counted(outputKeys),
  cached: { $sum: "$request.usage.cached_input" },
  units: counted(pieceKeys),
  cost: { $sum: cost },
  byokList: { $sum: { $cond: [isRefund, { $subtract: [0, "$request.byok.list"] }, "$request.byok.list"] } },
  byokFees: { $sum: { $cond: [{ $gt: ["$request.byok", null] }, cost, 0] } },
  saved: { $sum: "$request.saved" },
  // A refund does not get an upstream's charge back.
  upstreamCost: { $sum: { $cond: [isRefund, 0, "$request.upstreamCost"] } },
  unpriced: { $sum: { $cond: [{ $isNumber: "$request.upstreamCost" }, 0, cost] } },
};
/** The cost of the entries captured before a time. */
export const settledSum = (until: Date) => ({ $sum: { $cond: [{ $lt: ["$createdAt", until] }, cost, 0] } });

/**
 * The refunds that match, each with the `request` of its call, because they have no key and model of their own, but without
 * its usage, status and savings.
 */
export const refundedCalls = (filter: object) => [
  { $match: { ...refunds, ...filter } },
  { $set: { call: { $substrBytes: ["$_id", refundPrefix.length, -1] } } },
  { $lookup: { from: "ledger", localField: "call", foreignField: "_id", as: "call" } },
  { $set: { request: { $mergeObjects: [{ $first: "$call.request" }, { status: "", usage: {}, saved: 0 }] } } },
];

/** Repeats an entry for each name under which its tags are summed, and for more. Drops entries without tags. */
export const eachTag = (more: readonly string[] = []) => [
  { $match: { "request.tags": { $exists: true } } },
  { $set: { tag: { $concatArrays: [{ $ifNull: ["$countedTags", "$request.tags"] }, more] } } },
  { $unwind: "$tag" },
];
