import { describe, expect, test } from "vitest";
import { bodyOf, list, nested } from "../support/json-bodies.ts";
import { faces, refusalIn, refusalOf, withRelayedModel } from "../support/native-formats.ts";
import { type Refusal, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const mebi = 1024 * 1024;

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
