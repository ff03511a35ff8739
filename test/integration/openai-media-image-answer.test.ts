import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { readImages } from "../../workers/providers/openai/read-images.ts";
import { errorOf } from "../support/upstreams-setup.ts";

async function* pieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const read = async (text: string, size = text.length) => {
  const { answer, images } = await readImages(pieces(Buffer.from(text), size), () => {});
  return { answer, images: images.map((parts) => Buffer.concat(parts)) };
};

test("images and their surroundings are the same wherever the answer is split", async () => {
  const [first, second] = [Buffer.from("fb+/~~ÿÿ>>??", "latin1"), randomBytes(31)];
  // Encode base64 as .NET, PHP and MIME encoders do.
  const escaped = first.toString("base64").replaceAll("+", "\\u002B").replaceAll("/", "\\/").replace(/^..../, "$&\\n");
  const revised_prompt = 'grüße "b64_json": "AAAA" \\" 猫';
  const text = `{"created": 1, "data": [{"b64_json" :\n "${escaped}", "revised_prompt": ${JSON.stringify(revised_prompt)}},
    {"b64_json":null},{"b64_json":""},{"b64_json":"${second.toString("base64")}"}], "usage": {"b64_json": 7}}`;
  for (let size = 1; size <= text.length; size++) {
    const { answer, images } = await read(text, size);
    expect({ size, answer, images }).toEqual({
      size,
      answer: {
        created: 1,
        data: [{ b64_json: "0", revised_prompt }, { b64_json: null }, { b64_json: "1" }, { b64_json: "2" }],
        usage: { b64_json: 7 },
      },
      images: [first, Buffer.alloc(0), second],
    });
  }
});

async function* endless(part: string) {
  for (;;) yield Buffer.from(part);
}

test.each([
  ["an image", '{"data": [{"b64_json": "', "A".repeat(1024 * 1024)],
  ["anything else", '{"data": "', "A".repeat(64 * 1024)],
])("an endless answer is refused: %s", async (_, head, part) => {
  let bytes = 0;
  const body = async function* () {
    yield Buffer.from(head);
    for await (const each of endless(part)) {
      bytes += each.length;
      yield each;
    }
  };
  expect(await errorOf(readImages(body(), () => {}))).toMatchObject({
    kind: "unavailable",
    message: expect.stringMatching(/too large/) as string,
  });
  expect(bytes).toBeLessThanOrEqual(130 * 1024 * 1024);
});

test.each(["[]", "7", "", '{"b64_json": "AA', '{"b64_json": "AA\\x"}', '{"b64_json": "AA" "b"}'])(
  "%j is no answer",
  async (text) => {
    expect(await errorOf(read(text, 1))).toMatchObject({ kind: "unavailable" });
  },
);
