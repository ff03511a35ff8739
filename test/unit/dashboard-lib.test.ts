import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { loadCatalog } from "#catalog";
import { formatUsd } from "#money";
import { paceOf, paceText } from "../../dashboard/src/lib/batch-pace.ts";
import { roundScale, seriesColors } from "../../dashboard/src/lib/charts.ts";
import { asCurl, asPython } from "../../dashboard/src/lib/code-samples.ts";
import { costLines, whyCharged } from "../../dashboard/src/lib/cost.ts";
import { csvOf } from "../../dashboard/src/lib/csv.ts";
import { optionWords, wordsOf } from "../../dashboard/src/lib/field-words.ts";
import { type InputField, inputFields, toInput } from "../../dashboard/src/lib/input-schema.ts";
import { counted, createTextGatherer, jsonLines } from "../../dashboard/src/lib/json-lines.ts";
import { priceRows } from "../../dashboard/src/lib/prices.ts";
import { spendToDate } from "../../dashboard/src/lib/spend-to-date.ts";
import { stacked } from "../../dashboard/src/lib/stacked.ts";
import { statusLabel } from "../../dashboard/src/lib/statuses.ts";
import { remaining } from "../../dashboard/src/lib/time.ts";
import { periodBefore, usageView } from "../../dashboard/src/lib/usage.ts";
import { fromNano, longestRest, sumUsd, toNano, usdText } from "../../dashboard/src/lib/usd.ts";

const nano = fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n });

test("amounts are read, added and written as exactly as the service writes them", () => {
  fc.assert(
    fc.property(nano, nano, (one, other) => {
      expect(toNano(formatUsd(one))).toBe(one);
      expect(toNano(fromNano(one))).toBe(one);
      expect(toNano(sumUsd([formatUsd(one), formatUsd(other)]))).toBe(one + other);
    }),
  );
});

test.for([
  ["0", "$0.00"],
  ["-1234567.5", "-$1,234,567.50"],
  ["9007199254740993.000000001", "$9,007,199,254,740,993.000000001"],
] as const)("%s is shown as %s", ([amount, shown]) => {
  expect(usdText(amount)).toBe(shown);
});

test("a column of amounts has as much space after the cents as its longest one needs", () => {
  expect(longestRest(["12", "0.5", "0.000000001", "3.14159"])).toBe(7);
  expect(longestRest(["12.50", "3"])).toBe(0);
});

test.for([
  [669_600, "7 d 18 h"],
  [172_799, "47 h 59 min"],
  [3_600, "1 h 00 min"],
  [249, "4 min 09 s"],
  [-1, "0 min 00 s"],
] as const)("%i seconds remain as %s", ([seconds, shown]) => {
  expect(remaining(seconds, 0)).toBe(shown);
});

test("a call's cost is worked out line by line from its usage and the price of its tier", () => {
  const x_pricing = {
    input: { unit: "1M_tokens", list_usd: "2.50", elite_usd: "2.25" },
    output: { unit: "1M_tokens", list_usd: "10.00", elite_usd: "9.00" },
    second: { unit: "second", list_usd: "0.045", elite_usd: "0.0405" },
  };
  const usage = { input: 1201, output: 0, second: 2.5, unpriced: 3 };
  const of = (isElite: boolean) =>
    costLines(usage, priceRows({ x_pricing }), isElite).map(({ key, costUsd }) => [key, costUsd]);
  expect(of(false)).toEqual([
    ["input", "0.0030025"],
    ["second", "0.1125"],
  ]);
  expect(of(true)).toEqual([
    ["input", "0.00270225"],
    ["second", "0.10125"],
  ]);
});

test.each([
  ["succeeded", true, "1.00", /^$/],
  ["failed", true, "0.00", /^$/],
  ["failed", true, "0.0000015", /failed after its first output.*input and the output delivered/],
  ["failed", false, "0.04", /what the provider did/],
  ["cancelled", null, "0.04", /disconnected.*what the provider did/],
] as const)("a call that %s (streamed: %s) for %s USD explains its charge", (status, streamed, cost_usd, why) => {
  expect(whyCharged({ status, streamed, cost_usd, refunded: false }) ?? "").toMatch(why);
  expect(whyCharged({ status, streamed, cost_usd, refunded: true })).toBeUndefined();
});

