import { createRequire } from "node:module";
import { type Command, Redis } from "ioredis";

/**
 * On one server every command and script of these tests is refused that a cluster would refuse because its keys are in several
 * hash slots. What only a cluster shows is in the tests of `npm run test:cluster`.
 */
const slotOf = createRequire(createRequire(import.meta.url).resolve("ioredis"))("cluster-key-slot") as (
  key: string | Buffer,
) => number;

const message = "CROSSSLOT Keys in request don't hash to the same slot";
// oxlint-disable-next-line typescript/unbound-method -- called with its `this` below
const original = Redis.prototype.sendCommand;

if (original.name !== "sendInOneSlot")
  Redis.prototype.sendCommand = function sendInOneSlot(this: Redis, command: Command, ...rest: [never?]) {
    if (new Set(command.getKeys().map(slotOf)).size <= 1) return original.call(this, command, ...rest);
    command.reject(new Error(message));
    return command.promise;
  };
