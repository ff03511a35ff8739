import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ServiceError } from "#errors";
import { chatCodec, geminiCodec, messagesCodec, responsesCodec } from "#formats";
import { object } from "#json";
import { type CacheableCall, type CacheOwner, entryName } from "#response-cache";
import { runs } from "../support/property-runs.ts";

const owner: CacheOwner = { account: "acc_1", key: "key_1" };
const base = { endpoint: "/v1/chat/completions", models: ["m"], stream: false, headers: [] };
const absent = { model: undefined, framing: undefined, ownKey: undefined };
const bodyOf = (text: string) => ({ text, bytes: Buffer.byteLength(text), value: JSON.parse(text) as unknown });
const nameOf = (text: string, more: Partial<CacheableCall> = {}, by = owner) =>
  entryName(by, { ...base, ...absent, body: bodyOf(text), ...more });
const entryOf = (text: string, more: Partial<CacheableCall> = {}) => nameOf(text, more).entry;

/** Separators of names and of JSON, and values that look like others. */
const pieces = ["a", "b", ":", "{", "}", "\n", '"', ",", "\\", "]", "é", "\0", "null", "true", "cache:", "version"];
const [fieldCount, maxPieces] = [10, 6];
const cuts = fc.array(fc.nat(2 * maxPieces), { minLength: fieldCount - 1, maxLength: fieldCount - 1 });
const absences = fc.array(fc.boolean(), { minLength: fieldCount, maxLength: fieldCount });
const cutting = fc.record({ cuts, absences, stream: fc.boolean() });
type Cutting = typeof cutting extends fc.Arbitrary<infer T> ? T : never;

/** Cuts a text into the fields of a call. */
function cutCall(text: string, { cuts, absences, stream }: Cutting) {
  const ends = [...cuts.toSorted((a, b) => a - b), text.length];
  const fields = ends.map((end, n) => text.slice(ends[n - 1] ?? 0, end));
  const [account = "", key = "", endpoint = "", model, framing, header = "", value = "", own, named = "", said] =
    fields;
  const [noKey, noModel, noFraming, noHeader, noOwnKey] = absences;
  const by = { account, key: noKey ? null : key };
  const call = {
    endpoint,
    stream,
    model: noModel ? undefined : model,
    framing: noFraming ? undefined : framing,
    headers: noHeader ? [] : [[header, value] as const],
  };
  const body = JSON.stringify([said]);
  const [models, ownKey] = [[named], noOwnKey ? undefined : own];
  const { entry, flight, versions } = nameOf(body, { ...call, models, ownKey }, by);
  const is = JSON.stringify([by, call, noOwnKey ? { body } : { models, ownKey }]);
  return { account, is, own: [entry, flight], all: [entry, flight, ...versions] };
}

test("calls share a name only if their owners and all of their fields are the same", () => {
  const text = fc.array(fc.constantFrom(...pieces), { maxLength: maxPieces }).map((some) => some.join(""));
  fc.assert(
    fc.property(text, cutting, cutting, (text, one, other) => {
      const [a, b] = [cutCall(text, one), cutCall(text, other)];
      expect(a.own.filter((name) => b.all.includes(name))).toEqual(a.is === b.is ? a.own : []);
      expect(a.all.some((name) => b.all.includes(name))).toBe(a.account === b.account);
    }),
    { numRuns: runs(50_000, 1_000) },
  );
});

