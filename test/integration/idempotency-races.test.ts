import { describe, expect, onTestFinished, test } from "vitest";
import { loadCatalog } from "../../shared/catalog/index.ts";
import { noCapacity } from "../../shared/errors.ts";
import type { Claim } from "../../shared/idempotency/index.ts";
import { createCancellations } from "../../shared/jobs/index.ts";
import { createEventLogs } from "../../shared/stored-responses/index.ts";
import { createCounting } from "../../workers/counting/index.ts";
import { endWithoutRunning } from "../../workers/run-call.ts";
import { createRunning } from "../../workers/running.ts";
import { createUpstreams } from "../../workers/upstreams/index.ts";
import { alive, claimNew, dead, openIdempotency, startIdempotency, storedCall } from "../support/idempotency-setup.ts";
import { connect, log, openWriter, paidCall } from "../support/jobs-setup.ts";
import { brokenWire, type Fate } from "../support/money-proxy.ts";
import { balance, captureOf, createMovableClock, free, held, holdOf, times } from "../support/money-setup.ts";
import { eventually } from "../support/service.ts";
import { gate } from "../support/service-setup.ts";
import { noOwnKeys } from "../support/upstreams-setup.ts";

const newOnes = (claims: readonly Claim[]) => claims.filter(({ kind }) => kind === "new");

describe("the process that had the key is dead", () => {
  test("the next request takes it over, and learns the id of the one before", async () => {
    const { idempotency, ask } = await startIdempotency();
    const [first, second] = [ask({ instance: "api_dead" }), ask()];
    const id = await claimNew(idempotency, first);
    expect(await idempotency.claim(second, dead)).toEqual({ kind: "new", id, before: first.requestId });
    const owners: unknown[] = [];
    await idempotency.claim(ask(), async (owner) => {
      owners.push(owner);
      return true;
    });
    expect(owners).toMatchObject([{ requestId: second.requestId, instance: "api_1" }]);
  });

  test("an answer that was stored but not captured does not count", async () => {
    const { idempotency, ask, store, stored } = await startIdempotency();
    const [first, second] = [ask(), ask()];
    const id = await claimNew(idempotency, first);
    await store(first.requestId, storedCall());
    expect(await idempotency.claim(second, dead)).toEqual({ kind: "new", id, before: first.requestId });
    expect(await stored(second.requestId)).toBeUndefined();
  });

  test.each(["before", "after"] as const)(
    "a call that is captured after its key was taken over costs nothing, its hold was written %s that",
    async (when) => {
      const { idempotency, money, account, ask, charge, store } = await startIdempotency();
      const [first, second] = [ask(), ask()];
      await claimNew(idempotency, first);
      const hold = holdOf(account, 1_000n, { requestId: first.requestId });
      if (when === "before") await held(money, hold);
      await store(first.requestId, storedCall());
      expect(await idempotency.claim(second, dead)).toMatchObject({ kind: "new" });
      if (when === "after") await held(money, hold);
      expect(await money.charge(captureOf(hold, 600n))).toMatchObject({ won: false, entry: { costNanoUsd: 0n } });
      await store(second.requestId, storedCall());
      await charge(second.requestId, 600n);
      expect(await balance(money, account)).toEqual(free(1_000_000n - 600n));
      expect(await idempotency.claim(ask(), dead)).toMatchObject({ kind: "answered", requestId: second.requestId });
    },
  );

  test("a call that is captured before the zero that its successor writes is answered, not run again", async () => {
    const { stores, idempotency, ask, charge, store } = await startIdempotency();
    const first = ask();
    await claimNew(idempotency, first);
    await store(first.requestId, storedCall());
    const uri = await brokenWire(stores.MONGODB_URI, async ({ insert }): Promise<Fate> => {
      if (insert === "ledger") await charge(first.requestId, 600n);
      return "pass";
    });
    const next = await openIdempotency({ ...stores, MONGODB_URI: uri });
    const claim = await next.idempotency.claim(ask(), dead);
    expect(claim).toMatchObject({ kind: "answered", requestId: first.requestId, answer: { costNanoUsd: 600n } });
  });

  test("a call that is captured during the liveness check is not run twice", async () => {
    const { idempotency, ask, charge, store } = await startIdempotency();
    const first = ask();
    await claimNew(idempotency, first);
    await store(first.requestId, storedCall());
    // The worker settles the call and acknowledges its job between the two reads of the ledger.
    const claim = await idempotency.claim(ask(), async () => {
      await charge(first.requestId, 600n);
      return false;
    });
    expect(claim).toMatchObject({ kind: "answered", requestId: first.requestId });
  });
});

