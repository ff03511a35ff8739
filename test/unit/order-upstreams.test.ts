import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Upstream } from "#catalog";
import type { ProviderPreferences } from "#formats";
import type { ProviderKey } from "#provider-keys";
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
    hasKey: () => true,
    upstream: (id) => (open.includes(id) ? "open" : "ready"),
    speed: () => undefined,
  },
  random,
});
const usual = { preferences: undefined, stream: false };

const shown = (order: ReturnType<typeof orderUpstreams>): string | undefined =>
  order?.map((each) => (typeof each === "string" ? each : `${each.upstream}:${each.key}`)).join(" ");

/** Counts each order in ten thousand draws. */
function ordersOf(model: typeof weighed, deps: OrderDeps): Map<string, number> {
  const counts = new Map<string, number>();
  for (let draw = 0; draw < 10_000; draw++) {
    const order =
      shown(orderUpstreams(deps, model, usual)) ?? model.upstreams.map(({ upstream }) => upstream).join(" ");
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

describe("a conversation", () => {
  const never = () => {
    throw new Error("drawn");
  };
  const orderOf = (conversation: string, { model = weighed, open = [] as readonly string[] } = {}) =>
    (
      orderUpstreams(depsOf(never, open), model, { ...usual, conversation: () => conversation }) ??
      model.upstreams.map(({ upstream }) => upstream)
    ).map(String);
  const conversations = Array.from({ length: 10_000 }, (_, n) => `conversation ${n}`);

  test("stays at its upstream, and conversations are shared out by weight", () => {
    const orders = conversations.map((each) => orderOf(each));
    expect(conversations.map((each) => orderOf(each))).toEqual(orders);
    const counts = new Map<string, number>();
    for (const order of orders) counts.set(order.join(" "), (counts.get(order.join(" ")) ?? 0) + 1);
    for (const [upstream, weight] of [
      ["a", 0.6],
      ["b", 0.3],
      ["c", 0.1],
    ] as const)
      expect(Math.abs(share(counts, upstream) - weight)).toBeLessThan(4 * Math.sqrt((weight * (1 - weight)) / 10_000));
    expect(share(counts, "a b") / share(counts, "a")).toBeCloseTo(0.75, 1);
  });

  test("leaves only an upstream that is not ready or that is gone, and moves to a new one by its weight alone", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 3, maxLength: 6 }),
        (id, weights) => {
          const model = modelOf(...weights.map((weight, n) => ({ upstream: `u${n}`, weight })));
          const order = orderOf(id, { model });
          const [first, ...rest] = order;
          if (first === undefined) throw new Error("no upstream");
          expect(orderOf(id, { model, open: [first] })).toEqual([...rest, first]);
          expect(orderOf(id, { model, open: rest.slice(0, 1) })[0]).toBe(first);
          const without = { ...model, upstreams: model.upstreams.filter(({ upstream }) => upstream !== first) };
          expect(orderOf(id, { model: without })).toEqual(rest);
          const more = { ...model, upstreams: [{ upstream: "new", model: "m", weight: 3 }, ...model.upstreams] };
          expect(orderOf(id, { model: more }).filter((upstream) => upstream !== "new")).toEqual(order);
          const heavier = {
            ...model,
            upstreams: model.upstreams.map((u) => (u.upstream === first ? { ...u, weight: 99 } : u)),
          };
          expect(orderOf(id, { model: heavier })[0]).toBe(first);
        },
      ),
    );
  });

  test("is not identified where it cannot matter, and stays below `order` and `sort`", () => {
    const conversation = () => {
      throw new Error("hashed");
    };
    const alone = modelOf({ upstream: "a", weight: 1 }, { upstream: "b" });
    for (const model of [alone, modelOf({ upstream: "a" }, { upstream: "b" })])
      expect(
        orderUpstreams(
          depsOf(() => 0),
          model,
          { ...usual, conversation },
        ),
      ).toBeUndefined();
    const priced = modelOf(
      ...["a", "b", "c"].map((upstream, n) => ({
        upstream,
        weight: 1,
        cost: { rank: BigInt(n), of: () => 0n, lines: {} },
      })),
    );
    const by = (preferences: ProviderPreferences) =>
      conversations
        .slice(0, 20)
        .map(
          (each) =>
            orderUpstreams(depsOf(never), priced, { preferences, stream: false, conversation: () => each })?.[0] ?? "a",
        );
    expect(new Set(by({ sort: "price" }))).toEqual(new Set(["a"]));
    expect(new Set(by({ order: ["b"] }))).toEqual(new Set(["b"]));
    expect(new Set(by({ ignore: ["a"] }))).toEqual(new Set(["b", "c"]));
  });
});

