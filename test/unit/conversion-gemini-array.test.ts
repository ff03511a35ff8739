import { expect, test } from "vitest";
import { ServiceError } from "#errors";
import { geminiCodec } from "#formats";
import { geminiArrayConverter } from "../../workers/conversion/gemini/index.ts";
import { type Answer, assemble, estimate, identity, type Json } from "../support/formats-gemini-assemble.ts";

const chunk = (delta: Json, fields: Json = {}): Json => ({ choices: [{ index: 0, delta, ...fields }] });
const ended: Json = chunk({}, { finish_reason: "stop" });

test("without alt=sse the stream is one JSON array", () => {
  const stream = geminiArrayConverter.streamFromChat(identity, {});
  const text = [chunk({ content: "Hel" }), chunk({ content: "lo" }), ended].map((each) => stream.write(each)).join("");
  const all = JSON.parse(text + stream.end(estimate)) as Answer[];
  expect(all).toHaveLength(3);
  expect(assemble(all)).toMatchObject({ candidates: [{ parts: [{ text: "Hello" }], finishReason: "STOP" }] });
  expect(JSON.parse(geminiArrayConverter.streamFromChat(identity, {}).end(estimate))).toHaveLength(1);
  const native = geminiArrayConverter.native.stream(identity);
  expect(JSON.parse(native.write({ candidates: [] }) + native.write({ a: 1 }) + native.end(estimate))).toEqual([
    { candidates: [] },
    { a: 1 },
  ]);
  expect(geminiArrayConverter.native.stream(identity).end(estimate)).toBe("[]");
});

test("a failure of a stream without alt=sse is the last element of the array", () => {
  const error = new ServiceError({ code: "upstream_error", message: "No." });
  const body = { error: { code: 502, message: "No.", status: "INTERNAL" } };
  const array = geminiCodec("m", true, false);
  const begun = (writes: string[], wasBegun: boolean): unknown =>
    JSON.parse([array.ping, ...writes, array.ping, array.streamError(error, "req_1", wasBegun)].join(""));
  expect(begun([], false)).toEqual([body]);
  const first = geminiArrayConverter.streamFromChat(identity, {}).write(chunk({ content: "Hi" }));
  expect(begun([first], true)).toEqual([expect.objectContaining({ responseId: identity.id }), body]);
  expect(array.streamType).toMatch(/^application\/json/);
});
