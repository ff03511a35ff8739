import { hash } from "node:crypto";
import type { RedisClient } from "./redis.ts";

type Argument = string | number | Buffer;

/** Runs Lua scripts by their hash, and sends one that the server does not know. The keys of a script share a hash tag. */
export function createScriptRunner(redis: RedisClient) {
  const hashes = new Map<string, string>();
  return (script: string, keys: readonly string[], args: readonly Argument[]): Promise<unknown> => {
    const sha1 = hashes.get(script) ?? hash("sha1", script, "hex");
    hashes.set(script, sha1);
    const all = [...keys, ...args];
    return redis.evalsha(sha1, keys.length, ...all).catch((error: Error) => {
      if (!error.message.startsWith("NOSCRIPT")) throw error;
      return redis.eval(script, keys.length, ...all);
    });
  };
}
