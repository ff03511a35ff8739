import { describe, expect, test } from "vitest";
import type { Begun } from "../../shared/replay/index.ts";
import { eventually } from "../support/service.ts";
import { brokenWire, type Fate } from "./money-proxy.ts";
import { times } from "./money-setup.ts";
import { alive, dead, keptCall, openReplays, startReplays, taken } from "./replays-setup.ts";
import { gate } from "./service-setup.ts";

const news = (begun: readonly Begun[]) => begun.filter(({ kind }) => kind === "new");

describe("whoever had the key is dead", () => {
  test("the next one takes it over, and is told of the one before", async () => {
    const { replays, ask } = await startReplays();
    const [first, second] = [ask({ instance: "api_dead" }), ask()];
    const id = await taken(replays, first);
    expect(await replays.begin(second, dead)).toEqual({ kind: "new", id, before: first.requestId });
    const owners: unknown[] = [];
    await replays.begin(ask(), async (owner) => {
      owners.push(owner);
      return true;
    });
    expect(owners).toMatchObject([{ requestId: second.requestId, instance: "api_1" }]);
  });

  test("an answer that it kept without a decision does not count", async () => {
    const { replays, ask } = await startReplays();
    const [first, second] = [ask(), ask()];
    const id = await taken(replays, first);
    await replays.keep(id, first.requestId, keptCall());
    expect(await replays.begin(second, dead)).toEqual({ kind: "new", id, before: first.requestId });
    expect(await replays.kept(id, second.requestId)).toBeUndefined();
  });

  test("a decision that falls while its life is asked after is not run twice", async () => {
    const { replays, ask, decide } = await startReplays();
    const first = ask();
    const id = await taken(replays, first);
    await replays.keep(id, first.requestId, keptCall());
    // The worker decides and acknowledges its job between the two looks; so nobody is left who would end the request.
    const begun = await replays.begin(ask(), async () => {
      await decide(first.requestId, 600n);
      return false;
    });
    expect(begun).toMatchObject({ kind: "answered", requestId: first.requestId });
  });
});

test("an answer that is kept and decided while its key is looked at is not run twice", async () => {
  const { stores, replays, ask, decide } = await startReplays();
  const [reached, looked] = [gate(), gate()];
  // The look at the ledger waits on the wire: what the key's document said before is old by then.
  const uri = await brokenWire(stores.MONGODB_URI, async (command): Promise<Fate> => {
    if (command["find"] !== "ledger") return "pass";
    reached.open();
    await looked.opened;
    return "pass";
  });
  const slow = await openReplays({ ...stores, MONGODB_URI: uri });
  const first = ask();
  const id = await taken(replays, first);
  const again = slow.replays.begin(ask(), alive);
  await reached.opened;
  await replays.keep(id, first.requestId, keptCall());
  await decide(first.requestId, 600n);
  looked.open();
  expect(await again).toMatchObject({ kind: "answered", requestId: first.requestId });
});

describe("many at once", () => {
  test("on a free key: one is new, in however many processes", async () => {
    const { replays, ask, another } = await startReplays();
    const processes = [replays, (await another()).replays, (await another()).replays];
    for (const key of times(5, (at) => `key-${at}`)) {
      const begun = await Promise.all(
        times(24, (at) => processes[at % 3]?.begin(ask({ key }), alive) as Promise<Begun>),
      );
      expect(news(begun)).toHaveLength(1);
      expect(begun.filter(({ kind }) => kind === "running")).toHaveLength(23);
    }
  });

  test("on the key of a dead one, or of a failed one: one is new", async () => {
    const { replays, ask, another, decide } = await startReplays();
    const processes = [replays, (await another()).replays, (await another()).replays];
    for (const end of ["died", "failed"]) {
      const first = ask({ key: end });
      await taken(replays, first);
      if (end === "failed") await decide(first.requestId, 0n, "failed");
      const isAlive = async ({ requestId }: { requestId: string }) => requestId !== first.requestId;
      const begun = await Promise.all(
        times(24, (at) => processes[at % 3]?.begin(ask({ key: end }), isAlive) as Promise<Begun>),
      );
      expect(news(begun)).toEqual([{ kind: "new", id: expect.any(String), before: first.requestId }]);
    }
  });

  test("on a key that is released again and again: never two at a time", async () => {
    const { replays, ask, another } = await startReplays();
    const processes = [replays, (await another()).replays];
    let [holding, most, turns] = [0, 0, 0];
    await Promise.all(
      times(12, async (at) => {
        const each = processes[at % 2] ?? replays;
        for (;;) {
          const mine = ask();
          const begun = await each.begin(mine, alive);
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
  const { stores, replays, ask } = await startReplays();
  const uri = await brokenWire(
    stores.MONGODB_URI,
    ({ insert }): Fate => (insert === "replays" ? "lose the answer" : "pass"),
  );
  const broken = await openReplays({ ...stores, MONGODB_URI: uri });
  await expect(broken.replays.begin(ask(), alive)).rejects.toThrow(/clos|timed|connection/);
  await eventually(async () => (await replays.begin(ask(), alive)).kind === "new");
});