test("a model's schema becomes a form, and the form's texts the values that the schema asks for", () => {
  const schema = {
    type: "object",
    required: ["prompt"],
    properties: {
      n: { type: "integer", minimum: 1, maximum: 4, default: 1 },
      seconds: { enum: [4, 8] },
      loop: { type: "boolean" },
      image: { anyOf: [{ type: "string", pattern: "^upl_[0-9A-Za-z]{1,64}$" }, { type: "array" }] },
      looks: { type: "array", items: { type: "string", pattern: "^upl_[0-9A-Za-z]{1,64}$" }, maxItems: 3 },
      marks: { type: "array", items: { enum: ["word", 1] } },
      names: { type: "array", items: { type: "string" } },
      points: { type: "array" },
      seed: { type: "number" },
      prompt: { type: "string", maxLength: 4000 },
    },
  };
  const fields = inputFields(schema);
  expect(fields.map(({ name, kind }) => [name, kind])).toEqual([
    ["prompt", "text"],
    ["n", "number"],
    ["seconds", "choice"],
    ["loop", "switch"],
    ["image", "upload"],
    ["looks", "upload"],
    ["marks", "choices"],
    ["names", "lines"],
    ["points", "json"],
    ["seed", "number"],
  ]);
  const numbers = { n: "2", seconds: "8", points: "[1,2]", seed: "" };
  const lists = { image: "upl_a", looks: "upl_a", marks: "word\n1", names: " Ada \n\nAlan" };
  expect(toInput(fields, schema, { prompt: "A cat", loop: "false", ...numbers, ...lists })).toEqual({
    prompt: "A cat",
    n: 2,
    seconds: 8,
    loop: false,
    image: "upl_a",
    looks: ["upl_a"],
    marks: ["word", 1],
    names: ["Ada", "Alan"],
    points: [1, 2],
  });
});

/** Texts that a person may type or choose in a field. */
function typedIn(field: InputField): readonly string[] {
  if (field.initial !== undefined) return [JSON.stringify(field.initial).replaceAll('"', "")];
  switch (field.kind) {
    case "choice":
      return field.options;
    case "choices":
      return [field.options.join("\n")];
    case "number":
      return [String(field.min ?? 0), String(field.max ?? 1)];
    case "switch":
      return ["true", "false"];
    case "upload":
      return ["upl_1", ...(field.most > 1 ? ["upl_1\nupl_2"] : [])];
    case "json":
    case "lines":
    case "text":
      return ["en"];
  }
}

test("forms have words in place of the names of fields, and make what each model of the catalog accepts", () => {
  const schemas = loadCatalog(undefined)
    .list()
    .flatMap(({ id, inputSchema }) => (inputSchema ? [{ id, schema: inputSchema }] : []));
  expect(schemas.length).toBeGreaterThan(50);
  const refused: string[] = [];
  for (const { id, schema } of schemas) {
    const fields = inputFields(schema);
    const check = z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema);
    const first = Object.fromEntries(fields.map((field) => [field.name, typedIn(field)[0] ?? ""]));
    for (const field of fields) {
      const { label, hint = "" } = wordsOf(field);
      expect([field.kind, label, hint], `${id}: ${field.name}`).toEqual([
        expect.not.stringMatching("json"),
        expect.stringMatching(/^[A-Z][a-zA-Z ]{2,}$/),
        expect.not.stringMatching(/\bids?\b|upl_/),
      ]);
      for (const text of typedIn(field))
        if (!check.safeParse(toInput(fields, schema, { ...first, [field.name]: text })).success)
          refused.push(`${id}: ${field.name} ${text}`);
    }
  }
  expect(refused).toEqual([]);
});

test.for([
  ["music_length_ms", "15000", "15 s"],
  ["duration", "8s", "8 s"],
  ["output_format", "mp3_22050_32", "MP3, 22.05 kHz, 32 kbit/s"],
  ["image_size", "landscape_16_9", "landscape 16:9"],
  ["rendering_speed", "TURBO", "Turbo"],
  ["resolution", "1080p", "1080p"],
] as const)("the value of %s %s reads %s", ([name, value, shown]) => {
  expect(optionWords(name, value)).toBe(shown);
});

