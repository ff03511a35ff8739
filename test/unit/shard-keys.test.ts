import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { CollectionIndexes } from "../../shared/platform/mongo/migration-steps.ts";
import { allSchemas } from "../support/schema.ts";
import { violationOf } from "../support/shard-keys.ts";

const steps = allSchemas.flatMap(({ migrations }) =>
  migrations.flatMap((each) => ("collections" in each ? (each.collections as readonly CollectionIndexes[]) : [])),
);
/** Includes the indexes of all steps. */
const collections = [...Map.groupBy(steps, ({ collection }) => collection)].map(([collection, each]) => ({
  collection,
  indexes: each.flatMap(({ indexes }) => indexes),
}));
const shardKeys = Object.assign({}, ...allSchemas.map((each) => each.shardKeys ?? {})) as Record<string, string>;

test("every collection has a shard key, or a reason why it has none", () => {
  const unsharded = allSchemas.flatMap((each) => Object.keys(each.unsharded ?? {}));
  const names = collections.map(({ collection }) => collection);
  expect([...Object.keys(shardKeys), ...unsharded].toSorted()).toEqual(names.toSorted());
});

test("a unique index of a sharded collection begins with its shard key, and a whole index does", () => {
  for (const { collection, indexes } of collections) {
    const shardKey = shardKeys[collection];
    if (shardKey === undefined) continue;
    const whole = indexes.filter((index) => !index.partialFilterExpression && !index.sparse);
    const firsts = (of: readonly { readonly key: unknown }[]) => of.map(({ key }) => Object.keys(key as object)[0]);
    expect(firsts(indexes.filter(({ unique }) => unique)).filter((first) => first !== shardKey)).toEqual([]);
    expect(["_id", ...firsts(whole)]).toContain(shardKey);
  }
});

test("the page on scaling has the command for every sharded collection", () => {
  const page = readFileSync("docs/operations/scaling-mongodb.md", "utf8");
  for (const [collection, key] of Object.entries(shardKeys))
    expect(page).toContain(`sh.shardCollection("inference.${collection}", { ${key}: 1 })`);
});

test.each([
  ["find", { find: "ledger", filter: { _id: "req_1" } }, "find on ledger"],
  ["find", { find: "ledger", filter: { account: { $gt: "a" } } }, "find on ledger"],
  ["find", { find: "ledger", filter: {}, comment: "scatter: never declared" }, "find on ledger"],
  ["update", { update: "ledger", updates: [{ q: { account: "a" } }, { q: { _id: "b" } }] }, "update on ledger"],
  ["aggregate", { aggregate: "accounts", pipeline: [{ $group: {} }] }, "aggregate on accounts"],
  ["find", { find: "ledger", filter: {}, comment: "scatter: sweep" }, undefined],
  ["find", { find: "ledger", filter: { account: { $in: ["a"] } } }, undefined],
  ["delete", { delete: "accounts", deletes: [{ q: { _id: "a" } }] }, undefined],
  ["insert", { insert: "ledger", documents: [{ account: "a" }] }, undefined],
  ["find", { find: "quotes", filter: {} }, undefined],
])("a %s is held against the shard key: %o", (name, command, fault) => {
  expect(violationOf(name, command) ?? "none").toContain(fault ?? "none");
});
