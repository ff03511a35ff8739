import { anthropicModel, geminiModel, type HostileInput, localModel, many, openaiModel, posting } from "./input.ts";

/** JSON schemas that take as many steps as possible. */
const properties = (count: number, schemaOf: (index: number) => object) =>
  Object.fromEntries(many(count, (at) => [`p${at}`, schemaOf(at)]));
const nested = (levels: number, around: (inner: object) => object, inner: object = { type: "string" }): object =>
  Array.from({ length: levels }).reduce<object>((schema) => around(schema), inner);

/** An array of at least a thousand items. */
const thousand = (items: object, more: object = {}) => ({ ...more, type: "array", minItems: 1_000, items });

const schemas: readonly (readonly [name: string, make: () => object, isShort?: true])[] = [
  [
    "allOf of 10,000",
    () => thousand({ allOf: many(10_000, (at) => ({ properties: { [`p${at % 5_000}`]: {} } })) }),
    true,
  ],
  ["allOf in allOf", () => nested(30, (inner) => ({ allOf: [...many(300, () => ({})), inner] }))],
  ["anyOf of 24,000", () => thousand({ anyOf: many(24_000, () => ({ type: "null" })) }), true],
  [
    "oneOf of references",
    () => thousand({ oneOf: many(20_000, () => ({ $ref: "#/$defs/a" })) }, { $defs: { a: { type: "null" } } }),
  ],
  [
    "references that double",
    () => ({
      $defs: Object.fromEntries(
        many(60, (at) => [
          `d${at}`,
          { type: "object", properties: { a: { $ref: `#/$defs/d${at + 1}` }, b: { $ref: `#/$defs/d${at + 1}` } } },
        ]),
      ),
      $ref: "#/$defs/d0",
    }),
    true,
  ],
  [
    "a reference to itself",
    () => ({
      $defs: {
        a: { type: "object", required: ["a", "b"], properties: { a: { $ref: "#/$defs/a" }, b: { $ref: "#/$defs/a" } } },
      },
      $ref: "#/$defs/a",
    }),
  ],
  ["a reference of 1 MB", () => thousand({ $ref: `#${"/a".repeat(500_000)}` })],
  [
    "references in references",
    () => {
      const $defs = Object.fromEntries(many(8_000, (at) => [`d${at}`, { $ref: `#/$defs/d${at + 1}` }]));
      return thousand({ $ref: "#/$defs/d0" }, { $defs });
    },
  ],
  ["an enum of 45,000", () => thousand({ enum: many(45_000, (at) => `no value ${at}`) }), true],
  ["an enum of long texts", () => thousand({ enum: many(100, (at) => `${at}`.repeat(40_000)) })],
  ["19,000 properties", () => ({ type: "object", properties: properties(19_000, () => ({})) })],
  [
    "19,000 properties of arrays of objects",
    () => thousand({ type: "object", properties: properties(9_000, () => ({ type: "string" })) }),
  ],
  [
    "40,000 required names",
    () => ({ type: "object", required: many(40_000, (at) => `r${at % 19_000}`), properties: {} }),
  ],
  ["arrays in arrays", () => nested(20, thousand)],
  ["100 levels", () => nested(45, (inner) => ({ type: "object", properties: { a: inner } }))],
  ["long strings", () => thousand({ type: "string", minLength: 1_000_000, maxLength: 10_000_000 })],
  ["patterns", () => ({ type: "object", properties: properties(100, () => ({ type: "string", pattern: "^(a+)+$" })) })],
  ["small steps of numbers", () => thousand({ type: "number", minimum: 0.1, maximum: 1e300, multipleOf: 1e-300 })],
  ["types of 40,000", () => thousand({ type: many(40_000, () => "null") })],
  ["a description of 10 MB", () => ({ type: "object", description: "ab ".repeat(3_500_000), properties: { a: {} } })],
];

/** The local model reads only this much of a prompt. */
const prompts = {
  numbers: "1 2 3.5 ".repeat(2_000),
  names: 'a "b" C D. '.repeat(1_400),
};

interface Place {
  readonly name: string;
  readonly path: string;
  readonly body: (schema: object) => object;
  readonly isShort?: boolean;
}

const chat = "/v1/chat/completions";
const user = (content: string) => [{ role: "user", content }];
const wanted = (schema: object) => ({ type: "json_schema", json_schema: { name: "a", schema } });
const tools = (schema: object) => [{ type: "function", function: { name: "a", parameters: schema } }];

const places: readonly Place[] = [
  {
    name: "local, an answer",
    path: chat,
    isShort: true,
    body: (schema) => ({ model: localModel, messages: user(prompts.numbers), response_format: wanted(schema) }),
  },
  {
    name: "local, a tool",
    path: chat,
    body: (schema) => ({
      model: localModel,
      messages: user(prompts.names),
      tools: tools(schema),
      tool_choice: "required",
    }),
  },
  {
    name: "local, three tools, four answers",
    path: chat,
    body: (schema) => ({
      model: localModel,
      messages: user("a0 a1 a2"),
      n: 4,
      tools: many(3, (at) => ({ type: "function", function: { name: `a${at}`, parameters: schema } })),
    }),
  },
  {
    name: "chat to OpenAI, a tool",
    path: chat,
    body: (schema) => ({ model: openaiModel, messages: user("Hi"), tools: tools(schema) }),
  },
  {
    name: "chat to Anthropic, an answer",
    path: chat,
    body: (schema) => ({ model: anthropicModel, messages: user("Hi"), response_format: wanted(schema) }),
  },
  {
    name: "chat to Gemini, a tool",
    path: chat,
    body: (schema) => ({ model: geminiModel, messages: user("Hi"), tools: tools(schema) }),
  },
  {
    name: "chat to Gemini, an answer",
    path: chat,
    body: (schema) => ({ model: geminiModel, messages: user("Hi"), response_format: wanted(schema) }),
  },
  {
    name: "responses to Anthropic, strict",
    path: "/v1/responses",
    body: (schema) => ({
      model: anthropicModel,
      input: "Hi",
      text: { format: { type: "json_schema", name: "a", strict: true, schema } },
    }),
  },
  {
    name: "Gemini to OpenAI, an answer",
    path: `/v1beta/models/${openaiModel}:generateContent`,
    body: (schema) => ({
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      generationConfig: { responseMimeType: "application/json", responseSchema: schema },
    }),
  },
  {
    name: "messages to Gemini, a tool",
    path: "/v1/messages",
    body: (schema) => ({
      model: geminiModel,
      max_tokens: 9,
      messages: user("Hi"),
      tools: [{ name: "a", input_schema: { type: "object", properties: { a: schema } } }],
    }),
  },
];

export const schemaInputs: readonly HostileInput[] = schemas.flatMap(([name, make, isShort]) =>
  places.map(
    (place): HostileInput => ({
      kind: "schemas",
      name: `${name}: ${place.name}`,
      isShort: isShort === true && place.isShort === true,
      prepare: posting(place.path, () => JSON.stringify(place.body(make()))),
    }),
  ),
);
