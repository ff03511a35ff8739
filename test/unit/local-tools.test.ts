import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { fill, wordsOf } from "../../workers/providers/local/schema.ts";
import { assembled, callsOf, chat, sayOf, stream } from "../support/local-setup.ts";
import { runs } from "../support/property-runs.ts";

const tool = (name: string, parameters?: object) => ({
  type: "function",
  function: { name, ...(parameters && { parameters }) },
});
const schemaOf = (type: z.ZodType) => z.toJSONSchema(type) as Record<string, unknown>;
const weather = tool(
  "get_weather",
  schemaOf(z.object({ city: z.string(), unit: z.enum(["celsius", "fahrenheit"]), days: z.int().min(1).max(14) })),
);
const time = tool("get_time");
const tools = [weather, time];

test("a tool that the prompt names is called, with arguments from the prompt", async () => {
  const answer = await chat('Please get weather for "Oslo" in fahrenheit, 3 days', { tools });
  expect(callsOf(answer)).toEqual([{ name: "get_weather", arguments: { city: "Oslo", unit: "fahrenheit", days: 3 } }]);
  expect(answer.choices[0]).toMatchObject({ finish_reason: "tool_calls", message: { content: null } });
});

test("a tool that is not named is not called", async () => {
  expect(callsOf(await chat("Good morning", { tools }))).toEqual([]);
});

test("the only tool is called once without being named, with arguments that satisfy its schema", async () => {
  const only = { tools: [weather] };
  const first = await chat("How warm will Oslo be?", only);
  expect(callsOf(first)).toEqual([{ name: "get_weather", arguments: { city: "Oslo", unit: "celsius", days: 1 } }]);
  const [called] = first.choices[0]?.message.tool_calls ?? [];
  const asked = { role: "user", content: "How warm will Oslo be?" };
  const turn = [asked, first.choices[0]?.message, { role: "tool", tool_call_id: called?.id, content: "12 degrees" }];
  expect(sayOf(await chat("", { ...only, messages: turn }))).toContain("get_weather returned: 12 degrees");
  const later = [...turn, { role: "assistant", content: "12." }, { role: "user", content: "Thanks" }];
  expect(sayOf(await chat("", { ...only, messages: later }))).toContain('"Thanks"');
  expect(callsOf(await chat("Hi", { ...only, tool_choice: "none" }))).toEqual([]);
  expect(callsOf(await chat("Hi", { ...only, tool_choice: "auto" }))).toHaveLength(1);
});

test("the arguments are an object for every way to say that there are none", async () => {
  for (const parameters of [undefined, {}, { properties: {} }, { type: "object" }, { additionalProperties: false }])
    expect(callsOf(await chat("Hi", { tools: [tool("get_time", parameters)] }))).toEqual([
      { name: "get_time", arguments: {} },
    ]);
});

test("several that are named are called together, unless parallel calls are off", async () => {
  const prompt = "get_weather and get_time";
  expect(callsOf(await chat(prompt, { tools })).map(({ name }) => name)).toEqual(["get_weather", "get_time"]);
  expect(callsOf(await chat(prompt, { tools, parallel_tool_calls: false }))).toHaveLength(1);
});

test.each([
  ["none", "get_weather", []],
  ["required", "Good morning", ["get_weather"]],
  ["required", "get_time", ["get_time"]],
  [{ type: "function", function: { name: "get_time" } }, "get_weather", ["get_time"]],
])("tool_choice %j rules", async (tool_choice, prompt, expected) => {
  expect(callsOf(await chat(prompt, { tools, tool_choice })).map(({ name }) => name)).toEqual(expected);
});

test("tool_choice for a function that is not there is refused", async () => {
  const tool_choice = { type: "function", function: { name: "other" } };
  await expect(chat("Hi", { tools, tool_choice })).rejects.toMatchObject({ kind: "refused", param: "tool_choice" });
});

