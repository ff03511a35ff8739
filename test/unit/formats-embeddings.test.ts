import fc from "fast-check";
import { expect, test } from "vitest";
import { ServiceError } from "#errors";
import { embeddingsCodec } from "#formats";
import { completeEmbeddings } from "../../workers/handlers/embeddings.ts";

const request = (fields: object = {}) => ({ model: "local/embed", input: "hi", ...fields });
const parse = (body: unknown) => embeddingsCodec.parse(body, 100);

test.each<[what: string, body: unknown, param: string | undefined]>([
  ["no object", 5, undefined],
  ["no model", { input: "hi" }, "model"],
  ["no input", { model: "local/embed" }, "input"],
  ["an empty text", request({ input: "" }), "input"],
  ["an empty list", request({ input: [] }), "input"],
  ["an empty text in a list", request({ input: ["a", ""] }), "input[1]"],
  ["a token among texts", request({ input: ["a", 1] }), "input[1]"],
  ["a text among tokens", request({ input: [1, "a"] }), "input"],
  ["a token with a fraction", request({ input: [1.5] }), "input"],
  ["a token below 0", request({ input: [[1], [2, -1]] }), "input[1]"],
  ["no tokens", request({ input: [[1], []] }), "input[1]"],
  ["a text among lists of tokens", request({ input: [[1], "a"] }), "input[1]"],
  ["8193 tokens", request({ input: Array(8_193).fill(1) }), "input"],
  ["257 lists of tokens", request({ input: Array(257).fill([1]) }), "input"],
  ["257 texts", request({ input: Array(257).fill("a") }), "input"],
  ["an unknown encoding", request({ encoding_format: "int8" }), "encoding_format"],
  ["no dimensions", request({ dimensions: 0 }), "dimensions"],
  ["dimensions with a fraction", request({ dimensions: 1.5 }), "dimensions"],
])("refuses %s, and names the field", (_what, body, param) => {
  expect(() => parse(body)).toThrow(expect.objectContaining({ code: "invalid_value", param }));
});

test("measures a text and 256 texts", () => {
  expect(parse(request())).toEqual({
    model: "local/embed",
    stream: false,
    size: { inputBytes: 100, messages: 1, parts: [], choices: 1 },
    textBytes: 2,
    features: new Map(),
    uploads: [],
  });
  expect(parse(request({ input: ["é", "abc"] })).textBytes).toBe(5);
  expect(parse(request({ input: Array(256).fill("a") })).size.messages).toBe(256);
});

test("measures tokens by their number", () => {
  const size = { parts: [], choices: 1 };
  expect(parse(request({ input: [1, 2, 99_999] }))).toMatchObject({
    size: { ...size, inputBytes: 3, messages: 1 },
    textBytes: 12,
  });
  expect(parse(request({ input: [[1, 2], [3], Array(8_192).fill(0)] }))).toMatchObject({
    size: { ...size, inputBytes: 8_195, messages: 3 },
    textBytes: 4 * 8_195,
  });
});

const answer = (...embeddings: unknown[]) => ({
  object: "list",
  data: embeddings.map((embedding, index) => ({ object: "embedding", index, embedding })),
  model: "native",
  usage: { prompt_tokens: 2, total_tokens: 2 },
});
const base64 = (numbers: readonly number[]) => Buffer.from(new Float32Array(numbers).buffer).toString("base64");
const one = (embedding: unknown, fields: object = {}) =>
  completeEmbeddings(answer(embedding), request(fields), "local/embed").data[0]?.embedding;

test("responds in the requested encoding, whatever the provider sends", () => {
  const numbers = [0.5, -2, 1024];
  expect(one(numbers)).toEqual(numbers);
  expect(one(base64(numbers), { encoding_format: "float" })).toEqual(numbers);
  expect(one(numbers, { encoding_format: "base64" })).toBe(base64(numbers));
  expect(one(base64(numbers), { encoding_format: "base64" })).toBe(base64(numbers));
});

test("encodes and decodes any vector of 32-bit numbers without loss", () => {
  fc.assert(
    fc.property(fc.float32Array({ noNaN: true, noDefaultInfinity: true, minLength: 1 }), (vector) => {
      const encoded = one([...vector], { encoding_format: "base64" });
      expect(new Float32Array(one(encoded) as number[])).toEqual(vector);
    }),
  );
});

test("responds with our model id, in the order of the input", () => {
  const { data, ...rest } = answer([1], [2], [3]);
  const shuffled = { ...rest, data: [data[2], data[0], data[1]] };
  expect(completeEmbeddings(shuffled, request({ input: ["a", "b", "c"] }), "local/embed")).toEqual({
    object: "list",
    model: "local/embed",
    data,
    usage: rest.usage,
  });
});

test.each<[what: string, response: unknown, input: unknown]>([
  ["no object", "oops", "a"],
  ["no data", {}, "a"],
  ["too few", answer([1]), ["a", "b"]],
  ["too many", answer([1], [2]), "a"],
  ["one index twice", { data: [answer([1]).data[0], answer([2]).data[0]] }, ["a", "b"]],
  ["an embedding that holds a text", answer([1, "x"]), "a"],
])("refuses an answer with %s", (_what, response, input) => {
  expect(() => completeEmbeddings(response, request({ input }), "local/embed")).toThrow(
    expect.objectContaining({ code: "upstream_error" }),
  );
});

test("renders errors in the common shape", () => {
  const error = new ServiceError({ code: "model_not_found", message: "none", param: "model" });
  expect(JSON.parse(embeddingsCodec.error(error, "req_1"))).toEqual({
    error: { message: "none", type: "not_found_error", code: "model_not_found", param: "model" },
    request_id: "req_1",
  });
});
