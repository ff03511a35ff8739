import { expect, test } from "vitest";
import { createLookups } from "../../api/keys/lookups.ts";
import { createManualClock } from "../support/manual-clock.ts";

function setup() {
  const clock = createManualClock();
  const state = { epoch: "one", stored: "first" as string | undefined, reads: 0 };
  const lookUp = createLookups<string>({ clock, epoch: { last: () => state.epoch } });
  const read = async (epoch: string) => {
    state.reads += 1;
    return state.stored === undefined ? undefined : `${state.stored} under ${epoch}`;
  };
  return { clock, state, lookUp, read };
}

test("concurrent lookups of a name share one read, and later ones are answered from the cache", async () => {
  const { state, lookUp, read } = setup();
  const found = await Promise.all([lookUp("a", read), lookUp("a", read), lookUp("a", read)]);
  expect(found).toEqual(["first under one", "first under one", "first under one"]);
  expect(await lookUp("a", read)).toBe("first under one");
  expect(state.reads).toBe(1);
});

test("a new epoch invalidates the cache", async () => {
  const { state, lookUp, read } = setup();
  await lookUp("a", read);
  Object.assign(state, { epoch: "two", stored: "second" });
  expect(await lookUp("a", read)).toBe("second under two");
});

test("a read that began before a change is not trusted after it", async () => {
  const { state, lookUp, read } = setup();
  const slow = Promise.withResolvers<string>();
  const before = lookUp("a", () => slow.promise);
  Object.assign(state, { epoch: "two", stored: "second" });
  const after = lookUp("a", read);
  slow.resolve("stale");
  expect(await Promise.all([before, after])).toEqual(["stale", "second under two"]);
  expect(await lookUp("a", read)).toBe("second under two");
  expect(state.reads).toBe(1);
});

test("after half a minute everything is read again", async () => {
  const { clock, state, lookUp, read } = setup();
  await lookUp("a", read);
  clock.advance(29_999);
  await lookUp("a", read);
  expect(state.reads).toBe(1);
  clock.advance(1);
  await lookUp("a", read);
  expect(state.reads).toBe(2);
});

test("a missing or unreadable document is not cached", async () => {
  const { state, lookUp, read } = setup();
  state.stored = undefined;
  expect(await lookUp("a", read)).toBeUndefined();
  await expect(lookUp("a", () => Promise.reject(new Error("unavailable")))).rejects.toThrow("unavailable");
  state.stored = "there";
  expect(await lookUp("a", read)).toBe("there under one");
});

test("the newest 10,000 are cached", async () => {
  const { state, lookUp, read } = setup();
  for (let n = 0; n <= 10_000; n++) await lookUp(`key ${n}`, read);
  expect(state.reads).toBe(10_001);
  await lookUp("key 10000", read);
  await lookUp("key 1", read);
  expect(state.reads).toBe(10_001);
  await lookUp("key 0", read);
  expect(state.reads).toBe(10_002);
});