test("each field of a call, alone, changes its name, and so do the scope and the custom key", () => {
  const text = '{"model":"m"}';
  const [version, beta] = [["anthropic-version", "2023-06-01"] as const, ["anthropic-beta", "a"] as const];
  const others: Partial<CacheableCall>[] = [
    {},
    ...["/v1/messages", "/v1/responses", "/v1/completions"].map((endpoint) => ({ endpoint })),
    ...["", "m", "null", "/v1/chat/completions"].map((model) => ({ model })),
    { stream: true },
    { stream: "bytes" },
    ...["array", "completions", "true", ""].map((framing) => ({ framing })),
    ...[[version, beta], [version], [beta], [["anthropic-beta", "a,b"] as const]].map((headers) => ({ headers })),
    { body: bodyOf('[["m"],"m"]') },
    ...["m", text, `json ${text}`, `key ${text}`, "\u0001", "ключ"].map((ownKey) => ({ ownKey })),
    { ownKey: "m", models: ["n"] },
    { ownKey: "m", models: ["m", "n"] },
    { ownKey: "m", stream: true },
    { ownKey: "m", stream: "bytes" },
  ];
  const owners = [owner, ...[null, "null", "", "acc_1", "key_10"].map((key) => ({ account: "acc_1", key }))];
  const names = owners.flatMap((by) => others.map((more) => nameOf(text, more, by)));
  expect(new Set(names.flatMap(({ entry, flight }) => [entry, flight])).size).toBe(2 * names.length);
  // A custom key takes the place of the body only.
  expect(entryOf('{"model":"m","seed":1}', { ownKey: "m" })).toBe(entryOf(text, { ownKey: "m" }));
});

/** JSON as it is written: numbers by their text, objects by their properties in order. */
type Json = null | boolean | string | { number: string } | readonly Json[] | { pairs: readonly Pair[] };
type Pair = readonly [name: string, value: Json];
const isList = (json: Json): json is readonly Json[] => Array.isArray(json);
const pairsOf = (json: Json) => (typeof json === "object" && json !== null && "pairs" in json ? json.pairs : undefined);

interface Style {
  readonly quote?: (text: string) => string;
  readonly space?: string;
  readonly order?: (pairs: readonly Pair[]) => readonly Pair[];
}
function write(json: Json, style: Style = {}): string {
  const { quote = JSON.stringify, space = "", order = (pairs) => pairs } = style;
  if (typeof json === "string") return quote(json);
  if (typeof json !== "object" || json === null) return String(json);
  if (isList(json)) return `[${space}${json.map((each) => write(each, style)).join(`${space},${space}`)}${space}]`;
  if ("number" in json) return json.number;
  const pairs = order(json.pairs).map(([name, value]) => `${quote(name)}${space}:${space}${write(value, style)}`);
  return `{${space}${pairs.join(`${space},`)}${space}}`;
}
/** The same text for JSON that differs only in the order of properties. */
const sorted = (json: Json) => write(json, { order: (pairs) => pairs.toSorted(([a], [b]) => (a < b ? -1 : 1)) });

const units = ["a", "1", '"', "\\", "\0", "\ud800", "\udfff", "\ufffd", "\u2028"];
const texts = fc.string({ unit: fc.constantFrom(...units), maxLength: 3 });
/** No two of them are equal. */
const numbers =
  "0 1 -1 1.5 0.1 1e21 1e-7 1e400 -1e400 1e401 9007199254740992 9007199254740993 12345678901234567890 12345678901234567891".split(
    " ",
  );
const leaves = fc.oneof(
  fc.constantFrom<Json>(null, true, false, "null", "true", "1"),
  texts,
  fc.constantFrom(...numbers).map((number) => ({ number })),
);
const jsonWith = (...names: readonly string[]) =>
  fc.letrec<{ json: Json; object: Json }>((tie) => ({
    json: fc.oneof({ depthSize: "small" }, leaves, fc.array(tie("json"), { maxLength: 3 }), tie("object")),
    object: fc
      .uniqueArray(fc.tuple(fc.constantFrom(...names), tie("json")), { maxLength: 4, selector: ([name]) => name })
      .map((pairs) => ({ pairs })),
  }));
const names = ["", "\ud800", "\ufffd", ..."a b 1 10 2 01 __proto__ constructor toString number pairs".split(" ")];
const anyJson = jsonWith(...names, "type", "input", "parameters", "schema");