test("a call that is answered and captured while its key is read is not run twice", async () => {
  const { stores, idempotency, ask, charge, store } = await startIdempotency();
  const [reached, resumed] = [gate(), gate()];
  // Delay the read of the ledger until the key's document is outdated.
  const uri = await brokenWire(stores.MONGODB_URI, async (command): Promise<Fate> => {
    if (command["find"] !== "ledger") return "pass";
    reached.open();
    await resumed.opened;
    return "pass";
  });
  const slow = await openIdempotency({ ...stores, MONGODB_URI: uri });
  const first = ask();
  await claimNew(idempotency, first);
  const again = slow.idempotency.claim(ask(), alive);
  await reached.opened;
  await store(first.requestId, storedCall());
  await charge(first.requestId, 600n);
  resumed.open();
  expect(await again).toMatchObject({ kind: "answered", requestId: first.requestId });
});

describe("many at once", () => {
  test("on a free key: one is new, in however many processes", async () => {
    const { idempotency, ask, another } = await startIdempotency();
    const processes = [idempotency, (await another()).idempotency, (await another()).idempotency];
    for (const key of times(5, (at) => `key-${at}`)) {
      const claims = await Promise.all(
        times(24, (at) => processes[at % 3]?.claim(ask({ key }), alive) as Promise<Claim>),
      );
      expect(newOnes(claims)).toHaveLength(1);
      expect(claims.filter(({ kind }) => kind === "running")).toHaveLength(23);
    }
  });

  test("on the key of a dead or failed request: one is new", async () => {
    const { idempotency, ask, another, charge } = await startIdempotency();
    const processes = [idempotency, (await another()).idempotency, (await another()).idempotency];
    for (const end of ["died", "failed"]) {
      const first = ask({ key: end });
      await claimNew(idempotency, first);
      if (end === "failed") await charge(first.requestId, 0n, "failed");
      const isAlive = async ({ requestId }: { requestId: string }) => requestId !== first.requestId;
      const claims = await Promise.all(
        times(24, (at) => processes[at % 3]?.claim(ask({ key: end }), isAlive) as Promise<Claim>),
      );
      expect(newOnes(claims)).toEqual([{ kind: "new", id: expect.any(String), before: first.requestId }]);
    }
  });

  test("on a key that is released repeatedly: never two at a time", async () => {
    const { idempotency, ask, another } = await startIdempotency();
    const processes = [idempotency, (await another()).idempotency];
    let [holding, max, turns] = [0, 0, 0];
    await Promise.all(
      times(12, async (at) => {
        const each = processes[at % 2] ?? idempotency;
        for (;;) {
          const request = ask();
          const claim = await each.claim(request, alive);
          if (claim.kind !== "new") continue;
          holding++;
          turns++;
          max = Math.max(max, holding);
          await new Promise(setImmediate);
          holding--;
          return each.release(claim.id, request.requestId);
        }
      }),
    );
    expect({ max, turns }).toEqual({ max: 1, turns: 12 });
  });
});

test("a claim that MongoDB did not confirm does not lock the key", async () => {
  const { stores, idempotency, ask } = await startIdempotency();
  const uri = await brokenWire(
    stores.MONGODB_URI,
    ({ insert }): Fate => (insert === "idempotency" ? "lose the answer" : "pass"),
  );
  const broken = await openIdempotency({ ...stores, MONGODB_URI: uri });
  await expect(broken.idempotency.claim(ask(), alive)).rejects.toThrow(/clos|timed|connection/);
  await eventually(async () => (await idempotency.claim(ask(), alive)).kind === "new");
});

test("a call that succeeded and is delivered again to a worker that cannot run it, with a key: its charge is final", async () => {
  const clock = createMovableClock();
  const { detachedCalls, batches, stores, money, files, responses, account, ask, charge } =
    await startIdempotency(clock);
  const { redis, replies } = await openWriter(stores, clock);
  const subscriber = await connect(stores, "blocking");
  const cancellations = createCancellations({ subscriber, commands: redis, clock, log });
  const catalog = loadCatalog(undefined);
  const counting = createCounting({ clock, log });
  onTestFinished(() => counting.close());
  const upstreams = createUpstreams({ ...noOwnKeys, catalog, env: {}, clock, counting, log });
  onTestFinished(() => upstreams.close());
  const running = createRunning({ cancellations, replies, clock, log });
  const ofWorker = { catalog, byokFeeBps: 500, upstreams, cancellations, running, counting, clock, log };
  // The API instance of its caller is gone for good.
  clock.later(60_000);
  const { requestId } = ask();
  await charge(requestId, 600n);
  await endWithoutRunning(
    {
      ...ofWorker,
      money,
      files,
      detachedCalls,
      batches,
      responses,
      replies,
      eventLogs: createEventLogs({ redis, clock, log }),
    },
    paidCall(requestId, { account, held: "1000", idempotencyKeyId: "a-key" }),
    noCapacity("It could not be run."),
  );
  expect(await balance(money, account)).toEqual(free(999_400n));
});
