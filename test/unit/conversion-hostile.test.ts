import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ServiceError, upstreamError } from "#errors";
import {
  type Codec,
  chatCodec,
  countedRequest,
  countTokensCodec,
  type Format,
  formats,
  geminiCodec,
  geminiCountCodec,
  messagesCodec,
  responsesCodec,
} from "#formats";
import type { JsonObject } from "#json";
import { converters, responsesFailure, type StreamWriter } from "../../workers/conversion/index.ts";
import { runs } from "../support/property-runs.ts";
import { writtenEvents } from "../support/written-events.ts";

/** Valid requests and answers of a format that have as many of its fields as possible. */
interface Specimens {
  readonly request: JsonObject;
  /** A request of chat for a provider of the format. */
  readonly chatRequest?: JsonObject;
  readonly answer: JsonObject;
  readonly events: readonly JsonObject[];
}
const specimensOf = (format: Format) =>
  JSON.parse(readFileSync(new URL(`../fixtures/${format}/specimens.json`, import.meta.url), "utf8")) as Specimens;
const chat = specimensOf("chat");

const identity = { model: "local/chat", created: 9, id: "chatcmpl-req_1" };
const estimate = { input: 1, output: 2 };
const target = { model: "m", cap: 1, capField: "max_tokens" } as const;
const placed = { mime: "image/png", address: "https://a.example/x", base64: "" };

const parsers: Readonly<Record<Format, readonly Pick<Codec, "parse">[]>> = {
  chat: [chatCodec],
  messages: [messagesCodec, countTokensCodec],
  responses: [responsesCodec],
  gemini: [geminiCodec("gemini-3.8-flash", false, true), geminiCountCodec("m")],
};

type Work<Given> = Readonly<Record<string, (given: Given) => unknown>>;

/** The functions that read a caller's request, which they may refuse. */
const requestWork = (format: Format): Work<JsonObject> => ({
  ...Object.fromEntries(parsers[format].map((codec, at) => [`parse ${at}`, (body) => codec.parse(body, 100)])),
  ...(format === "gemini" && {
    "parse a count": (body) => geminiCountCodec("m").parse({ generateContentRequest: body }, 100),
    countedRequest,
  }),
  requestToChat: (body) => converters[format].requestToChat(body),
  prepare: (body) => converters[format].native.prepare(body, target),
  resolveUploads: (body) => converters[format].resolveUploads(body, () => placed),
  responseFromChat: (body) => converters[format].responseFromChat(chat.answer, identity, body),
});

const chatRequestWork = (format: Format): Work<JsonObject> => ({
  requestFromChat: (body) => converters[format].requestFromChat(body, { hiddenReasoning: true }),
});

/** The functions that read a provider's answer, of which they drop the parts that they cannot read. */
const answerWork = (format: Format): Work<JsonObject> => ({
  responseToChat: (answer) => converters[format].responseToChat(answer),
  finish: (answer) => converters[format].native.finish(answer, identity, estimate),
  usage: (answer) => converters[format].native.usage(answer) ?? null,
  failure: (answer) => responsesFailure(answer) ?? null,
});
const chatAnswerWork = (format: Format): Work<JsonObject> => ({
  responseFromChat: (answer) => converters[format].responseFromChat(answer, identity, { stop_sequences: 1 }),
});

function writeAll(writer: StreamWriter, items: readonly JsonObject[]): string {
  const text = items.map((item) => writer.write(item)).join("") + writer.end(estimate);
  expect(writer.outputBytes()).toBeGreaterThanOrEqual(0);
  writer.usage();
  writer.fail?.(upstreamError("Broken."));
  return text;
}
const eventsWork = (format: Format): Work<readonly JsonObject[]> => ({
  streamToChat: (events) => {
    const stream = converters[format].streamToChat();
    const chunks = events.map((event) => stream.write(event));
    return [...chunks, stream.usage() ?? null];
  },
  native: (events) => writeAll(converters[format].native.stream(identity), events),
});
const chunksWork = (format: Format): Work<readonly JsonObject[]> => ({
  streamFromChat: (chunks) => {
    const text = writeAll(converters[format].streamFromChat(identity, {}), chunks);
    const events = writtenEvents[format](text);
    if (format === "responses") expect(events).toMatchObject(events.map((_, at) => ({ sequence_number: at })));
    return events;
  },
});

