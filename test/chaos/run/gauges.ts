import { openInspector } from "../../bench/inspector.ts";
import { measured, residentBytes } from "../../bench/processes.ts";
import { objectKeys } from "./aftermath.ts";
import { connectionsOf, keyShape } from "./attribution.ts";
import type { Sample, Series } from "./slopes.ts";
import type { Instance, World } from "./world.ts";

/** The values that a soak watches, and those that may grow, with the reason. */

const mega = 1024 ** 2;

interface Watched {
  readonly mayGrowBy: number;
  readonly byDesign?: string;
}

const dayOfFiles = "one for each file, until it expires after 24 hours";
/** The ledger is append-only; everything else is deleted after its window. */
const growing: Readonly<Record<string, string>> = {
  ledger: "append-only: an entry for each call",
  checkpoints: "sums of the ledger, by account and time",
  responses: "one for each stored answer of the Responses format, for 30 days",
  uploads: dayOfFiles,
  files: dayOfFiles,
  generations: "one for each image and media call, while its files live",
  idempotency: "one for each key, for 24 hours",
};
const objects = "the files and uploads of 24 hours; those without a record are counted apart";

export interface Gauges {
  /** Reads every value once. Memory is read after garbage collection. */
  read(): Promise<void>;
  series(): readonly Series[];
}

export function createGauges(world: World, startedAt: number): Gauges {
  const all = new Map<string, Watched & { readonly samples: Sample[] }>();

  const shapes = new Set<string>();

  function add(name: string, value: number, watched: Watched): void {
    const series = all.get(name) ?? { ...watched, samples: [] };
    all.set(name, series);
    series.samples.push({ atMs: Date.now() - startedAt, value });
  }

  async function readProcess(instance: Instance): Promise<void> {
    const { name, place, inspectorPort, program } = instance;
    const inspector = await openInspector(inspectorPort, place.host);
    try {
      await inspector.post("HeapProfiler.collectGarbage");
      const { usedSize } = (await inspector.post("Runtime.getHeapUsage")) as { usedSize: number };
      add(`${name}: heap, MB`, usedSize / mega, { mayGrowBy: 8 });
    } finally {
      inspector.close();
    }
    const process = measured(name, program);
    // The allocator returns memory late: in a busy process its size fluctuates by tens of MB.
    add(`${name}: resident memory, MB`, residentBytes(process) / mega, { mayGrowBy: 60 });
    const { callers, others } = connectionsOf(process.pid, Number(new URL(instance.origin).port));
    add(`${name}: connections of callers`, callers, { mayGrowBy: 0, byDesign: "as many as callers have open" });
    add(`${name}: other file descriptors`, others, { mayGrowBy: 25 });
  }

  async function readRedis(): Promise<void> {
    const { control } = world.stores.redis.primary();
    const counts = new Map<string, number>();
    for (const key of await control.keys("*")) counts.set(keyShape(key), (counts.get(keyShape(key)) ?? 0) + 1);
    for (const shape of counts.keys()) shapes.add(shape);
    for (const shape of shapes) add(`Redis: ${shape}`, counts.get(shape) ?? 0, { mayGrowBy: 60 });
    const [, used] = /^used_memory:(\d+)/m.exec(await control.info("memory")) ?? [];
    add("Redis: memory, MB", Number(used) / mega, { mayGrowBy: 4 });
  }

  async function readMongo(): Promise<void> {
    const database = world.stores.mongo.client.db();
    for (const { name } of await database.listCollections({}, { nameOnly: true }).toArray()) {
      const byDesign = growing[name];
      const count = await database.collection(name).countDocuments();
      add(`MongoDB: ${name}`, count, { mayGrowBy: 50, ...(byDesign !== undefined && { byDesign }) });
    }
    const sizes = await database
      .collection("accounts")
      .aggregate<{ bytes: number }>([{ $group: { _id: null, bytes: { $max: { $bsonSize: "$$ROOT" } } } }])
      .toArray();
    add("MongoDB: largest account document, bytes", Number(sizes[0]?.bytes ?? 0), { mayGrowBy: 2_000 });
  }

  async function readObjects(): Promise<void> {
    const { found, stray } = await objectKeys(world.stores.env, world.stores.mongo.client.db());
    add("S3: objects", found.length, { mayGrowBy: 0, byDesign: objects });
    // An object is written before its record exists.
    add("S3: objects and multipart uploads without a record", stray.length, { mayGrowBy: 5 });
  }

  return {
    async read() {
      const processes = [...world.running("api"), ...world.running("worker")];
      await Promise.all([...processes.map(readProcess), readRedis(), readMongo(), readObjects()]);
    },
    series: () => [...all].map(([name, series]) => ({ name, ...series })),
  };
}
