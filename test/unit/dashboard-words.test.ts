import { expect, test } from "vitest";
import { loadCatalog } from "#catalog";
import { itemOf, noticesOf } from "../../dashboard/src/lib/events.ts";
import { availabilityText, featureName, type Order, sorted } from "../../dashboard/src/lib/models.ts";
import { priceRows } from "../../dashboard/src/lib/prices.ts";
import { eventTypes, isNotice } from "../../shared/webhooks/event-types.ts";

test("prices say what is paid for and per what, and every feature of the catalog has words", () => {
  const rows = (prices: Record<string, string>) =>
    priceRows({
      x_pricing: Object.fromEntries(
        Object.entries(prices).map(([key, unit]) => [key, { unit, list_usd: "1", elite_usd: "1" }]),
      ),
    }).map(({ what, unit }) => `${what ?? "-"} per ${unit}`);
  const text = { input: "1M_tokens", cached_input_above_200000: "1M_tokens" };
  expect(rows(text)).toEqual(["Input per 1M tokens", "Cached input, above 200,000 tokens per 1M tokens"]);
  const media = { minute: "minute", second_1080p: "second", image_high_rectangle: "image", input_image: "image" };
  expect(rows(media)).toEqual([
    "- per minute",
    "1080p per second",
    "High rectangle per image",
    "Input image per image",
  ]);
  const features = new Set(
    loadCatalog(undefined)
      .list()
      .flatMap((model) => [...model.features]),
  );
  for (const feature of features)
    expect([feature, featureName(feature)]).toEqual([feature, expect.stringMatching(/^[A-Z]/)]);
  expect([0.9996, 0.99, 1].map(availabilityText)).toEqual(["99.9%", "99%", "100%"]);
});

test("models are ordered by price within a unit, and those without a value come last", () => {
  const model = (id: string, unit: string, usd: string, fields: object = {}) =>
    ({ id, name: id, created: 0, context_length: 0, x_pricing: { a: { unit, list_usd: usd } }, ...fields }) as never;
  const models = [
    model("b/dear", "image", "10"),
    model("a/cheap", "image", "9", { created: 7 }),
    model("c/text", "1M_tokens", "50", { context_length: 9 }),
  ];
  const performance = new Map([["c/text", { first_token_ms: 5 }]]) as never;
  const by = (order: Order) =>
    sorted(models, order, performance)
      .map(({ id }) => id.slice(0, 1))
      .join("");
  expect([by("catalog"), by("price"), by("newest"), by("context"), by("first-token"), by("name")]).toEqual([
    "bac",
    "cab",
    "abc",
    "cba",
    "cba",
    "abc",
  ]);
});

test("every event that a bell shows has words of its own and a page", () => {
  const shown = eventTypes.filter(isNotice);
  expect(shown).toHaveLength(14);
  for (const type of shown) {
    const data = {
      id: "id_1",
      object: "x",
      received_usd: "1",
      available_usd: "1",
      alert_below_usd: "2",
      x_paused: "",
      provider: "openai",
      label: "sk-...AbCd",
    };
    const item = itemOf({ id: "evt_1", object: "event", created_at: 7, type, data });
    expect([type, item.title.includes(type), item.title]).toEqual([type, false, expect.stringMatching(/^\S.*\w$/)]);
    expect(item).toMatchObject({ id: "evt_1", at: 7, link: { to: expect.stringMatching(/^\//) as string } });
  }
  const budget = { limit_usd: "10.00", period: "month", spent_usd: "8.1" };
  const data = { id: "key_1", object: "key", name: null, prefix: "live_Ab3...", budget, threshold_percent: 80 };
  expect(itemOf({ id: "evt_1", object: "event", created_at: 7, type: "budget.threshold", data })).toMatchObject({
    title: "Key live_Ab3... has used 80 % of its budget",
    detail: "$8.10 of $10.00 a month",
  });
  const endpoint = { id: "we_1", url: "https://a.example/", name: null, disabled_at: 9, failing_since: 8 };
  const noticed = (notice: unknown) =>
    noticesOf({ ...endpoint, notice } as never).map(({ id, at, title }) => [id, at, title]);
  expect([noticed(null), noticed("failing"), noticed("disabled")]).toEqual([
    [],
    [["we_1 failing 8", 8, "Webhook endpoint has been failing for a day"]],
    [["we_1 disabled 9", 9, "Webhook endpoint was disabled"]],
  ]);
  // An event of a newer version.
  expect(itemOf({ id: "evt_1", object: "event", created_at: 7, type: "new.kind", data })).toMatchObject({
    title: "new.kind",
    detail: "key_1",
  });
});