const wrongs: readonly unknown[] = [
  null,
  0,
  -1.5,
  true,
  Number.POSITIVE_INFINITY,
  "",
  "x",
  "upl_a",
  "__proto__",
  "toString",
  [],
  [null],
  ["x"],
  [[[]]],
  {},
  { parts: 1 },
  { constructor: 1 },
  { toString: 1, length: 3, type: { toString: null } },
  JSON.parse('{"__proto__": {"a": 1}}'),
];

type Path = readonly string[];

/** Every path to a value inside. */
function pathsOf(value: unknown, at: Path = []): Path[] {
  const inner = Object.entries(Object(value) as JsonObject);
  const isText = typeof value === "string";
  return [at, ...(isText ? [] : inner.flatMap(([field, each]) => pathsOf(each, [...at, field])))];
}

/** The items of a list stay objects, because the events of a stream are. */
const pathsInside = (value: unknown): Path[] =>
  pathsOf(value).filter((path) => path.length > (Array.isArray(value) ? 1 : 0));

function replaced(value: unknown, [field, ...rest]: Path, by: unknown): unknown {
  if (field === undefined) return by;
  if (Array.isArray(value)) return value.map((each, i) => (String(i) === field ? replaced(each, rest, by) : each));
  const fields = Object(value) as JsonObject;
  return { ...fields, [field]: replaced(fields[field], rest, by) };
}

const isRefusal = (error: unknown) =>
  error instanceof ServiceError && error.status === 400 && error.code === "invalid_value";

/** The functions that fail by anything but a refusal, if they may refuse. */
function faultsOf<Given>(work: Work<Given>, given: Given, mayRefuse: boolean): string[] {
  return Object.entries(work).flatMap(([name, run]) => {
    try {
      if (JSON.stringify(run(given)) === undefined) return [`${name}: no JSON`];
    } catch (error) {
      if (!mayRefuse || !isRefusal(error)) return [`${name}: ${String(error)}`];
    }
    return [];
  });
}

/** Values made of the names and texts of a specimen, in any order. */
function shapesOf(specimen: unknown): fc.Arbitrary<JsonObject> {
  const paths = pathsInside(specimen);
  const names = [...new Set(paths.map((path) => path.at(-1) as string))].filter((name) => !/^\d+$/.test(name));
  const texts: string[] = [];
  JSON.stringify(specimen, (_, value: unknown) => {
    if (typeof value === "string") texts.push(value);
    return value;
  });
  const { anything } = fc.letrec<{ anything: unknown }>((tie) => ({
    anything: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(...wrongs),
      fc.constantFrom(...texts),
      fc.constantFrom(...texts),
      fc.array(tie("anything"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names, "toString"), tie("anything"), { maxKeys: 5 }),
    ),
  }));
  return fc.dictionary(fc.constantFrom(...names), anything, { maxKeys: 6 });
}

/** The specimen with other values at one or two paths. */
function corrupted<Given>(specimen: Given): fc.Arbitrary<Given> {
  const paths = pathsInside(specimen);
  const corruption = fc.tuple(
    fc.constantFrom(...paths),
    fc.oneof(fc.constantFrom(...wrongs), fc.jsonValue({ maxDepth: 3 })),
  );
  return fc
    .array(corruption, { minLength: 1, maxLength: 2 })
    .map((all) => all.reduce<unknown>((value, [path, by]) => replaced(value, path, by), specimen) as Given);
}

const { request: chatRequest } = chat;
const specimens = formats.map((format) => ({ format, chatRequest, ...specimensOf(format) }));