const keyOf = (id: string, more: Partial<ProviderKey> = {}): ProviderKey => ({
  id,
  account: "acct_1",
  upstream: "a",
  name: null,
  label: "sk-...0001",
  mode: "first",
  priority: 0,
  disabled: false,
  models: null,
  keyIds: null,
  config: {},
  version: 1,
  status: "ok",
  statusMessage: null,
  checkedAt: null,
  lastUsedAt: null,
  createdAt: new Date(0),
  ...more,
});

const first = keyOf("k1");
const only = keyOf("k2", { mode: "only", upstream: "b", config: { region: "eu-west-1" } });
const last = keyOf("k3", { mode: "last", upstream: "c", config: { region: "eu-west-1" } });
const invalid = { status: "invalid" } as const;

const cases: readonly (readonly [
  name: string,
  own: readonly ProviderKey[],
  preferences: ProviderPreferences,
  expected: string | undefined,
])[] = [
  ["own keys come before and after the others", [first, last], {}, "a:k1 a b c c:k3"],
  ["a key of mode `only` replaces the operator's at its upstream", [only], {}, "b:k2 a c"],
  ["`only` and `ignore` filter own keys too", [first, only, last], { only: ["a", "b"], ignore: ["a"] }, "b:k2"],
  ["`order` applies within the groups", [first, only, last], { order: ["c", "b"] }, "b:k2 a:k1 c a c:k3"],
  ["a key has its own region", [first, last], { regions: ["eu-west-1"] }, "c:k3"],
  ["without fallbacks, the first of all is tried", [first, last], { allow_fallbacks: false }, "a:k1"],
  ["without fallbacks, those in the order are tried", [last], { order: ["c"], allow_fallbacks: false }, "c c:k3"],
  ["`byok: only` leaves own keys alone", [first, last], { byok: "only" }, "a:k1 c:k3"],
  ["`byok: never` leaves the operator's", [first, last], { byok: "never" }, undefined],
  ["`byok: never` does not open what `only` has closed", [first, only], { byok: "never" }, "a c"],
  ["an invalid key is not tried", [{ ...first, ...invalid }], {}, undefined],
  ["an invalid key of mode `only` leaves only other own keys", [first, { ...only, ...invalid }], {}, "a:k1"],
  ["an invalid key of mode `only` fails the call", [{ ...only, ...invalid }], {}, "byok_authentication_failed"],
  ["a filter leaves it out", [{ ...only, ...invalid }], { ignore: ["b"] }, "a c"],
  ["a filter by region does not open what `only` has closed", [only], { regions: ["us-east-1"] }, "c"],
  ["it leaves the other upstreams open", [{ ...only, ...invalid }], { regions: ["us-east-1"] }, "c"],
  ["`byok: only` needs a key", [], { byok: "only" }, "invalid_value"],
  ["`byok: never` needs another", [only], { byok: "never", only: ["b"] }, "invalid_value"],
];

test.each(cases)("%s", (_, own, preferences, expected) => {
  const model = modelOf({ upstream: "a" }, { upstream: "b" }, { upstream: "c" });
  const regional = { region: "us-east-1" } as Upstream;
  const upstreams = new Map([...catalog.upstreams, ["b", regional], ["c", regional]]);
  const deps = { ...depsOf(Math.random), catalog: { upstreams } };
  const orderOrCode = () => {
    try {
      return shown(orderUpstreams(deps, model, { preferences, stream: false, own }));
    } catch (error) {
      return (error as { code?: string }).code;
    }
  };
  expect(orderOrCode()).toBe(expected);
});
