import fc from "fast-check";
import { expect, test } from "vitest";
import type { Caller } from "../../api/keys/index.ts";
import { ServiceError } from "../../shared/errors.ts";
import { type Clock, dayMs } from "../../shared/platform/clock.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { begin, type Call, exceeded, startBudget, usd } from "../support/budget-setup.ts";
import { loseData } from "../support/jobs-setup.ts";
import { type Instance, isConnected } from "../support/keys-instance.ts";
import { movableClock } from "../support/movable-clock.ts";
import { step } from "../support/property-runs.ts";

/** Refuses at once, without the pauses in which calls that end may still make room. */
function startImpatient(limitUsd: bigint, period?: Parameters<typeof startBudget>[1]) {
  const { clock, advance } = movableClock();
  const after: Clock["after"] = (ms, fire) => clock.after(ms > 100 ? ms : 0, fire);
  return startBudget(limitUsd, period, undefined, { clock: { ...clock, after }, advance });
}

test("calls side by side through two instances take all that the budget covers, and not more", async () => {
  const { a, b, caller, spent } = await startImpatient(50n);
  const tries = Array.from({ length: 200 }, (_, at) => begin(at % 2 ? a : b, caller, usd));
  const results = await Promise.allSettled(tries);
  const calls = results.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  expect(calls).toHaveLength(50);
  for (const { reason } of results.filter((each) => each.status === "rejected")) expect(reason).toMatchObject(exceeded);
  await Promise.all(calls.map((call, at) => call.end(at < 25 ? 0n : usd / 2n)));
  expect(await spent()).toBe((25n * usd) / 2n);
  // Their unused amount becomes available again.
  const more = await Promise.allSettled(Array.from({ length: 60 }, () => begin(b, caller, usd)));
  expect(more.filter(({ status }) => status === "fulfilled")).toHaveLength(37);
});

test("calls with holds that a count finds before they took are refused where they exceed the budget together", async () => {
  const { a, account, caller, spent } = await startImpatient(10n);
  const held = async () => {
    const requestId = newRequestId();
    const slot = await a.keys.takeSlot(caller, { requestId, ttlMs: 60_000 });
    const ids = { account: account.id, key: caller.keyId, requestId, endpoint: "/v1/embeddings", model: "local/chat" };
    const nanoUsd = 6n * usd;
    const hold = { ...ids, maxNanoUsd: nanoUsd, minNanoUsd: nanoUsd, expiresAt: Date.now() + dayMs };
    await a.money.holdForCall({ ...hold, insufficientText: () => "insufficient" });
    return {
      take: () => a.keys.takeTokens(slot, 1, nanoUsd),
      refuse: async () => {
        await a.money.release({ ...ids, heldNanoUsd: nanoUsd, totalMs: 1 }, { status: "failed" });
        await a.keys.release(slot, { costNanoUsd: 0n });
      },
    };
  };
  const [first, second] = [await held(), await held()];
  expect(await spent()).toBe(0n);
  await expect(first.take()).rejects.toMatchObject(exceeded);
  await first.refuse();
  await second.take();
  await expect(begin(a, caller, 5n * usd)).rejects.toMatchObject(exceeded);
});

