import { expect, test } from "vitest";
import { bodyOf, list, nested } from "../support/json-bodies.ts";
import { geminiFace } from "../support/native-formats.ts";
import { testStores } from "../support/servers.ts";
import { spawnApi } from "../support/service.ts";

const mebi = 1024 * 1024;

const text = (unit: string, bytes: number) => `"${unit.repeat(bytes / Buffer.byteLength(unit))}"`;
const shapes: readonly (readonly [what: string, x: string])[] = [
  ["base64", text("QUJD", 24 * mebi)],
  ["escapes", text("\\n", 3 * mebi)],
  ["text that is not ASCII", text("漢", 24 * mebi)],
  ["many small objects", list(8 * mebi, () => "{}")],
  ["a million fields", `{${Array.from({ length: 1_000_000 }, (_, i) => `"k${i}":1`).join()}}`],
  [
    "fields in other orders",
    list(4_000, (i) => `{${Array.from({ length: 10 }, (_, j) => `"k${(i * 7 + j * 13) % 97}":1`).join()}}`),
  ],
  ["objects of one name each", list(19_990, (i) => `{"k${i}":1}`)],
  ["an object of many names", `{${Array.from({ length: 19_990 }, (_, i) => `"${"k".repeat(190)}${i}":1`).join()}}`],
  ["whole numbers", list(24, () => list(8_192, (i) => String(2_147_000_000 + i)))],
  ["long numbers", list(49_000, () => `0.${"1234567890".repeat(50)}`)],
  ["depth", list(390, () => nested(120))],
  ["white space", `${" ".repeat(24 * mebi)}1`],
];

/** The current parse time of a long text, given the machine's other load. */
const parsing = JSON.stringify("QUJD".repeat(6 * mebi));
const parseMs = () => {
  const start = performance.now();
  JSON.parse(parsing);
  return performance.now() - start;
};
const medianOf = (figures: readonly number[]) => figures.toSorted((a, b) => a - b)[2] ?? Number.NaN;

test("the event loop of an API process is not held for 250 ms, or on a busy machine as long as eight long texts take to parse", async () => {
  const { client, metrics } = await spawnApi(await testStores());
  const customer = await client.account("0.01");
  /** The longest delay since the last call. */
  const longestMs = async () => {
    const text = await (await fetch(`${metrics}/metrics`)).text();
    return Number(/^nodejs_eventloop_lag_max_seconds(?:{.*})? (\S+)$/m.exec(text)?.[1]) * 1_000;
  };
  const held: string[] = [];
  for (const [what, x] of shapes) {
    const { path, body } = bodyOf(geminiFace, x);
    const maxima: number[] = [];
    const usual: number[] = [];
    for (let round = 0; round < 5; round++) {
      usual.push(parseMs());
      await longestMs();
      await (await customer.post(path, body)).text();
      maxima.push(await longestMs());
    }
    const boundMs = Math.max(250, 8 * medianOf(usual));
    if (!(medianOf(maxima) < boundMs)) held.push(`${what}: ${medianOf(maxima)} of ${boundMs} ms`);
  }
  expect(held).toEqual([]);
});

test("accounts with a cent each cannot fill the memory of a small API process", async () => {
  const { client, exited } = await spawnApi(await testStores(), { NODE_OPTIONS: "--max-old-space-size=256" });
  let isRunning = true;
  void exited.then(() => (isRunning = false));
  const customers = await Promise.all(Array.from({ length: 5 }, () => client.account("0.01")));
  const hostile = bodyOf(
    geminiFace,
    list((20 * mebi) / 3, () => "{}"),
  );
  const answers = await Promise.all(
    [...customers, ...customers].map(async (customer) => (await customer.post(hostile.path, hostile.body)).status),
  );
  expect(answers).toEqual(Array(10).fill(400));
  expect(isRunning).toBe(true);
});
