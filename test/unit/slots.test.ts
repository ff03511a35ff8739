import { expect, test } from "vitest";
import { createSlots, type SlotUser, takeFirstSlot } from "../../workers/upstreams/slots.ts";

test("lines of batches take a part of the slots, and wait behind calls", async () => {
  const slots = createSlots(4, 2);
  const candidates = [{ upstream: { slots } }];
  const granted: string[] = [];
  const want = (name: string, user: SlotUser) =>
    takeFirstSlot(candidates, user, new AbortController().signal).then(() => void granted.push(name));
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

  await Promise.all([want("line 1", "line"), want("line 2", "line")]);
  void want("line 3", "line");
  await Promise.all([want("call 1", "call"), want("call 2", "call")]);
  void want("call 3", "call");
  await settle();
  expect([granted, slots.load()]).toEqual([["line 1", "line 2", "call 1", "call 2"], { running: 4, waiting: 2 }]);

  // A call goes first, although the line has waited longer.
  slots.release("line");
  await settle();
  expect(granted.at(-1)).toBe("call 3");
  slots.release("call");
  await settle();
  expect(granted.at(-1)).toBe("line 3");
  slots.release("call");
  void want("line 4", "line");
  await settle();
  // There is a free slot, but none for a third line.
  expect([granted.length, slots.load()]).toEqual([6, { running: 3, waiting: 1 }]);
});