test("code to copy says the same as the call, whatever its texts hold", () => {
  const body = { messages: [{ content: `it's "$HOME" \`date\` \\ null\nnew line` }], stream: false, stop: null };
  const url = "http://127.0.0.1/v1";
  const call = { url, body };
  const sent = execFileSync("sh", ["-c", asCurl(call).replace(/^curl/, "printf '%s\\n'")], { encoding: "utf8" });
  expect(sent).toContain(JSON.stringify(body, null, 2));
  expect(asPython(call)).toContain('"stream": False,\n      "stop": None\n');
  expect(asPython(call)).toContain('\\\\ null\\nnew line"');
  // A document in a message, and line ends that JSON does not escape.
  const file = `a: true\u2028b: null,\u2029${"A".repeat(10_000_000)}`;
  expect(asPython({ url, body: { files: [file, null] } })).toContain(`"${file}",\n        None\n`);
});

test.for([
  ["2026-11-23", ["2026-11-01", "2026-11-23", "4"], ["2026-10-01", "2026-10-23", "8"]],
  ["2027-03-31", ["2027-03-01", "2027-03-31", "0"], ["2027-02-01", "2027-02-28", "0"]],
  ["2026-11-01", ["2026-11-01", "2026-11-01", "1"], ["2026-10-01", "2026-10-01", "8"]],
] as const)("on %s, spend is against last month to the same day or its last one", ([today, month, lastMonth]) => {
  const days = { "2026-09-30": "16", "2026-10-01": "8", "2026-10-24": "32", "2026-11-01": "1", "2026-11-23": "3" };
  const rows = Object.entries(days).map(([day, cost_usd]) => ({ day, cost_usd }) as never);
  const shown = spendToDate(rows, today);
  expect([shown.month, shown.lastMonth].map(({ from, to, usd }) => [from, to, usd])).toEqual([month, lastMonth]);
});

test.for([
  [{}, ["2026-10-25", "2026-11-23", "day", 30], ["2026-09-25", "2026-10-24"]],
  [
    { range: "24h", interval: "day" },
    ["2026-11-22T06:00Z", "2026-11-23T05:00Z", "hour", 24],
    ["2026-11-21T06:00Z", "2026-11-22T05:00Z"],
  ],
  [{ range: "7d", interval: "hour" }, ["2026-11-17", "2026-11-23", "hour", 150], ["2026-11-10", "2026-11-16"]],
  [{ range: "30d", interval: "hour" }, ["2026-10-25", "2026-11-23", "day", 30], ["2026-09-25", "2026-10-24"]],
  // The hours of the period before are no longer kept.
  [
    { range: "custom", from: "2026-11-09", to: "2026-11-10", interval: "hour" },
    ["2026-11-09", "2026-11-10", "day", 2],
    ["2026-11-07", "2026-11-08"],
  ],
  [
    { range: "custom", from: "x", to: "2026-1-1" },
    ["2026-10-25", "2026-11-23", "day", 30],
    ["2026-09-25", "2026-10-24"],
  ],
  // More than the service shows: it answers 400.
  [{ range: "custom", from: "1926-11-23" }, ["1926-11-23", "2026-11-23", "day", 0], ["1826-11-21", "1926-11-22"]],
] as const)(
  "an address with %o shows a period of usage, its interval, and the period before",
  ([search, shown, before]) => {
    const { from, to, interval, times } = usageView(search, "2026-11-23T05:00Z");
    expect([from, to, interval, times.length]).toEqual(shown);
    expect(periodBefore({ from, to })).toEqual({ from: before[0], to: before[1] });
  },
);

test("series beyond the largest five are summed as other, at each time", () => {
  const rows = Array.from({ length: 7 }, (_, at) => ({
    day: at % 2 ? "one" : "two",
    name: `n${at}`,
    value: 10n ** BigInt(at),
  }));
  const reading = {
    timeOf: ({ day }: (typeof rows)[number]) => day,
    nameOf: ({ name }: (typeof rows)[number]) => name,
  };
  const valueOf = ({ value }: (typeof rows)[number]) => value;
  const { series, slots, total } = stacked(rows, { times: ["one", "none", "two"], ...reading, valueOf });
  expect(series.map(({ name }) => name)).toEqual(["n6", "n5", "n4", "n3", "n2", "Other"]);
  expect(slots.map((slot) => [slot.values["n5"], slot.values["Other"], slot.total])).toEqual([
    [100_000n, 10n, 101_010n],
    [0n, 0n, 0n],
    [0n, 1n, 1_010_101n],
  ]);
  expect(total).toBe(1_111_111n);
});

