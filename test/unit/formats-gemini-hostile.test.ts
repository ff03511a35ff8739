import fc from "fast-check";
import { expect, test } from "vitest";
import { ServiceError } from "#errors";
import { countedRequest, geminiCodec, geminiCountCodec } from "../../shared/formats/index.ts";
import { geminiConverter } from "../../workers/conversion/gemini/index.ts";
import { runs } from "../support/property-runs.ts";

type Json = Readonly<Record<string, unknown>>;

const identity = { model: "m", created: 0, id: "r" };
const estimate = { input: 1, output: 1 };
const codec = geminiCodec("gemini-3.8-flash", false, true);

const request: Json = {
  contents: [
    { role: "user", parts: [{ text: "Hi" }, { inlineData: { mimeType: "image/png", data: "QUJD" } }] },
    { role: "model", parts: [{ functionCall: { id: "a", name: "f", args: { x: [1] } }, thoughtSignature: "c2ln" }] },
    {
      role: "user",
      parts: [
        {
          functionResponse: {
            id: "a",
            name: "f",
            response: { output: "1" },
            parts: [{ fileData: { mimeType: "image/png", fileUri: "https://a.example/x" } }],
          },
        },
      ],
    },
  ],
  systemInstruction: { parts: [{ text: "Be kind." }] },
  tools: [
    {
      functionDeclarations: [
        { name: "f", parameters: { type: "OBJECT", properties: { x: { type: "ARRAY", items: { type: "STRING" } } } } },
      ],
    },
  ],
  toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } },
  generationConfig: {
    maxOutputTokens: 5,
    stopSequences: ["x"],
    responseMimeType: "application/json",
    responseSchema: { type: "OBJECT", anyOf: [{ type: "STRING" }], enum: ["a"], nullable: true },
    responseFormat: [{ text: { mimeType: "text/plain", schema: {} } }],
    thinkingConfig: { thinkingBudget: 5, thinkingLevel: "LOW" },
  },
  serviceTier: "standard",
};

const chatRequest: Json = {
  model: "gemini-3.8-flash",
  messages: [
    { role: "system", content: "x" },
    {
      role: "user",
      content: [
        { type: "text", text: "Hi" },
        { type: "image_url", image_url: { url: "data:image/png;base64,QUJD" } },
        { type: "input_audio", input_audio: { data: "QUJD", format: "wav" } },
        { type: "file", file: { file_data: "data:application/pdf;base64,QUJD" } },
      ],
    },
    {
      role: "assistant",
      content: "x",
      extra_content: { google: { thought_signature: "c2ln" } },
      tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "a", content: "{}" },
  ],
  tools: [{ type: "function", function: { name: "f", parameters: { properties: { x: { const: 1 } } } } }],
  tool_choice: { type: "function", function: { name: "f" } },
  response_format: { type: "json_schema", json_schema: { schema: { items: [] } } },
  extra_body: { google: { thinking_config: { thinking_budget: 1 } } },
  reasoning_effort: "low",
  max_tokens: 3,
  stop: ["x"],
};

const answer: Json = {
  candidates: [
    {
      content: {
        role: "model",
        parts: [
          { text: "x", thought: true },
          { functionCall: { name: "f", args: {} }, thoughtSignature: "c2ln" },
        ],
      },
      finishReason: "STOP",
      index: 0,
      logprobsResult: { chosenCandidates: [{ token: "x" }], topCandidates: [{ candidates: [{}] }] },
    },
  ],
  promptFeedback: { blockReason: "SAFETY" },
  usageMetadata: { promptTokenCount: 1, promptTokensDetails: [{ modality: "AUDIO", tokenCount: 1 }] },
  modelVersion: "x",
  responseId: "y",
};

const message: Json = {
  content: "x",
  reasoning_content: "y",
  refusal: null,
  extra_content: { google: { thought_signature: "c2ln" } },
  tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }],
};
const logprobs = { content: [{ token: "x", logprob: 0, top_logprobs: [{}] }] };
const chatAnswer: Json = {
  choices: [{ index: 0, message, delta: message, logprobs, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens_details: { reasoning_tokens: 1 } },
};

const junk = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    Number.POSITIVE_INFINITY,
    "",
    "x",
    [],
    {},
    [null],
    [[]],
    ["x"],
    { parts: 1 },
    "upl_a",
  ),
  fc.constantFrom<unknown>({ constructor: 1 }, JSON.parse('{"__proto__": {"a": 1}}'), "__proto__", "toString"),
  fc.jsonValue({ maxDepth: 3 }),
);

