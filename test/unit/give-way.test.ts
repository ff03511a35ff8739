import { expect, test } from "vitest";
import { nextRate } from "../../api/batches/give-way.ts";

const unlimited = Number.POSITIVE_INFINITY;
const cases: readonly (readonly [name: string, rate: number, load: Parameters<typeof nextRate>[1], next: number])[] = [
  ["only lines run, however busy", 20, { begun: 900, calls: 0, utilization: 1 }, unlimited],
  ["live calls run, and processes have time", unlimited, { begun: 900, calls: 9, utilization: 0.4 }, unlimited],
  ["the processes become busy", unlimited, { begun: 900, calls: 1, utilization: 0.5 }, 450],
  ["fewer lines began than might have", 400, { begun: 100, calls: 1, utilization: 0.9 }, 50],
  ["lines that began before the limit still end", 50, { begun: 900, calls: 1, utilization: 0.9 }, 25],
  ["a few lines always begin", 25, { begun: 0, calls: 500, utilization: 1 }, 20],
  ["the processes have time again", 20, { begun: 20, calls: 500, utilization: 0.49 }, 30],
];

test.for(cases)("the lines that may begin in a second: %s", ([, rate, load, next]) => {
  expect(nextRate(rate, load)).toBe(next);
});
