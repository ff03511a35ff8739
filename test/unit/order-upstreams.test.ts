import { expect, test } from "vitest";
import { type OrderDeps, orderUpstreams } from "../../api/admission/order-upstreams.ts";
import { catalogWith, textModel } from "../support/catalog-fixture.ts";

/** mulberry32: the same numbers for the same seed. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const { catalog, model: known } = catalogWith(textModel);
type Served = (typeof known)["upstreams"][number];
const modelOf = (...upstreams: Partial<Served>[]) => ({
  ...known,
  upstreams: upstreams.map((served) => ({ upstream: "", model: "m", ...served })),
});
const weighed = modelOf({ upstream: "a", weight: 6 }, { upstream: "b", weight: 3 }, { upstream: "c", weight: 1 });

const depsOf = (random: () => number, open: readonly string[] = []): OrderDeps => ({
  catalog,
  registry: {
    known: () => true,
    upstream: (id) => (open.includes(id) ? "open" : "ready"),
    speed: () => undefined,
  },
  random,
});
const usual = { preferences: undefined, stream: false };

/** Counts each order in ten thousand draws. */
function ordersOf(model: typeof weighed, deps: OrderDeps): Map<string, number> {
  const counts = new Map<string, number>();
  for (let draw = 0; draw < 10_000; draw++) {
    const order = (orderUpstreams(deps, model, usual) ?? model.upstreams.map(({ upstream }) => upstream)).join(" ");
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  return counts;
}

const share = (counts: Map<string, number>, prefix: string) =>
  [...counts].reduce((sum, [order, count]) => sum + (order.startsWith(prefix) ? count : 0), 0) / 10_000;

test("the first is drawn by weight, and so are the rest of those that remain", () => {
  const counts = ordersOf(weighed, depsOf(seeded(7)));
  expect(share(counts, "a")).toBeCloseTo(0.6, 1);
  expect(share(counts, "b")).toBeCloseTo(0.3, 1);
  expect(share(counts, "c")).toBeCloseTo(0.1, 1);
  // After a, the odds of b and c are 3 to 1.
  expect(share(counts, "a b") / share(counts, "a")).toBeCloseTo(0.75, 1);
  expect(counts.size).toBe(6);
  // The tolerance is three standard deviations of ten thousand draws.
  expect(Math.abs(share(counts, "a") - 0.6)).toBeLessThan(3 * Math.sqrt((0.6 * 0.4) / 10_000));
});

test("unready upstreams come after ready ones, and those without a weight at the end", () => {
  const spare = modelOf(
    { upstream: "s" },
    { upstream: "t" },
    { upstream: "a", weight: 1 },
    { upstream: "b", weight: 9 },
  );
  const counts = ordersOf(spare, depsOf(seeded(7), ["b"]));
  // Only the ready one with a weight is drawn; the spare ones keep the catalog's order.
  expect([...counts.keys()]).toEqual(["a s t b"]);
  const all = ordersOf(spare, depsOf(seeded(7)));
  expect([...all.keys()].toSorted()).toEqual(["a b s t", "b a s t"]);
  expect(share(all, "b")).toBeCloseTo(0.9, 1);
});

test("without weights the order is the catalog's, and nothing is drawn", () => {
  const never = () => {
    throw new Error("drawn");
  };
  expect(orderUpstreams(depsOf(never), modelOf({ upstream: "a" }, { upstream: "b" }), usual)).toBeUndefined();
});

test("an order among upstreams with weights is not drawn over", () => {
  const preferences = { order: ["c"], only: ["a", "c"] };
  expect(orderUpstreams(depsOf(seeded(1)), weighed, { preferences, stream: false })).toEqual(["c", "a"]);
});
