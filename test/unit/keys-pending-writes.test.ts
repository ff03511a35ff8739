import { expect, test } from "vitest";
import { createPendingWrites } from "../../api/keys/pending-writes.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createManualClock } from "../support/manual-clock.ts";

function setup() {
  const clock = createManualClock();
  const made: string[] = [];
  const state = { unavailable: true };
  const write = (name: string) => async () => {
    if (state.unavailable) throw new Error("unavailable");
    made.push(name);
  };
  return { clock, made, state, write, pending: createPendingWrites({ clock, log: createLogger("test", "silent") }) };
}

test("a failed write does not reject, and is made once when it can be", async () => {
  const { clock, made, state, write, pending } = setup();
  await pending.run(write("a"));
  pending.defer(write("b"));
  clock.advance(1_000);
  expect(made).toEqual([]);
  state.unavailable = false;
  await expect.poll(() => (clock.advance(1_000), made.toSorted())).toEqual(["a", "b"]);
  await expect.poll(() => clock.pending()).toBe(0);
});

test("a write that succeeds at once is not repeated", async () => {
  const { clock, made, state, write, pending } = setup();
  state.unavailable = false;
  await pending.run(write("a"));
  expect(made).toEqual(["a"]);
  expect(clock.pending()).toBe(0);
});

test("a write that can never be made does not hold up the others", async () => {
  const { clock, made, state, write, pending } = setup();
  await pending.run(() => Promise.reject(new Error("never")));
  await pending.run(write("a"));
  state.unavailable = false;
  await expect.poll(() => (clock.advance(1_000), made)).toEqual(["a"]);
});

test("writes that a failover may have lost are repeated after a reconnect, and no older ones", async () => {
  const { clock, made, state, write, pending } = setup();
  state.unavailable = false;
  await pending.run(write("old"));
  clock.advance(5_001);
  await pending.run(write("late"));
  pending.repeatRecent();
  await expect.poll(() => (clock.advance(1_000), made)).toEqual(["old", "late", "late"]);
  await expect.poll(() => clock.pending()).toBe(0);
  pending.repeatRecent();
  expect(clock.pending()).toBe(0);
});
