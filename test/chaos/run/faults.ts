import { setTimeout as wait } from "node:timers/promises";
import type { FaultKind, PlannedFault } from "./plan.ts";
import type { FaultRecord } from "./run-log.ts";
import { ended, type Instance, type World } from "./world.ts";

/** Causes and ends a fault. Returns the affected process, if there is one. */
type Fault = (world: World, planned: PlannedFault) => Promise<Instance | undefined>;

const chosen = (world: World, kind: Instance["kind"], { target }: PlannedFault): Instance => {
  const running = world.running(kind);
  return running[target % running.length] as Instance;
};

/** The time in which a load balancer detects that an instance is not ready: less than `DRAIN_DELAY`. */
const noticeMs = 1_500;

const killed =
  (kind: Instance["kind"]): Fault =>
  async (world, planned) => {
    const instance = chosen(world, kind, planned);
    instance.mayEnd = true;
    await instance.program.kill();
    world.withdraw(instance);
    await world.start(kind);
    await world.remove(instance);
    return instance;
  };

const frozen =
  (kind: Instance["kind"]): Fault =>
  async (world, planned) => {
    const { program } = chosen(world, kind, planned);
    await program.kill("SIGSTOP");
    await wait(planned.forMs);
    await program.kill("SIGCONT");
    return undefined;
  };

const replaced =
  (kind: Instance["kind"]): Fault =>
  async (world, planned) => {
    const instance = chosen(world, kind, planned);
    await world.start(kind);
    instance.mayEnd = true;
    // The load balancer, as in a rollout, sends calls to the instance until it fails its readiness check.
    await instance.program.kill("SIGTERM");
    await wait(noticeMs);
    world.withdraw(instance);
    await ended(instance);
    await world.remove(instance);
    return undefined;
  };

/** Cuts the process off from everything if there are namespaces, otherwise from Redis. */
const cutOff =
  (kind: Instance["kind"]): Fault =>
  async (world, planned) => {
    const instance = chosen(world, kind, planned);
    const set = async (up: boolean) => {
      if (instance.place.setLink) await instance.place.setLink(up);
      else instance.redis.hold(!up);
    };
    await set(false);
    await wait(planned.forMs);
    await set(true);
    return kind === "api" ? instance : undefined;
  };

const wires = (world: World) => [...world.running("api"), ...world.running("worker")].map(({ redis }) => redis);

async function pause(server: World["stores"]["s3"]["server"], forMs: number): Promise<undefined> {
  await server.kill("SIGSTOP");
  await wait(forMs);
  await server.kill("SIGCONT");
}

const primaryOf = async ({ stores }: World) => {
  const found = stores.mongo.members[await stores.mongo.primary()];
  if (!found) throw new Error("MongoDB has no such member");
  return found;
};

const faults: Readonly<Record<FaultKind, Fault>> = {
  "api killed": killed("api"),
  "api frozen": frozen("api"),
  "api replaced": replaced("api"),
  "api cut off": cutOff("api"),
  "worker killed": killed("worker"),
  "worker frozen": frozen("worker"),
  "worker replaced": replaced("worker"),
  "worker cut off": cutOff("worker"),
  "redis frozen": ({ stores }, { forMs }) => pause(stores.redis.primary().server, forMs),
  "redis cut": async (world) => {
    for (const wire of wires(world)) wire.cut();
    return undefined;
  },
  "redis black-holed": async (world, { forMs }) => {
    const held = wires(world);
    for (const wire of held) wire.hold(true);
    await wait(forMs);
    for (const wire of held) wire.hold(false);
    return undefined;
  },
  "redis swapped": ({ stores }) => stores.redis.swap().then(() => undefined),
  "redis killed": ({ stores }) => stores.redis.fail().then(() => undefined),
  "mongodb stepped down": async ({ stores }) => {
    await stores.mongo.stepDown();
    await stores.mongo.primary();
    return undefined;
  },
  "mongodb killed": async (world, { forMs }) => {
    const { server } = await primaryOf(world);
    await server.kill();
    await wait(forMs);
    await server.start();
    await world.stores.mongo.primary();
    return undefined;
  },
  "mongodb frozen": async (world, { forMs }) => {
    await pause((await primaryOf(world)).server, forMs);
    await world.stores.mongo.primary();
    return undefined;
  },
  "mongodb black-holed": async (world, { forMs }) => {
    const { wire } = await primaryOf(world);
    wire.hold(true);
    await wait(forMs);
    wire.hold(false);
    await world.stores.mongo.primary();
    return undefined;
  },
  "s3 killed": async ({ stores }, { forMs }) => {
    await stores.s3.server.kill();
    await wait(forMs);
    await stores.s3.server.start();
    return undefined;
  },
  "s3 frozen": ({ stores }, { forMs }) => pause(stores.s3.server, forMs),
  "stores slow": async (world, { forMs }) => {
    const slow = [...wires(world), world.stores.s3.wire, ...world.stores.mongo.members.map(({ wire }) => wire)];
    for (const wire of slow) wire.delay(40);
    await wait(forMs);
    for (const wire of slow) wire.delay(0);
    return undefined;
  },
};

/**
 * Runs the faults one after the other, each at its time or when the previous one has ended. Resolves after the last
 * one, or after the one that runs when `signal` aborts.
 */
export async function runFaults(
  world: World,
  planned: readonly PlannedFault[],
  startedAt: number,
  say: (text: string) => void,
  signal?: AbortSignal,
): Promise<readonly FaultRecord[]> {
  const records: FaultRecord[] = [];
  for (const fault of planned) {
    await wait(Math.max(0, startedAt + fault.atMs - Date.now()), undefined, { signal }).catch(() => undefined);
    if (signal?.aborted) break;
    const startedMs = Date.now();
    const hit = await faults[fault.kind](world, fault);
    const endedMs = Date.now();
    records.push({ kind: fault.kind, startedMs, endedMs, ...(hit && { instance: hit.name }) });
    say(`${((startedMs - startedAt) / 1_000).toFixed(0).padStart(4)} s  ${fault.kind}, ${endedMs - startedMs} ms`);
  }
  return records;
}