test("after tool results it quotes them, even if the prompt names the tools", async () => {
  const first = await chat("get_weather and get_time", { tools });
  const calls = first.choices[0]?.message.tool_calls ?? [];
  expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
  const messages = [
    { role: "user", content: "get_weather and get_time" },
    first.choices[0]?.message,
    ...calls.map(({ id }, index) => ({ role: "tool", tool_call_id: id, content: `result ${index}` })),
  ];
  const second = await chat("", { tools, messages });
  expect(sayOf(second)).toContain("get_weather returned: result 0\nget_time returned: result 1");
  expect(second.choices[0]?.finish_reason).toBe("stop");
});

test("after tool results it answers in text, even if a user's message with the names of tools follows them", async () => {
  const asked = { role: "user", content: "get_weather and get_time" };
  const called = (await chat(asked.content, { tools })).choices[0]?.message;
  const results = (called?.tool_calls ?? []).map(({ id }) => ({
    role: "tool",
    tool_call_id: id,
    content: "See below",
  }));
  const rest = { role: "user", content: "What get_weather and get_time returned: rain" };
  const answer = await chat("", { tools, messages: [asked, called, ...results, rest] });
  expect(callsOf(answer)).toEqual([]);
  expect(sayOf(answer)).toMatch(/get_weather returned: See below\nget_time returned: See below\n.*rain/);
  const later = [asked, called, ...results, rest, { role: "assistant", content: "Rain." }, asked];
  expect(callsOf(await chat("", { tools, messages: later }))).toHaveLength(2);
});

test("json_object answers with an object, json_schema with a value that satisfies the schema", async () => {
  expect(JSON.parse(sayOf(await chat("Hi", { response_format: { type: "json_object" } })))).toMatchObject({
    message: expect.stringContaining("Hi") as string,
  });
  const person = z.strictObject({ name: z.string(), age: z.int().min(0), tags: z.array(z.enum(["a", "b"])).min(2) });
  const response_format = {
    type: "json_schema",
    json_schema: { name: "person", strict: true, schema: schemaOf(person) },
  };
  const answer = sayOf(await chat("Who is Ada Lovelace, 36?", { response_format }));
  expect(person.parse(JSON.parse(answer))).toEqual({ name: "Ada Lovelace", age: 36, tags: ["a", "a"] });
});

test.each([
  ["words after 'keys'", "Tell a joke with the 'setup' and 'punchline' keys. Only JSON.", ["setup", "punchline"]],
  ["an example", 'Answer as {"city": "Oslo", "days": 3}', ["city", "days"]],
  ["fields in backticks", "Give the fields `name`, `age`", ["name", "age"]],
  ["a key like any other", 'The key is "__proto__"', ["__proto__"]],
  ["quotes without keys", 'Say "hello" to them', ["message"]],
])("json_object has the keys that the prompt quotes: %s", async (_, prompt, keys) => {
  const response_format = { type: "json_object" };
  const answered = JSON.parse(sayOf(await chat(prompt, { response_format }))) as object;
  expect(Object.keys(answered)).toEqual(keys);
  const messages = [
    { role: "system", content: prompt },
    { role: "user", content: "Go" },
  ];
  const { choices } = await assembled(stream("", { response_format, messages }));
  expect(Object.keys(JSON.parse(choices[0]?.content ?? "") as object)).toEqual(keys);
});

test("json_schema without a schema is refused by its name", async () => {
  await expect(chat("Hi", { response_format: { type: "json_schema" } })).rejects.toMatchObject({
    kind: "refused",
    param: "response_format",
  });
});