/** All paths in the value. */
const placesOf = (value: unknown): (string | number)[][] =>
  typeof value !== "object" || value === null
    ? [[]]
    : [[], ...Object.entries(value).flatMap(([key, each]) => placesOf(each).map((rest) => [key, ...rest]))];

function put(value: unknown, [first, ...rest]: readonly (string | number)[], what: unknown): unknown {
  if (first === undefined) return what;
  if (Array.isArray(value))
    return value.map((each: unknown, i) => (String(i) === first ? put(each, rest, what) : each));
  const fields = value as Json;
  return { ...fields, [first]: put(fields[first], rest, what) };
}

/** The value with junk at one or two paths. */
const corrupted = (value: Json): fc.Arbitrary<Json> => {
  const places = placesOf(value).filter((place) => place.length > 0);
  const corruption = fc.tuple(fc.constantFrom(...places), junk);
  return fc.tuple(corruption, fc.option(corruption)).map(([[place, what], second]) => {
    const once = put(value, place, what) as Json;
    if (!second) return once;
    const [at, other] = second;
    return at.join(".").startsWith(place.join(".")) ? once : (put(once, at, other) as Json);
  });
};

/** Only a refusal that names a field may be thrown. */
function verdict(work: () => unknown): string {
  try {
    JSON.stringify(work());
    return "fine";
  } catch (error) {
    return error instanceof ServiceError && error.code === "invalid_value" ? "fine" : String(error);
  }
}

const often = { numRuns: runs(1500) };

test("a corrupted request is accepted or refused by name, by every function", () => {
  fc.assert(
    fc.property(corrupted(request), (body) => {
      const functions = [
        () => codec.parse(body, 100),
        () => geminiCountCodec("m").parse({ generateContentRequest: body }, 100),
        () => countedRequest(body),
        () => geminiConverter.requestToChat(body),
        () => geminiConverter.native.prepare(body, { model: "m", cap: 1, capField: "max_tokens" }),
        () =>
          geminiConverter.resolveUploads(body, ({ id }) => ({
            mime: "image/png",
            address: `https://${id}`,
            base64: "",
          })),
        () => geminiConverter.responseFromChat(chatAnswer, identity, body),
      ];
      expect(functions.map(verdict)).toEqual(functions.map(() => "fine"));
    }),
    often,
  );
});

test("a corrupted chat request is accepted or refused by name", () => {
  fc.assert(
    fc.property(corrupted(chatRequest), (body) => {
      expect(verdict(() => geminiConverter.requestFromChat(body))).toBe("fine");
    }),
    often,
  );
});

/** A response is never refused: unreadable parts are dropped. */
test("a corrupted response of the provider is read as far as possible", () => {
  fc.assert(
    fc.property(corrupted(answer), (body) => {
      const stream = geminiConverter.streamToChat();
      const native = geminiConverter.native.stream(identity);
      const all = () => [
        geminiConverter.responseToChat(body),
        stream.write(body),
        stream.usage(),
        geminiConverter.native.finish(body, identity, estimate),
        geminiConverter.native.usage(body),
        native.write(body) + native.end(estimate),
        native.usage(),
      ];
      expect(() => JSON.stringify(all())).not.toThrow();
    }),
    often,
  );
});

test("a corrupted chat response is read as far as possible", () => {
  fc.assert(
    fc.property(corrupted(chatAnswer), (body) => {
      const stream = geminiConverter.streamFromChat(identity, request);
      const all = () => [
        geminiConverter.responseFromChat(body, identity, request),
        stream.write(body),
        stream.end(estimate),
      ];
      expect(() => JSON.stringify(all())).not.toThrow();
    }),
    often,
  );
});

test("deeply nested arguments are refused in a request, and dropped from a response", () => {
  const deep = JSON.parse(`${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`) as Json;
  const part = { functionCall: { name: "f", args: deep } };
  const contents = [{ role: "model", parts: [part] }];
  expect(() => geminiConverter.requestToChat({ contents })).toThrow(ServiceError);
  const { choices } = geminiConverter.responseToChat({ candidates: [{ content: { parts: [part] } }] });
  expect(choices).toMatchObject([{ message: { tool_calls: [{ function: { name: "f", arguments: "{}" } }] } }]);
});
