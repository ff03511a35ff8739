import { describe, expect, test } from "vitest";
import type { Claim } from "../../shared/idempotency/index.ts";
import { alive, dead, keptCall, openIdempotency, startIdempotency, taken } from "../support/idempotency-setup.ts";
import { brokenWire, type Fate } from "../support/money-proxy.ts";
import { times } from "../support/money-setup.ts";
import { eventually } from "../support/service.ts";
import { gate } from "../support/service-setup.ts";

const news = (begun: readonly Claim[]) => begun.filter(({ kind }) => kind === "new");

describe("whoever had the key is dead", () => {
  test("the next one takes it over, and is told of the one before", async () => {
    const { idempotency, ask } = await startIdempotency();
    const [first, second] = [ask({ instance: "api_dead" }), ask()];
    const id = await taken(idempotency, first);
    expect(await idempotency.claim(second, dead)).toEqual({ kind: "new", id, before: first.requestId });
    const owners: unknown[] = [];
    await idempotency.claim(ask(), async (owner) => {
      owners.push(owner);
      return true;
    });
    expect(owners).toMatchObject([{ requestId: second.requestId, instance: "api_1" }]);
  });

  test("an answer that it kept without a decision does not count", async () => {
    const { idempotency, ask } = await startIdempotency();
    const [first, second] = [ask(), ask()];
    const id = await taken(idempotency, first);
    await idempotency.store(id, first.requestId, keptCall());
    expect(await idempotency.claim(second, dead)).toEqual({ kind: "new", id, before: first.requestId });
    expect(await idempotency.stored(id, second.requestId)).toBeUndefined();
  });

  test("a decision that falls while its life is asked after is not run twice", async () => {
    const { idempotency, ask, decide } = await startIdempotency();
    const first = ask();
    const id = await taken(idempotency, first);
    await idempotency.store(id, first.requestId, keptCall());
    // The worker decides and acknowledges its job between the two looks; so nobody is left who would end the request.
    const begun = await idempotency.claim(ask(), async () => {
      await decide(first.requestId, 600n);
      return false;
    });
    expect(begun).toMatchObject({ kind: "answered", requestId: first.requestId });
  });
});

test("an answer that is kept and decided while its key is looked at is not run twice", async () => {
  const { stores, idempotency, ask, decide } = await startIdempotency();
  const [reached, looked] = [gate(), gate()];
  // The look at the ledger waits on the wire: what the key's document said before is old by then.
  const uri = await brokenWire(stores.MONGODB_URI, async (command): Promise<Fate> => {
    if (command["find"] !== "ledger") return "pass";
    reached.open();
    await looked.opened;
    return "pass";
  });
  const slow = await openIdempotency({ ...stores, MONGODB_URI: uri });
  const first = ask();
  const id = await taken(idempotency, first);
  const again = slow.idempotency.claim(ask(), alive);
  await reached.opened;
  await idempotency.store(id, first.requestId, keptCall());
  await decide(first.requestId, 600n);
  looked.open();
  expect(await again).toMatchObject({ kind: "answered", requestId: first.requestId });
});

describe("many at once", () => {
  test("on a free key: one is new, in however many processes", async () => {
    const { idempotency, ask, another } = await startIdempotency();
    const processes = [idempotency, (await another()).idempotency, (await another()).idempotency];
    for (const key of times(5, (at) => `key-${at}`)) {
      const begun = await Promise.all(
        times(24, (at) => processes[at % 3]?.claim(ask({ key }), alive) as Promise<Claim>),
      );
      expect(news(begun)).toHaveLength(1);
      expect(begun.filter(({ kind }) => kind === "running")).toHaveLength(23);
    }
  });

  test("on the key of a dead one, or of a failed one: one is new", async () => {
    const { idempotency, ask, another, decide } = await startIdempotency();
    const processes = [idempotency, (await another()).idempotency, (await another()).idempotency];
    for (const end of ["died", "failed"]) {
      const first = ask({ key: end });
      await taken(idempotency, first);
      if (end === "failed") await decide(first.requestId, 0n, "failed");
      const isAlive = async ({ requestId }: { requestId: string }) => requestId !== first.requestId;
      const begun = await Promise.all(
        times(24, (at) => processes[at % 3]?.claim(ask({ key: end }), isAlive) as Promise<Claim>),
      );
      expect(news(begun)).toEqual([{ kind: "new", id: expect.any(String), before: first.requestId }]);
    }
  });

  test("on a key that is released again and again: never two at a time", async () => {
    const { idempotency, ask, another } = await startIdempotency();
    const processes = [idempotency, (await another()).idempotency];
    let [holding, most, turns] = [0, 0, 0];
    await Promise.all(
      times(12, async (at) => {
        const each = processes[at % 2] ?? idempotency;
        for (;;) {
          const mine = ask();
          const begun = await each.claim(mine, alive);
          if (begun.kind !== "new") continue;
          holding++;
          turns++;
          most = Math.max(most, holding);
          await new Promise(setImmediate);
          holding--;
          return each.release(begun.id, mine.requestId);
        }
      }),
    );
    expect({ most, turns }).toEqual({ most: 1, turns: 12 });
  });
});

test("a key whose taking was never answered is not locked: who is told 503 may come again", async () => {
  const { stores, idempotency, ask } = await startIdempotency();
  const uri = await brokenWire(
    stores.MONGODB_URI,
    ({ insert }): Fate => (insert === "idempotency" ? "lose the answer" : "pass"),
  );
  const broken = await openIdempotency({ ...stores, MONGODB_URI: uri });
  await expect(broken.idempotency.claim(ask(), alive)).rejects.toThrow(/clos|timed|connection/);
  await eventually(async () => (await idempotency.claim(ask(), alive)).kind === "new");
});
