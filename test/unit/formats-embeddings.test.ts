import fc from "fast-check";
import { expect, test } from "vitest";
import { embeddingsCodec } from "#formats";
import { embeddingsOf, embeddingText } from "../../workers/handlers/embeddings.ts";

const request = (fields: object = {}) => ({ model: "local/embed", input: "hi", ...fields });
const parse = (body: unknown) => embeddingsCodec.parse(body, 100);

test.each([
  ["8193 tokens", Array(8_193).fill(1)],
  ["257 lists of tokens", Array(257).fill([1])],
  ["257 texts", Array(257).fill("a")],
])("refuses %s", (_, input) => {
  expect(() => parse(request({ input }))).toThrow(expect.objectContaining({ code: "invalid_value", param: "input" }));
});

test("measures 256 texts and 8192 tokens", () => {
  expect(parse(request({ input: Array(256).fill("a") })).size.messages).toBe(256);
  expect(parse(request({ input: [[1, 2], [3], Array(8_192).fill(0)] }))).toMatchObject({
    size: { inputBytes: 8_195, messages: 3, parts: [], choices: 1 },
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
const one = (embedding: unknown, fields: { encoding_format?: string } = {}) =>
  JSON.parse(embeddingText(embedding, fields.encoding_format)) as unknown;

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
      // JSON has no negative zero.
      expect(new Float32Array(one(encoded) as number[])).toEqual(vector.map((number) => number + 0));
    }),
  );
});

test("reads embeddings in the order of the input", () => {
  const { data, ...rest } = answer([1], [2], [3]);
  const shuffled = { ...rest, data: [data[2], data[0], data[1]] };
  expect(embeddingsOf(shuffled, request({ input: ["a", "b", "c"] }))).toEqual({
    embeddings: [[1], [2], [3]],
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
  ["a number that is infinite", JSON.parse('{"data":[{"index":0,"embedding":[1e999]}]}'), "a"],
  ["an embedding that is an object", answer({ 0: 1 }), "a"],
])("refuses an answer with %s", (_what, response, input) => {
  const read = () =>
    embeddingsOf(response, request({ input })).embeddings.map((embedding) => embeddingText(embedding, "float"));
  expect(read).toThrow(expect.objectContaining({ code: "upstream_error" }));
});
