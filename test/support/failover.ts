import type { Redis } from "ioredis";
import mongoose from "mongoose";
import { type Server, until } from "../../infra/embedded/index.ts";

/** Failover of stores, for tests and for the chaos runner. */

/** A Redis server, with a separate connection. */
export interface Member {
  readonly server: Server;
  readonly control: Redis;
}

const patience = () => AbortSignal.timeout(60_000);

/** A server's offset in the replication stream; undefined while a replica has no link. */
async function offsetOf(control: Redis): Promise<number | undefined> {
  const info = await control.info("replication");
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
  if (field("role") === "slave" && field("master_link_status") !== "up") return undefined;
  return Number(field(field("role") === "slave" ? "slave_repl_offset" : "master_repl_offset"));
}

/** Resolves when the replica has all data of the primary. */
export const inStep = (primary: Member, replica: Member): Promise<void> =>
  until(async () => {
    const [behind, ahead] = await Promise.all([offsetOf(replica.control), offsetOf(primary.control)]);
    if (behind !== ahead) throw new Error(`the replica is at ${behind}, the primary at ${ahead}`);
  }, patience());

/** A managed failover: the replica takes over with all the data. `lead` routes new connections to it. */
export async function swapRedis(old: Member, next: Member, lead: () => void): Promise<void> {
  await old.control.call("CLIENT", "PAUSE", "5000", "WRITE");
  await inStep(old, next);
  await next.control.replicaof("NO", "ONE");
  lead();
  await old.control.replicaof("127.0.0.1", next.server.port);
  await old.control.call("CLIENT", "UNPAUSE");
}

/**
 * Makes servers one replica set. `at` is the first one's current address, `hosts` are the clients' addresses of all of
 * them.
 */
export async function initiateMongoSet(at: string, hosts: readonly string[]): Promise<void> {
  const members = hosts.map((host, n) => ({ _id: n, host }));
  const settings = { electionTimeoutMillis: 2_000, heartbeatIntervalMillis: 500 };
  const client = new mongoose.mongo.MongoClient(`mongodb://${at}/`, { directConnection: true });
  try {
    const admin = client.db("admin");
    await admin.command({ replSetInitiate: { _id: "rs0", members, settings } });
    const expected = ["PRIMARY", ...hosts.slice(1).map(() => "SECONDARY")].join();
    const isReady = async () => {
      const status = await admin.command({ replSetGetStatus: 1 });
      const states = (status["members"] as { stateStr: string }[]).map(({ stateStr }) => stateStr).toSorted();
      if (states.join() !== expected) throw new Error(states.join());
    };
    await until(isReady, patience());
  } finally {
    await client.close();
  }
}