describe.each(specimens)("$format", ({ format, ...own }) => {
  const cases: readonly [what: string, work: Work<never>, specimen: unknown, mayRefuse: boolean][] = [
    ["request", requestWork(format), own.request, true],
    ["chat request", chatRequestWork(format), own.chatRequest, true],
    ["answer", answerWork(format), own.answer, false],
    ["chat answer", chatAnswerWork(format), chat.answer, false],
    ["stream", eventsWork(format), own.events, false],
    ["chat stream", chunksWork(format), chat.events, false],
  ];

  test.each(cases)("every function reads the %s", (_, work, specimen) => {
    expect(faultsOf(work, specimen as never, false)).toEqual([]);
  });

  test.each(cases)(
    "a %s with a value of any wrong type is read, or refused by name",
    (_, work, specimen, mayRefuse) => {
      const faults = pathsInside(specimen).flatMap((path) =>
        wrongs.flatMap((wrong) =>
          faultsOf(work, replaced(specimen, path, wrong) as never, mayRefuse).map((fault) => [path, wrong, fault]),
        ),
      );
      expect(faults).toEqual([]);
    },
  );

  test.each(cases)("a %s with several wrong values is read, or refused by name", (_, work, specimen, mayRefuse) => {
    fc.assert(
      fc.property(corrupted(specimen), (given) => {
        expect(faultsOf(work, given as never, mayRefuse)).toEqual([]);
      }),
      { numRuns: runs(1500) },
    );
  });

  test.each(cases)("a %s of any shape is read, or refused by name", (_, work, specimen, mayRefuse) => {
    const shape = shapesOf(specimen);
    fc.assert(
      fc.property(Array.isArray(specimen) ? fc.array(shape, { maxLength: 5 }) : shape, (given) => {
        expect(faultsOf(work, given as never, mayRefuse)).toEqual([]);
      }),
      { numRuns: runs(2000) },
    );
  });
});

const deep = JSON.parse(`${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`) as JsonObject;
const deepText = `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`;
const { gemini, messages, responses } = converters;

test("deeply nested arguments are refused in a request, and dropped from an answer", () => {
  const part = { functionCall: { name: "f", args: deep } };
  const contents = [{ role: "model", parts: [part] }];
  expect(() => gemini.requestToChat({ contents })).toThrow(ServiceError);
  const { choices } = gemini.responseToChat({ candidates: [{ content: { parts: [part] } }] });
  expect(choices).toMatchObject([{ message: { tool_calls: [{ function: { name: "f", arguments: "{}" } }] } }]);

  const call = { type: "tool_use", id: "a", name: "n", input: deep };
  const body = { messages: [{ role: "assistant", content: [call] }] };
  expect(() => messages.requestToChat(body)).toThrow("messages[0].content[0].input: is nested too deep");
});

test("deeply nested arguments of a chat answer are malformed for Gemini", () => {
  const message = { tool_calls: [{ id: "a", function: { name: "f", arguments: deepText } }] };
  const { candidates } = gemini.responseFromChat({ choices: [{ message }] }, identity, {});
  const finishMessage = `Malformed function call: f(${deepText})`;
  expect(candidates).toMatchObject([{ finishReason: "MALFORMED_FUNCTION_CALL", finishMessage }]);
});

test("a deeply nested schema of a response is refused", () => {
  const items = JSON.parse(`${'{"items":'.repeat(1000)}{}${"}".repeat(1000)}`) as JsonObject;
  const response_format = { type: "json_schema", json_schema: { schema: items } };
  expect(() =>
    messages.requestFromChat({ model: "m", messages: [{ role: "user", content: "Hi" }], response_format }),
  ).toThrow("is nested too deep");
  const contents = [{ parts: [{ text: "Hi" }] }];
  for (const [param, body] of [
    ["generationConfig.responseSchema", { generationConfig: { responseSchema: items } }],
    ["generationConfig.responseJsonSchema", { generationConfig: { responseJsonSchema: items } }],
    [
      "tools[0].functionDeclarations[0].parameters",
      { tools: [{ functionDeclarations: [{ name: "f", parameters: items }] }] },
    ],
  ] as const)
    expect(() => gemini.requestToChat({ contents, ...body })).toThrow(expect.objectContaining({ param }));
});

test("states of one item share its summary, however many there are", () => {
  const shared = { format: "openai-responses-v1", id: "rs_1", index: 0 };
  const reasoning_details = [
    { type: "reasoning.summary", summary: "x".repeat(10_000), ...shared },
    ...Array.from({ length: 2_000 }, () => ({ type: "reasoning.encrypted", data: "x", ...shared })),
  ];
  const said = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Ho", reasoning_details },
  ];
  const { request } = responses.requestFromChat({ model: "m", messages: said }, { hiddenReasoning: true });
  expect(JSON.stringify(request).length).toBeLessThan(2 * JSON.stringify(said).length);
});
