import { expect, test } from "vitest";
import { createByteBudget } from "../../shared/platform/byte-budget.ts";

test("an owner holds at most as much as remains free, and returned bytes are free at once", () => {
  const budget = createByteBudget(120);
  const [first, second, third] = [budget.share("a"), budget.share("a"), budget.share("b")];
  expect(first.resize(50)).toBe(true);
  expect(second.resize(11)).toBe(false);
  expect(second.resize(10)).toBe(true);
  // 60 are free: another owner may hold half of them.
  expect(third.resize(31)).toBe(false);
  expect(third.resize(30)).toBe(true);
  expect(first.resize(51)).toBe(false);
  expect(first.resize(0)).toBe(true);
  expect(third.resize(55)).toBe(true);
  for (const share of [first, second, third]) expect(share.resize(0)).toBe(true);
  expect(first.resize(60)).toBe(true);
});

test("an owner with its own limit holds no more than that, in all its shares", () => {
  const budget = createByteBudget(120);
  const [first, second] = [budget.share("a", 30), budget.share("a", 30)];
  expect([first.resize(20), second.resize(11), second.resize(10)]).toEqual([true, false, true]);
  expect(budget.share("b").resize(45)).toBe(true);
});