test("a key with a budget and the keys that it makes, and those make, spend its budget together", async () => {
  const { a, b, account, caller, key, spent } = await startImpatient(10n);
  const made = async (by: Caller, limitUsd?: bigint) => {
    const fields = limitUsd === undefined ? {} : { budget: { limitNanoUsd: limitUsd * usd, period: "day" as const } };
    return a.keys.authenticate((await a.keys.issue(account.id, fields, by)).secret);
  };
  const child = await made(caller);
  const small = await made(child, 3n);
  await (await begin(a, caller, 4n * usd)).end(4n * usd);
  const second = await begin(a, small, 2n * usd);
  await expect(begin(b, small, 2n * usd)).rejects.toThrow(/The budget of this API key is 3\.00 USD/);
  const first = await begin(b, child, 3n * usd);
  const refusal = { ...exceeded, message: expect.stringContaining(`shares with '${key.id}' is 10.00 USD a day: 4.00`) };
  const all = [caller, child, small, await made(small)];
  const refuseMore = async () => {
    for (const each of all) await expect(begin(b, each, 2n * usd)).rejects.toMatchObject(exceeded);
    await expect(begin(a, child, 2n * usd)).rejects.toMatchObject(refusal);
  };
  await refuseMore();
  await loseData(a.redis);
  await refuseMore();
  // Revoking it, or a key between them, changes nothing.
  for (const { keyId } of [caller, child]) await a.keys.revoke(keyId);
  const last = await begin(b, small, usd);
  all.splice(0, 2);
  await first.end(usd);
  await second.end(2n * usd);
  await last.end(0n);
  expect(await spent()).toBe(7n * usd);
  await loseData(a.redis);
  expect(await spent()).toBe(7n * usd);

  // A changed budget applies to its keys; none of them can exceed it.
  await a.keys.update(key.id, { budget: { limitNanoUsd: 8n * usd, period: "day" } });
  const grown = { budget: { limitNanoUsd: 9n * usd, period: "day" as const } };
  await a.keys.update(small.keyId, grown);
  await expect(begin(b, small, 2n * usd)).rejects.toMatchObject(exceeded);
  const calls = await Promise.allSettled(
    Array.from({ length: 8 }, (_, at) => begin([a, b][at % 2] as Instance, small, usd)),
  );
  expect(calls.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  await a.keys.update(key.id, { budget: null });
  await expect(begin(b, small, 2n * usd)).resolves.toBeDefined();
});

test("a call whose instance died is ended by its entry in the ledger", async () => {
  const { a, b, caller, spent } = await startImpatient(10n);
  const lost = await begin(a, caller, 9n * usd);
  await expect(begin(b, caller, 2n * usd)).rejects.toMatchObject(exceeded);
  await lost.charge(4n * usd);
  // It is looked up once a second at most.
  await expect.poll(() => begin(b, caller, 6n * usd).catch(() => undefined)).toBeDefined();
  expect(await spent()).toBe(4n * usd);
});

test.each([
  [
    "a reconnect",
    async ({ redis }: Instance) => {
      redis.disconnect(true);
      await isConnected(redis);
    },
  ],
  // The clock of the new primary is behind that of the old one.
  [
    "another primary",
    async ({ redis }: Instance, hash: string) => {
      await redis.hset(hash, { run: "another", at: String(Date.now() + dayMs) });
    },
  ],
])("%s counts again, because a failover may have lost a take", async (_, failOver) => {
  const { a, b, caller } = await startImpatient(10n);
  const open = await begin(a, caller, 6n * usd);
  // Simulate a replica that lacks the last second.
  const hash = `limits:{${caller.keyId}}:budget`;
  await a.redis.hdel(hash, `o:${open.requestId}`);
  await a.redis.hset(hash, "open", "0");
  await failOver(b, hash);
  await expect(begin(b, caller, 5n * usd)).rejects.toThrow(
    /10\.00 USD a day: 0\.00 USD are spent, calls in flight can cost 6\.00 USD/,
  );
});

test.each([
  ["day", "2026-12-31T23:59:00Z", "2027-01-01T00:00:00.000Z"],
  ["week", "2026-12-30T12:00:00Z", "2027-01-04T00:00:00.000Z"],
  ["month", "2026-12-31T23:59:00Z", "2027-01-01T00:00:00.000Z"],
] as const)("a budget of a %s begins again, and calls that are open count in both", async (period, start, reset) => {
  const { a, b, caller, advance, clock, spent } = await startImpatient(10n, period);
  advance(Date.parse(start) - clock.now());
  const done = await begin(a, caller, 6n * usd);
  await done.end(6n * usd);
  const open = await begin(b, caller, 4n * usd);
  await expect(begin(a, caller, usd)).rejects.toThrow(`It resets at ${reset}.`);
  advance(Date.parse(reset) - clock.now());
  expect(await spent()).toBe(0n);
  await expect(begin(a, caller, 7n * usd)).rejects.toMatchObject(exceeded);
  await open.end(3n * usd);
  expect(await spent()).toBe(3n * usd);
  await expect(begin(a, caller, 7n * usd)).resolves.toBeDefined();
});

test("a total never resets", async () => {
  const { a, caller, advance } = await startImpatient(10n, "total");
  await (await begin(a, caller, 6n * usd)).end(6n * usd);
  advance(400 * dayMs);
  await loseData(a.redis);
  await expect(begin(a, caller, 5n * usd)).rejects.toThrow(
    /10\.00 USD in total: 6\.00 USD are spent.*It does not reset\./,
  );
});

test("a call in flight when a budget is set is counted when it ends", async () => {
  const { a, account, advance } = await startImpatient(1n);
  const { key, secret } = await a.keys.issue(account.id, {});
  const setAt = Date.now();
  await a.keys.update(key.id, { budget: { limitNanoUsd: 10n * usd, period: "total" } });
  const caller = await a.keys.authenticate(secret);
  expect((await a.keys.budgetOf(caller))?.spentNanoUsd).toBe(0n);
  const countedMs = Date.now() - setAt;
  await a.money.capture({
    account: account.id,
    key: key.id,
    requestId: newRequestId(),
    endpoint: "/v1/chat/completions",
    model: "local/chat",
    lease: "lease:a:1",
    heldNanoUsd: usd,
    costNanoUsd: usd,
    totalMs: 1,
    attempts: [],
    usage: {},
    estimated: false,
    status: "succeeded",
  });
  // The count is repeated an hour after the budget was set. Redis, which has the time of the count, does not move.
  advance(3_600_000 - countedMs);
  await expect.poll(async () => (await a.keys.budgetOf(caller))?.spentNanoUsd).toBe(usd);
});

test("a changed budget is in force at the next call", async () => {
  const { a, b, caller, key } = await startImpatient(1n);
  await expect(begin(a, caller, 2n * usd)).rejects.toMatchObject(exceeded);
  await b.keys.update(key.id, { budget: { limitNanoUsd: 2n * usd, period: "month" } });
  await (await begin(a, caller, 2n * usd)).end(2n * usd);
  await b.keys.update(key.id, { budget: null });
  await (await begin(a, caller, 9n * usd)).end(9n * usd);
  await b.keys.update(key.id, { budget: { limitNanoUsd: 12n * usd, period: "day" } });
  await expect(begin(a, caller, 2n * usd)).rejects.toThrow(/11\.00 USD are spent/);
});

test("whatever happens in any order, no budget is exceeded and the sum is that of the ledger", async () => {
  const anyStep = fc.oneof(
    step(5, "begin", { by: fc.nat(1), made: fc.boolean(), cents: fc.integer({ min: 1, max: 400 }) }),
    step(4, "end", { at: fc.nat(9), part: fc.integer({ min: 0, max: 100 }) }),
    step(1, "lose"),
    step(1, "reconnect", { by: fc.nat(1) }),
  );
  const { a, b, account } = await startBudget(1n);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(anyStep, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 8 }),
      async (rounds) => {
        const { secret } = await a.keys.issue(account.id, { budget: { limitNanoUsd: 10n * usd, period: "day" } });
        const caller = await a.keys.authenticate(secret);
        const made = await a.keys.authenticate((await a.keys.issue(account.id, {}, caller)).secret);
        const open: Call[] = [];
        let spentNanoUsd = 0n;
        for (const round of rounds)
          await Promise.all(
            round.map(async (each) => {
              if (each.do === "begin") {
                const call = await begin(
                  [a, b][each.by] as Instance,
                  each.made ? made : caller,
                  BigInt(each.cents) * 10_000_000n,
                ).catch((error: unknown) => {
                  // While a connection is re-established, calls get a 503.
                  if (error instanceof ServiceError && [402, 503].includes(error.status)) return undefined;
                  throw error;
                });
                if (call) open.push(call);
              } else if (each.do === "end") {
                const [call] = open.splice(each.at % Math.max(1, open.length), 1);
                if (!call) return;
                const costNanoUsd = (call.heldNanoUsd * BigInt(each.part)) / 100n;
                spentNanoUsd += costNanoUsd;
                await call.end(costNanoUsd);
              } else if (each.do === "lose") await loseData(a.redis).catch(() => undefined);
              else ([a, b][each.by] as Instance).redis.disconnect(true);
            }),
          ).then(() => {
            const openNanoUsd = open.reduce((sum, { heldNanoUsd }) => sum + heldNanoUsd, 0n);
            expect(spentNanoUsd + openNanoUsd).toBeLessThanOrEqual(10n * usd);
          });
        await Promise.all([isConnected(a.redis), isConnected(b.redis)]);
        for (const call of open) {
          spentNanoUsd += call.heldNanoUsd;
          await call.end(call.heldNanoUsd);
        }
        await loseData(a.redis);
        expect((await b.keys.budgetOf(caller))?.spentNanoUsd).toBe(spentNanoUsd);
      },
    ),
    { numRuns: 25 },
  );
});
