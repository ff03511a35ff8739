import { describe, expect, test } from "vitest";
import { type Face, faces, geminiFace, refusalIn, refusalOf, withRelayedModel } from "../support/native-formats.ts";
import { testStores } from "../support/servers.ts";
import { spawnApi } from "../support/service.ts";
import { localModel, type Refusal, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const mebi = 1024 * 1024;

/** A body of the format whose field `x` is this JSON. */
const bodyOf = (face: Face, x: string) => {
  const { path, body } = face.ask(localModel, "Hi", { x: 0 });
  return { path, body: JSON.stringify(body).replace('"x":0', () => `"x":${x}`) };
};
const list = (count: number, itemOf: (index: number) => string) =>
  `[${Array.from({ length: count }, (_, i) => itemOf(i)).join()}]`;
const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

const excesses: readonly (readonly [what: string, x: string, message: RegExp, param: string | null])[] = [
  ["values", list(50_001, () => "{}"), /more than 50000 values/, null],
  ["different names", list(20_001, (i) => `{"k${i}":1}`), /more than 20000 different field names/, null],
  ["bytes of names", list(5, (i) => `{"${"k".repeat(mebi)}${i}":1}`), /more than 4194304 bytes of field names/, null],
  ["whole numbers", list(200_001, () => "1"), /more than 200000 whole numbers/, null],
  ["escapes", `"${"\\n".repeat(800_001)}"`, /more than 800000 escaped characters/, null],
  ["digits", "1".repeat(101), /number of more than 100 characters/, null],
  ["levels", nested(100_000), /x: is nested too deep; at most 128 levels/, "x"],
];

describe.each(faces)("$name", (face) => {
  test.each(excesses)("JSON with too many %s is refused in the format's shape", async (_, x, message, param) => {
    const customer = await running.service.account("1");
    const { path, body } = bodyOf(face, x);
    const expected: Refusal = { status: 400, type: "invalid_request_error", code: "invalid_value", param, message };
    expect(await refusalIn(face, await customer.post(path, body))).toEqual(refusalOf(face, expected));
  });
});

test("an embeddings request with the maximum number of tokens is read", async () => {
  const customer = await running.service.account("0.01");
  const input = list(256, () => list(8_192, (i) => String(2_147_000_000 + i)));
  const response = await customer.post("/v1/embeddings", `{"model":"openai/text-embedding-3-small","input":${input}}`);
  expect(response.status).toBe(402);
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

describe("the event loop of an API process", () => {
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

  test("is not held for 250 ms, or on a busy machine as long as eight long texts take to parse", async () => {
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
});