test("a series keeps its color whatever is shown beside it, and no two that are shown together have the same", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string(), { maxLength: 5 }), (names) => {
      const shown = [...names.filter((name) => name !== "Other"), "Other"];
      const colors = seriesColors(shown);
      expect(new Set(colors.values()).size).toBe(shown.length);
      expect(colors.get("Other")).toBe("var(--color-series-6)");
      expect(seriesColors(shown.toReversed())).toEqual(colors);
    }),
  );
  const alone = seriesColors(["local/chat"]).get("local/chat");
  expect(seriesColors(["zeta", "local/chat"]).get("local/chat")).toBe(alone);
});

test.for([
  [[], [0, 1]],
  [[0.26], [0, 0.1, 0.2, 0.3]],
  [
    [0.65, 0.2],
    [0, 0.2, 0.4, 0.6, 0.8],
  ],
  [
    [-3, 7],
    [-5, 0, 5, 10],
  ],
  [[3], [0, 1, 2, 3]],
  [[9], [0, 5, 10]],
  [[1_000], [0, 250, 500, 750, 1_000]],
] as const)("an axis over %j has ticks at %j", ([values, expected]) => {
  const { ticks, domain } = roundScale(values);
  expect(ticks.map((tick) => Number(tick.toPrecision(9)))).toEqual(expected);
  expect(domain).toEqual([ticks[0], ticks.at(-1)]);
});

test.for([
  ["succeeded", "Succeeded"],
  ["in_progress", "In progress"],
  ["", ""],
] as const)("the status %j is shown as %j", ([status, shown]) => {
  expect(statusLabel(status)).toBe(shown);
});

test("a file for spreadsheets has exact numbers, and no text that runs as a formula", () => {
  expect(
    csvOf([
      ["Model", "cost_usd"],
      ['=A1&"b"', { usd: "-0.000000001" }],
      [null, 7],
    ]),
  ).toBe(['"Model","cost_usd"', `"'=A1&""b""",-0.000000001`, '"",7', ""].join("\r\n"));
});

test("lines of JSON are read unchanged, however the file arrives, and gathered in blobs", async () => {
  const ids = ["first", "\u00e9\n\u{1f6a2}", "last"];
  const lines = ids.map((custom_id) => JSON.stringify({ custom_id, body: {} }));
  const bytes = new TextEncoder().encode(`\ufeff${lines[0]}\r\n\n${lines[1]}\n${lines[2]}`);
  for (const size of [1, 7, bytes.length]) {
    const starts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => index * size);
    const content = () => ReadableStream.from(starts.map((start) => bytes.slice(start, start + size)));
    const arrived: number[] = [];
    const read = counted(content(), (total) => void arrived.push(total));
    const found = await Array.fromAsync(jsonLines<{ custom_id: string }>(read));
    expect(found.map(({ value }) => value.custom_id)).toEqual(ids);
    expect(found.map(({ text }) => text)).toEqual(lines);
    expect(arrived).toEqual([...starts.slice(1), bytes.length]);
  }
  const gatherer = createTextGatherer();
  const texts = Array.from({ length: 5 }, (_, n) => String(n).repeat(700_000));
  for (const text of texts) gatherer.add(text);
  const blobs = gatherer.blobs();
  expect(blobs.map(({ size }) => size)).toEqual([1_400_000, 1_400_000, 700_000]);
  expect(await new Blob([...blobs]).text()).toBe(texts.join(""));
});

test.for([
  [{}, 110_000, "20 lines/s", 150],
  [{ in_progress_at: 0 }, 12_000_000, "1 line/min", 60_000],
  [{ x_paused: "insufficient_balance" }, 110_000, undefined, undefined],
  [{ status: "finalizing" }, 110_000, undefined, undefined],
  [{ request_counts: { total: 1_000, completed: 0, failed: 0 } }, 110_000, undefined, undefined],
] as const)("the pace of a batch with %j at %i ms is %s, until %s s", ([change, nowMs, text, end]) => {
  const counts = { total: 1_000, completed: 199, failed: 1 };
  const batch = { status: "in_progress", in_progress_at: 100, x_paused: null, request_counts: counts, ...change };
  const pace = paceOf(batch, nowMs);
  expect(pace && paceText(pace)).toBe(text);
  expect(pace?.estimatedEnd).toBe(end);
});
