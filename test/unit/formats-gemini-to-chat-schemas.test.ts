import { expect, test } from "vitest";
import { ServiceError } from "#errors";
import { geminiConverter } from "../../workers/conversion/gemini/index.ts";

type Json = Readonly<Record<string, unknown>>;

const toChat = (body: Json) => geminiConverter.requestToChat(body);
const user = (...parts: Json[]): Json => ({ role: "user", parts });
const request = (fields: Json = {}): Json => ({ contents: [user({ text: "Hello" })], ...fields });
const configured = (generationConfig: Json) => toChat(request({ generationConfig }));
const blamed = (body: Json): string | undefined => {
  try {
    toChat(body);
  } catch (error) {
    return error instanceof ServiceError && error.code === "invalid_value" ? error.param : String(error);
  }
  return undefined;
};
test("tools cross with either kind of schema, and the choice with its names", () => {
  const tools = [
    {
      functionDeclarations: [
        {
          name: "one",
          description: "First.",
          parameters: {
            type: "OBJECT",
            properties: {
              type: { type: "STRING", nullable: true, enum: ["a"], format: "enum" },
              any_of: { type: "ARRAY", min_items: "1", items: { type: "INTEGER" } },
              either: { nullable: true, anyOf: [{ type: "NUMBER" }, { type: "BOOLEAN" }] },
            },
            required: ["type"],
            propertyOrdering: ["type"],
          },
          behavior: "BLOCKING",
        },
        { name: "two", parametersJsonSchema: { type: "object", additionalProperties: false } },
      ],
    },
    { functionDeclarations: [{ name: "three" }] },
  ];
  const { request: crossed, ignored } = toChat(request({ tools }));
  expect(crossed["tools"]).toEqual([
    {
      type: "function",
      function: {
        name: "one",
        description: "First.",
        parameters: {
          type: "object",
          properties: {
            type: { type: ["string", "null"], enum: ["a", null] },
            any_of: { type: "array", minItems: 1, items: { type: "integer" } },
            either: { anyOf: [{ type: "number" }, { type: "boolean" }, { type: "null" }] },
          },
          required: ["type"],
        },
      },
    },
    { type: "function", function: { name: "two", parameters: { type: "object", additionalProperties: false } } },
    { type: "function", function: { name: "three" } },
  ]);
  expect(crossed["tool_choice"]).toBeUndefined();
  expect(ignored).toEqual(["behavior"]);
  const chosen = (functionCallingConfig: Json) => {
    const { tools: kept, tool_choice } = toChat(request({ tools, toolConfig: { functionCallingConfig } })).request;
    const names = (kept as { function: Json }[]).map((tool) => [tool.function["name"], tool.function["strict"]]);
    return [tool_choice, names.map(([name, strict]) => `${String(name)}${strict ? "!" : ""}`).join(" ")];
  };
  expect(chosen({ mode: "AUTO" })).toEqual(["auto", "one two three"]);
  expect(chosen({ mode: "NONE" })).toEqual(["none", "one two three"]);
  expect(chosen({ mode: "any" })).toEqual(["required", "one two three"]);
  expect(chosen({ mode: "ANY", allowed_function_names: ["two"] })).toEqual([
    { type: "function", function: { name: "two" } },
    "one two three",
  ]);
  expect(chosen({ mode: "ANY", allowedFunctionNames: ["two", "three"] })).toEqual(["required", "two three"]);
  expect(chosen({ mode: "VALIDATED", allowedFunctionNames: ["two"] })).toEqual(["auto", "two!"]);
  expect(blamed(request({ toolConfig: { functionCallingConfig: { mode: "ANY" } } }))).toBe(
    "toolConfig.functionCallingConfig.mode",
  );
});

test("JSON answers cross with their schema, strict where it can be so", () => {
  const format = (config: Json) => configured(config).request["response_format"];
  const strict = (schema: Json) => ({ type: "json_schema", json_schema: { name: "answer", schema, strict: true } });
  const loose = (schema: Json) => ({ type: "json_schema", json_schema: { name: "answer", schema } });
  const responseMimeType = "application/json";
  expect(format({ responseMimeType })).toEqual({ type: "json_object" });
  expect(format({ responseMimeType: "text/plain" })).toBeUndefined();
  const whole = { type: "OBJECT", properties: { a: { type: "STRING" } }, required: ["a"] };
  const closed = {
    type: "object",
    properties: { a: { type: "string" } },
    required: ["a"],
    additionalProperties: false,
  };
  expect(format({ responseMimeType, responseSchema: whole })).toEqual(strict(closed));
  const { additionalProperties: _, ...open } = closed;
  expect(format({ responseMimeType, responseJsonSchema: open })).toEqual(strict(closed));
  const optional = { ...open, required: [] };
  expect(format({ responseJsonSchema: optional })).toEqual(loose(optional));
  const nested = [
    { type: "array", items: optional },
    { type: "object", properties: { a: optional }, required: ["a"] },
    { ...open, additionalProperties: true },
    { type: "object" },
  ];
  for (const schema of nested) expect(format({ responseJsonSchema: schema })).toEqual(loose(schema));
  expect(format({ responseJsonSchema: { type: "array", items: open } })).toEqual(
    strict({ type: "array", items: closed }),
  );
  expect(format({ responseFormat: [{ text: { mime_type: responseMimeType, schema: closed } }] })).toEqual(
    strict(closed),
  );
  expect(blamed(request({ generationConfig: { responseMimeType: "text/x.enum" } }))).toBe(
    "generationConfig.responseMimeType",
  );
  expect(blamed(request({ generationConfig: { responseModalities: ["AUDIO"] } }))).toBe(
    "generationConfig.responseModalities",
  );
});

test("a schema that is nested without end is refused, not followed", () => {
  let schema: Json = { type: "STRING" };
  for (let i = 0; i < 1000; i++) schema = { type: "ARRAY", items: schema };
  expect(blamed(request({ generationConfig: { responseSchema: schema } }))).toBe("generationConfig.responseSchema");
  expect(blamed(request({ generationConfig: { responseJsonSchema: schema } }))).toBe(
    "generationConfig.responseJsonSchema",
  );
  const functionDeclarations = [{ name: "f", parameters: schema }];
  expect(blamed(request({ tools: [{ functionDeclarations }] }))).toBe("tools[0].functionDeclarations[0].parameters");
});
