import mongoose from "mongoose";
import { afterAll } from "vitest";
import { allSchemas, ofTest } from "./schema.ts";

/**
 * Checks the commands of a test's own process against the shard keys: on a sharded collection each must have the key,
 * by equality, or be declared as one for every shard. Commands of the tests themselves are marked and skipped.
 */
const shardKeys: Readonly<Record<string, string>> = Object.assign(
  {},
  ...allSchemas.map((schema) => schema.shardKeys ?? {}),
);
/** Backfills scan whole collections. */
const ofMigrations = "scatter: migration";
const declared = new Set([
  ofMigrations,
  ...allSchemas.flatMap(({ scatter = {} }) => Object.keys(scatter).map((name) => `scatter: ${name}`)),
]);

type Document = Readonly<Record<string, unknown>>;

const isEquality = (value: unknown): boolean =>
  typeof value === "string" || (typeof value === "object" && value !== null && ("$in" in value || "$eq" in value));

/** The filters of a command, and the documents that it inserts. */
function filtersOf(name: string, command: Document): readonly Document[] {
  const list = (field: string) => (command[field] as readonly Document[] | undefined) ?? [];
  if (name === "find") return [(command["filter"] as Document) ?? {}];
  if (name === "insert") return list("documents");
  if (name === "update") return list("updates").map((each) => each["q"] as Document);
  if (name === "delete") return list("deletes").map((each) => each["q"] as Document);
  if (name === "aggregate") return [(list("pipeline")[0]?.["$match"] as Document) ?? {}];
  if (["findAndModify", "count", "distinct"].includes(name)) return [(command["query"] as Document) ?? {}];
  return [];
}

/** Returns undefined if the command is for one shard, is declared, or is a test's own. */
export function violationOf(name: string, command: Document): string | undefined {
  const collection = command[name];
  const key = typeof collection === "string" ? shardKeys[collection] : undefined;
  const { comment } = command;
  if (key === undefined || comment === ofTest || (typeof comment === "string" && declared.has(comment)))
    return undefined;
  const without = filtersOf(name, command).find((filter) => !isEquality(filter[key]));
  if (!without) return undefined;
  const filter = `${Object.keys(without).join(", ")} ${JSON.stringify(comment ?? "")}`;
  const remedy = "Add the key, or mark the operation with scatter() and explain it in the module's schema.";
  return `${name} on ${String(collection)} without its shard key ${key}: ${filter}. ${remedy}`;
}

const state = globalThis as { shardKeyViolations?: Set<string> };

/** Runs once per process: test files share their imports. */
function watch(): Set<string> {
  const violations = new Set<string>();
  const { MongoClient, Collection } = mongoose.mongo;
  type Client = mongoose.mongo.MongoClient;
  const client = MongoClient.prototype as unknown as { connect: (this: Client) => unknown };
  const original = client.connect;
  client.connect = function (this: Client) {
    Object.assign(this, { monitorCommands: true });
    this.on("commandStarted", ({ commandName, command }) => {
      const violation = violationOf(commandName, command as Document);
      if (violation !== undefined) violations.add(violation);
    });
    return original.call(this);
  };
  // The caller is on the stack only during the call: before the first `await` of the driver.
  const isTests = () => {
    const prepare: unknown = Reflect.get(Error, "prepareStackTrace");
    const captured: { readonly stack?: readonly (string | null)[] } = {};
    // The text of a stack, with its positions in the sources, takes longer than the operation.
    Error.prepareStackTrace = (_, sites) => sites.map((site) => site.getFileName());
    try {
      Error.captureStackTrace(captured);
      const caller = captured.stack?.find(
        (file) => file && !/node_modules|node:|shard-keys\.ts|platform\/mongo\/timeouts\.ts/.test(file),
      );
      return caller?.includes("/test/") ?? false;
    } finally {
      Reflect.set(Error, "prepareStackTrace", prepare);
    }
  };
  const optionsAt = {
    find: 1,
    findOne: 1,
    deleteMany: 1,
    deleteOne: 1,
    countDocuments: 1,
    aggregate: 1,
    insertMany: 1,
    insertOne: 1,
    updateOne: 2,
    updateMany: 2,
    replaceOne: 2,
    findOneAndUpdate: 2,
    distinct: 2,
  } as const;
  const prototype = Collection.prototype as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const [name, at] of Object.entries(optionsAt)) {
    const original = prototype[name] as (...args: unknown[]) => unknown;
    prototype[name] = function (this: unknown, ...args: unknown[]) {
      if (isTests()) {
        while (args.length < at) args.push({});
        args[at] = { comment: ofTest, ...(args[at] as object | undefined) };
      }
      return original.apply(this, args);
    };
  }
  return violations;
}
state.shardKeyViolations ??= watch();

afterAll(() => {
  const found = [...(state.shardKeyViolations ?? [])];
  state.shardKeyViolations?.clear();
  if (found.length > 0) throw new Error(`commands that every shard would have to answer:\n${found.join("\n")}`);
});
