import { createRequire } from "node:module";
import { type Command, Redis } from "ioredis";

/**
 * Refuses, on a single server, every command and script that a cluster would refuse because its keys are in several
 * hash slots. `npm run test:cluster` has the tests that need a real cluster.
 */
const slotOf = createRequire(createRequire(import.meta.url).resolve("ioredis"))("cluster-key-slot") as (
  key: string | Buffer,
) => number;

const message = "CROSSSLOT Keys in request don't hash to the same slot";
// oxlint-disable-next-line typescript/unbound-method -- called with its `this` below
const original = Redis.prototype.sendCommand;

if (original.name !== "sendInOneSlot")
  Redis.prototype.sendCommand = function sendInOneSlot(this: Redis, command: Command, ...rest: [never?]) {
    const keys = command.getKeys();
    if (keys.length <= 1 || new Set(keys.map(slotOf)).size === 1) return original.call(this, command, ...rest);
    command.reject(new Error(message));
    return command.promise;
  };