const moved = <T>(all: readonly T[], at: number): readonly T[] => {
  const [first, ...rest] = all.slice(at % (all.length || 1));
  return first === undefined ? all : [...all.slice(0, all.length - rest.length - 1), ...rest, first];
};
type Change = (json: Json, other: Json, at: number) => Json;
const changes: readonly Change[] = [
  (_, other) => other,
  (json) => write(json),
  (json) => [json],
  (json, other) => ({ pairs: [...(pairsOf(json) ?? []), ["added", other]] }),
  (json, other) => (isList(json) ? [...json, other] : [json, other]),
  (json, other, at) => (isList(json) ? moved(json, at) : other),
  (json, other, at) => (isList(json) ? json.toSpliced(at % (json.length || 1), 1) : other),
  (json, other, at) => {
    const pairs = pairsOf(json);
    return pairs ? { pairs: pairs.toSpliced(at % (pairs.length || 1), 1) } : other;
  },
];

/** Changes the value that a path leads to. */
function changeAt(json: Json, [first, ...rest]: readonly number[], change: (json: Json) => Json): Json {
  const pairs = pairsOf(json);
  const length = isList(json) ? json.length : (pairs?.length ?? 0);
  if (first === undefined || length === 0) return change(json);
  const inner = (each: Json, n: number) => (n === first % length ? changeAt(each, rest, change) : each);
  return isList(json) ? json.map(inner) : { pairs: (pairs ?? []).map(([name, each], n) => [name, inner(each, n)]) };
}

test("a body with another meaning has another name", () => {
  const [path, change] = [fc.array(fc.nat(11), { maxLength: 4 }), fc.constantFrom(...changes)];
  fc.assert(
    fc.property(anyJson.object, path, change, anyJson.json, fc.nat(3), (body, path, change, other, at) => {
      const changed = changeAt(body, path, (json) => change(json, other, at));
      fc.pre(sorted(body) !== sorted(changed));
      expect(entryOf(write(changed))).not.toBe(entryOf(write(body)));
    }),
    { numRuns: runs(50_000, 1_000) },
  );
});

test("values that look alike have different names", () => {
  const written = [...numbers, ...["", "\ud800", "null", "true"].map((text) => JSON.stringify(text)), "null", "true"];
  const alike = ["[]", "{}", '{"a":1}', '[["a",1]]', '{"pairs":[["a",1]]}', '{"pairs":[]}', '{"x":1,"a":1}'];
  const values = [
    ...[...written, ...alike].flatMap((json) => [json, `[${json}]`, `[[${json}]]`, `{"number":${json}}`]),
    ...numbers.flatMap((json) => [`"${json}"`, `{"number":"${json}"}`]),
    ...[...units, ...names].map((name) => `{${JSON.stringify(`${name} `)}:1}`),
  ];
  const bodies = new Set(values.map((json) => `{"x":${json}}`));
  expect(new Set([...bodies].map((body) => entryOf(body))).size).toBe(bodies.size);
});

test("a body that differs in white space, escapes and the order of properties has the same name", () => {
  const escape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const styles = fc.record<Style>({
    quote: fc.constantFrom(JSON.stringify, (text: string) => `"${text.replace(/[^]/g, escape)}"`),
    space: fc.constantFrom("", " ", "\r\n\t"),
    order: fc.nat(3).map((at) => (pairs: readonly Pair[]) => moved(pairs, at)),
  });
  fc.assert(
    fc.property(jsonWith(...names).object, styles, (body, style) => {
      expect(entryOf(write(body, style))).toBe(entryOf(write(body)));
    }),
    { numRuns: runs(20_000, 300) },
  );
  expect(entryOf('{"a":-0,"b":1.0,"c":1e2}')).toBe(entryOf('{"a":0,"b":1,"c":100}'));
});