/** Types whose JSON schema and semantics zod implements. */
const types = fc.letrec<{ type: z.ZodType; leaf: z.ZodType }>((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom<z.ZodType>(
      z.string(),
      z.string().min(5).max(9),
      z.boolean(),
      z.null(),
      z.number(),
      z.int(),
      z.email(),
      z.uuid(),
      z.iso.date(),
      z.iso.datetime(),
      z.url(),
      z.literal("only"),
      z.literal([3, 4]),
      z.enum(["red", "green"]),
      z.int().multipleOf(7).min(10),
      z.number().gt(0).lt(1),
      z.number().lt(-5),
    ),
    fc.tuple(fc.integer({ min: -1000, max: 1000 }), fc.nat(50)).map(([low, span]) =>
      z
        .int()
        .min(low)
        .max(low + span),
    ),
  ),
  type: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    tie("leaf"),
    fc.array(tie("type"), { minLength: 1, maxLength: 3 }).map((list) => z.union(list as [z.ZodType])),
    tie("type").map((type) => type.nullable()),
    fc.tuple(tie("type"), fc.nat(3)).map(([type, least]) =>
      z
        .array(type)
        .min(least)
        .max(least + 2),
    ),
    fc.array(tie("type"), { minLength: 1, maxLength: 3 }).map((list) => z.tuple(list as [z.ZodType])),
    fc
      .dictionary(fc.constantFrom("a", "b", "city", "__proto__x"), fc.tuple(tie("type"), fc.boolean()), { maxKeys: 4 })
      .map((shape) =>
        z.strictObject(
          Object.fromEntries(
            Object.entries(shape).map(([name, [type, optional]]) => [name, optional ? type.optional() : type]),
          ),
        ),
      ),
  ),
}));

test("arguments satisfy the schema, whatever it is and whatever the prompt says", () => {
  fc.assert(
    fc.property(
      types.type,
      fc.oneof(fc.string(), fc.constant('Send "x" and 42 to Ada Lovelace, -3.5 red')),
      (type, prompt) => {
        const value = fill(schemaOf(type), wordsOf(prompt), "tools");
        expect(type.safeParse(value).error).toBeUndefined();
      },
    ),
    { numRuns: runs(500) },
  );
});

test("schemas that refer to themselves come to an end", () => {
  const tree = z.object({
    name: z.string(),
    get children() {
      return z.array(tree);
    },
  });
  const list = z.object({
    get next() {
      return z.nullable(list);
    },
  });
  for (const type of [tree, list, z.object({ tree, list })])
    expect(type.safeParse(fill(schemaOf(type), wordsOf(""), "tools")).error).toBeUndefined();
});

test("a schema whose references multiply costs little", () => {
  let schema: object = { type: "string" };
  for (let depth = 0; depth < 20; depth++) schema = { type: "array", minItems: 1_000_000, items: schema };
  expect(JSON.stringify(fill(schema, wordsOf(""), "tools")).length).toBeLessThan(100_000);
});

const many = <T>(length: number, each: (n: number) => T) => Array.from({ length }, (_, n) => each(n));
const thousand = (items: object) => ({ type: "array", minItems: 1_000, items });

test.each<[what: string, schema: object, prompt?: string]>([
  ["merged parts", { allOf: many(60_000, () => ({ type: "object" })) }],
  ["parts merged a thousand times", thousand({ allOf: many(10_000, () => ({ minLength: 1 })) })],
  [
    "properties merged a thousand times",
    thousand({ allOf: [{ required: ["0"], properties: Object.fromEntries(many(9_000, (n) => [n, {}])) }] }),
  ],
  ["required names merged a thousand times", thousand({ allOf: [{ required: many(9_000, () => "a") }] })],
  ["choices", thousand({ anyOf: many(9_000, () => ({ type: "null" })) })],
  ["names of an enum", thousand({ enum: many(9_000, (n) => `name ${n}`) }), "nam ".repeat(4_000)],
  ["steps of a reference", thousand({ $ref: `#${"/a".repeat(9_000)}` })],
  ["characters", { type: "array", minItems: 1_000, items: { type: "string", minLength: 10_000 } }],
  ["numbers that do not fit", thousand({ type: "number", maximum: -1 }), "1 ".repeat(8_000)],
])("a schema of too many %s is refused by name", (_, schema, prompt = "") => {
  expect(() => fill(schema, wordsOf(prompt), "response_format")).toThrow(
    expect.objectContaining({ kind: "refused", param: "response_format" }),
  );
});

test("parts of a schema are merged in their order", () => {
  const schema = {
    allOf: [
      { properties: { a: { const: 1 }, b: { const: 2 } }, required: ["a"] },
      { $ref: "#/$defs/c" },
      { properties: { a: { const: 3 } } },
    ],
    $defs: { c: { type: "object", properties: { c: { const: 4 } }, required: ["c", "b"] } },
  };
  expect(fill(schema, wordsOf(""), "tools")).toEqual({ a: 3, c: 4, b: 2 });
});
