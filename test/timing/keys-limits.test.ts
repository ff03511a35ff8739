import { expect, test } from "vitest";
import { issueKey, startInstance, take } from "../support/keys-instance.ts";
import { testStores } from "../support/servers.ts";

test("the slot of an API that died is free at its deadline, while another call runs on", async () => {
  const instance = await startInstance(await testStores());
  const { keys, redis } = instance;
  const { key, secret } = await issueKey(instance, { concurrentRequests: 2 });
  const caller = await keys.authenticate(secret);
  const taking = (requestId: string) => take(instance, caller, { requestId, tokens: 1, ttlMs: 60_000 });
  await taking("req_long");
  await keys.takeSlot(caller, { requestId: "req_dead", ttlMs: 2_000 });
  await expect(taking("req_next")).rejects.toThrow("calls in flight, limit 2");
  const tryTake = () =>
    taking("req_next").then(
      () => "taken",
      () => "refused",
    );
  await expect.poll(tryTake, { interval: 20 }).toBe("taken");
  expect(await redis.zrange(`limits:{${key.id}}:running`, "0", "-1")).toEqual(["req_long", "req_next"]);
});