/** Where models read properties in their order. `#` stands for an object. */
const ordered = [
  '{"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":#}}}]}',
  '{"functions":[{"name":"f","parameters":#}]}',
  '{"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":#}}}',
  '{"guided_json":#}',
  '{"structured_outputs":{"json":#}}',
  '{"tools":[{"name":"f","input_schema":{"properties":#},"input_examples":[]}]}',
  '{"tools":[{"name":"f","input_schema":{},"input_examples":[#]}]}',
  '{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":#}]}]}',
  '{"output_config":{"format":{"type":"json_schema","schema":#}}}',
  '{"tools":[{"type":"function","name":"f","parameters":#}]}',
  '{"text":{"format":{"type":"json_schema","name":"a","schema":#}}}',
  '{"input":[{"type":"tool_search_call","arguments":#}]}',
  '{"tools":[{"functionDeclarations":[{"name":"f","parameters":#}]}]}',
  '{"tools":[{"functionDeclarations":[{"parametersJsonSchema":{},"responseJsonSchema":#}]}]}',
  '{"tools":[{"function_declarations":[{"name":"f","parameters_json_schema":#}]}]}',
  '{"contents":[{"parts":[{"functionCall":{"name":"f","args":{"a":[#]}}}]}]}',
  '{"contents":[{"parts":[{"function_response":{"name":"f","response":#}}]}]}',
  '{"generationConfig":{"responseSchema":#}}',
  '{"generation_config":{"response_schema":#}}',
  '{"GenerationConfig":{"Response_JSON_Schema":#}}',
];
const unordered = ["#", '{"metadata":#}', '{"messages":[#]}', '{"tools":[#]}', '{"input":[#]}', '{"provider":#}'];

test.each([...ordered, ...unordered])("the order of properties matters only where models read it: %s", (template) => {
  const names = fc.uniqueArray(fc.constantFrom("a", "b", "c", "properties", "x y"), { minLength: 2 });
  fc.assert(
    fc.property(names, leaves, (names, value) => {
      const entryWith = (names: readonly string[]) =>
        entryOf(template.replace("#", () => write({ pairs: names.map((name) => [name, value]) })));
      expect(entryWith(names.toReversed()) === entryWith(names)).toBe(unordered.includes(template));
    }),
    { numRuns: runs(2_000, 10) },
  );
});

/** Changes of one value at a time. */
function* mutantsOf(value: unknown): Generator<unknown> {
  yield JSON.stringify(value);
  if (typeof value === "string") yield `${value} `;
  if (typeof value === "number") yield value + 1;
  if (typeof value === "boolean") yield !value;
  if (Array.isArray(value)) {
    yield [...(value as unknown[]), ...(value as unknown[])];
    for (const [n, each] of (value as unknown[]).entries()) {
      yield value.toSpliced(n, 1);
      for (const mutant of mutantsOf(each)) yield value.with(n, mutant);
    }
  } else if (typeof value === "object")
    for (const [name, each] of Object.entries(object(value))) {
      const { [name]: _, ...rest } = object(value);
      yield rest;
      for (const mutant of mutantsOf(each)) yield { ...value, [name]: mutant };
    }
}

const codecs = {
  chat: chatCodec,
  messages: messagesCodec,
  responses: responsesCodec,
  gemini: geminiCodec("m", false, true),
};

test.each(Object.entries(codecs))(
  "every change of a request that is accepted has its own name: %s",
  (format, codec) => {
    const file = new URL(`../fixtures/${format}/specimens.json`, import.meta.url);
    const { request } = JSON.parse(readFileSync(file, "utf8")) as { request: unknown };
    const nameIn = (text: string) => {
      try {
        const { model, stream } = codec.parse(JSON.parse(text), text.length);
        return entryOf(text, { models: [model], stream });
      } catch (error) {
        if (error instanceof ServiceError) return undefined;
        throw error;
      }
    };
    const all = [request, ...mutantsOf(request)].map((each) => JSON.stringify(each));
    const found = new Map(all.map((text) => [text, nameIn(text)] as const).filter(([, name]) => name !== undefined));
    expect(found.size).toBeGreaterThan(100);
    expect(new Set(found.values()).size).toBe(found.size);
    expect(nameIn(JSON.stringify(request, undefined, 2))).toBe(found.get(JSON.stringify(request)));
  },
);

test("a body of more than 256 KB is compared by its text", () => {
  const long = (text: string, space = "") => `{"a":"${"é".repeat(128 * 1024)}${text}",${space}"b":1}`;
  const all = [long("a"), long("b"), long("a", " ")].map((text) => entryOf(text));
  expect(new Set(all).size).toBe(3);
  expect(entryOf(long("a"))).toBe(all[0]);
});
