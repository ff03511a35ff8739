import { expect, test } from "vitest";
import { createPendingWrites } from "../../api/keys/pending-writes.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createManualClock } from "../support/manual-clock.ts";

function setup() {
  const clock = createManualClock();
  const made: string[] = [];
  const state = { away: true };
  const write = (name: string) => async () => {
    if (state.away) throw new Error("away");
    made.push(name);
  };
  return { clock, made, state, write, owed: createPendingWrites({ clock, log: createLogger("test", "silent") }) };
}

test("a write that fails does not reject, and is made once when it can be", async () => {
  const { clock, made, state, write, owed } = setup();
  await owed.pay(write("a"));
  owed.later(write("b"));
  clock.advance(1_000);
  expect(made).toEqual([]);
  state.away = false;
  await expect.poll(() => (clock.advance(1_000), made.toSorted())).toEqual(["a", "b"]);
  await expect.poll(() => clock.pending()).toBe(0);
});

test("a write that can be made at once is not owed", async () => {
  const { clock, made, state, write, owed } = setup();
  state.away = false;
  await owed.pay(write("a"));
  expect(made).toEqual(["a"]);
  expect(clock.pending()).toBe(0);
});

test("one that can never be made does not hold up the others", async () => {
  const { clock, made, state, write, owed } = setup();
  await owed.pay(() => Promise.reject(new Error("never")));
  await owed.pay(write("a"));
  state.away = false;
  await expect.poll(() => (clock.advance(1_000), made)).toEqual(["a"]);
});

test("what a failover may have lost is made again after a reconnect, and nothing older", async () => {
  const { clock, made, state, write, owed } = setup();
  state.away = false;
  await owed.pay(write("old"));
  clock.advance(5_001);
  await owed.pay(write("late"));
  owed.again();
  await expect.poll(() => (clock.advance(1_000), made)).toEqual(["old", "late", "late"]);
  await expect.poll(() => clock.pending()).toBe(0);
  owed.again();
  expect(clock.pending()).toBe(0);
});
