import fc from "fast-check";
import { expect, test } from "vitest";
import { chatCodec, findUploads, isUploadId, type UploadRef } from "#formats";
import { converters, type FormatConverter, type ResolvedUpload } from "../../workers/conversion/index.ts";

const resolveUploads: FormatConverter["resolveUploads"] = (request, resolve) =>
  converters.chat.resolveUploads(request, resolve);

const letters = fc.constantFrom(...Array.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"));
const uploadId = fc.string({ unit: letters, minLength: 1, maxLength: 64 }).map((tail) => `upl_${tail}`);
/** Text that may contain an id but is not one. */
const notAnId = fc
  .oneof(
    fc.string(),
    fc.tuple(fc.string({ minLength: 1 }), uploadId).map((both) => both.join("")),
    fc.tuple(uploadId, fc.constantFrom(" ", "\n", "-", "/", ".png", "é")).map((both) => both.join("")),
    uploadId.map((id) => id.toUpperCase()),
    fc.constantFrom("upl_", "upl", `upl_${"a".repeat(65)}`, "file_abc"),
  )
  .filter((text) => !isUploadId(text));

test.each([
  ["of 24 letters", "upl_abcdefghijklmnopqrstuvwx", true],
  ["in a sentence", "see upl_abcdefghijklmnopqrstuvwx", false],
  ["with a line end", "upl_abcdefghijklmnopqrstuvwx\n", false],
  ["without letters", "upl_", false],
  ["of 65 letters", `upl_${"a".repeat(65)}`, false],
  ["with other letters", "upl_äbcdefghijklmnopqrstuvwx", false],
  ["in a list", ["upl_abc"], false],
  ["that is no text", { id: "upl_abc" }, false],
])("an id %s", (_what, value, isOne) => {
  expect(isUploadId(value)).toBe(isOne);
});

const field = fc.stringMatching(/^[a-z_]{1,8}$/);
const leaf = fc.oneof(uploadId, notAnId, fc.integer(), fc.boolean(), fc.constant(null));
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    leaf,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(field, tie("tree"), { maxKeys: 4 }),
  ),
}));

/** The value at a path such as `input.references[0].file`. */
const follow = (value: unknown, param: string): unknown =>
  param
    .split(/[.[\]]+/)
    .reduce<unknown>((at, step) => (step === "" ? at : (at as Record<string, unknown>)[step]), value);

const countIds = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return isUploadId(value) ? 1 : 0;
  return Object.values(value).reduce<number>((sum, each) => sum + countIds(each), 0);
};

test("every id in an input is found once, with its path", () => {
  fc.assert(
    fc.property(fc.dictionary(field, tree), fc.constantFrom("image" as const, undefined), (input, kind) => {
      const body = { input };
      const refs = findUploads(input, "input", kind);
      expect(refs).toHaveLength(countIds(input));
      expect(new Set(refs.map(({ param }) => param)).size).toBe(refs.length);
      for (const { id, param, kind: foundKind } of refs) {
        expect(follow(body, param)).toBe(id);
        expect(foundKind).toBe(kind);
      }
    }),
  );
});

/** A list in a list in a list. */
const nested = (depth: number, inside: unknown): unknown => {
  let value = inside;
  for (let level = 0; level < depth; level++) value = level % 2 ? [value] : { a: value };
  return value;
};

test("deep nesting is refused by name", () => {
  const deepEnough = 63;
  expect(findUploads(nested(deepEnough, "upl_abc"), "input")).toHaveLength(1);
  fc.assert(
    fc.property(fc.integer({ min: 65, max: 50_000 }), (depth) => {
      expect(() => findUploads(nested(depth, "upl_abc"), "input")).toThrow(
        expect.objectContaining({ code: "invalid_value", status: 400, param: expect.stringMatching(/^input/) }),
      );
    }),
    { numRuns: 20 },
  );
});

const textPart = fc.record({ type: fc.constant("text"), text: fc.oneof(notAnId, uploadId) });
const image = (url: fc.Arbitrary<string>) =>
  fc.oneof(
    fc.record({
      type: fc.constant("image_url"),
      image_url: fc.record({ url, detail: fc.constantFrom("low", "high") }, { requiredKeys: ["url"] }),
    }),
    fc.record({ type: fc.constant("image_url"), image_url: url }),
  );
const audio = (data: fc.Arbitrary<string>) =>
  fc.record({ type: fc.constant("input_audio"), input_audio: fc.record({ data, format: fc.constant("wav") }) });
const file = (data: fc.Arbitrary<string>, id: fc.Arbitrary<string>) =>
  fc.oneof(
    fc.record({ type: fc.constant("file"), file: fc.record({ file_data: data, filename: fc.constant("a.bin") }) }),
    fc.record({ type: fc.constant("file"), file: fc.record({ file_id: id }) }),
  );
const uploadPart = fc.oneof(image(uploadId), audio(uploadId), file(uploadId, uploadId));
const otherPart = fc.oneof(
  textPart,
  image(fc.constantFrom("https://example.com/upl_abc", "data:image/png;base64,iVBORw0KGgo=")),
  audio(fc.constant("UklGRgAAAABXQVZF")),
);
const message = fc.record({
  role: fc.constant("user"),
  content: fc.oneof(notAnId, uploadId, fc.array(fc.oneof(uploadPart, otherPart), { maxLength: 4 })),
  name: uploadId,
});
const request = fc.record({
  model: fc.constant("local/chat"),
  messages: fc.array(message, { minLength: 1, maxLength: 4 }),
  metadata: fc.dictionary(field, uploadId),
});

/** Each upload that would be resolved. */
function resolvedIn(body: Readonly<Record<string, unknown>>): UploadRef[] {
  const refs: UploadRef[] = [];
  resolveUploads(body, (ref) => {
    refs.push(ref);
    return { mime: "", address: "", base64: "" };
  });
  return refs;
}

const bytesOf = ({ id }: { id: string }): ResolvedUpload => ({
  mime: "audio/mpeg",
  address: `data:,${id}`,
  base64: btoa(id),
});

test("each upload in a chat request is replaced, and nothing else changes", () => {
  fc.assert(
    fc.property(request, (body) => {
      const before = structuredClone(body);
      const refs = resolvedIn(body);
      expect(refs).toHaveLength(body.messages.flatMap<unknown>(({ content }) => content).filter(isUploadPart).length);
      const resolved = resolveUploads(body, bytesOf);
      expect(body).toEqual(before);
      expect(resolvedIn(resolved)).toEqual([]);
      expect(resolved["metadata"]).toBe(body.metadata);
      for (const { id, param } of refs) {
        expect(follow(body, param.replace(/image_url\.url$/, "image_url"))).toSatisfy(
          (there) => there === id || (there as { url?: string }).url === id,
        );
      }
      expect(resolved).toEqual({ ...body, messages: body.messages.map(expectedMessage) });
    }),
  );
});

test("the uploads that parsing finds are those that the worker replaces", () => {
  fc.assert(
    fc.property(request, (body) => {
      expect(chatCodec.parse(body, JSON.stringify(body).length).uploads).toEqual(resolvedIn(body));
    }),
  );
});

test("no JSON breaks the search or the replacement", () => {
  const part = fc.oneof(
    fc.record({
      type: fc.constantFrom("image_url", "input_audio", "file"),
      image_url: fc.jsonValue(),
      input_audio: fc.jsonValue(),
      file: fc.jsonValue(),
    }),
    fc.jsonValue(),
  );
  const odd = fc.oneof(
    fc.record({
      messages: fc.oneof(
        fc.jsonValue(),
        fc.array(fc.oneof(fc.record({ content: fc.oneof(fc.jsonValue(), fc.array(part)) }), fc.jsonValue())),
      ),
    }),
    fc.dictionary(field, fc.jsonValue()),
  );
  fc.assert(
    fc.property(odd, (body) => {
      expect(resolvedIn(resolveUploads(body, bytesOf))).toEqual([]);
    }),
  );
});

type Part = Readonly<Record<string, unknown>>;

function isUploadPart(part: unknown): boolean {
  const { type, image_url, input_audio, file } = Object(part) as Part;
  const { data } = Object(input_audio) as Part;
  const { file_id, file_data } = Object(file) as Part;
  if (type === "image_url") return isUploadId(image_url) || isUploadId((Object(image_url) as Part)["url"]);
  return (
    (type === "input_audio" && isUploadId(data)) || (type === "file" && (isUploadId(file_id) || isUploadId(file_data)))
  );
}

const expectedMessage = <Message extends { content: string | readonly unknown[] }>({
  content,
  ...message
}: Message) => ({
  ...message,
  content: typeof content === "string" ? content : content.map(expectedPart),
});

function expectedPart(part: unknown): unknown {
  if (!isUploadPart(part)) return part;
  const { type, image_url, input_audio, file } = part as Record<string, Record<string, string> | string>;
  if (typeof image_url === "string") return { type, image_url: { url: `data:,${image_url}` } };
  if (image_url) return { type, image_url: { ...image_url, url: `data:,${image_url["url"]}` } };
  if (typeof input_audio === "object")
    return { type, input_audio: { data: btoa(input_audio["data"] ?? ""), format: "mp3" } };
  const { file_id, file_data, ...rest } = file as Record<string, string>;
  const id = file_id ?? file_data;
  return { type, file: { filename: id, ...rest, file_data: `data:,${id}` } };
}

test.each([
  ["audio/mpeg", "mp3"],
  ["audio/wav", "wav"],
  ["audio/x-wav", "wav"],
  ["audio/flac", "flac"],
])("audio of the type %s has the format %s", (mime, format) => {
  const part = { type: "input_audio", input_audio: { data: "upl_abc", format: "what the caller says" } };
  const resolved = resolveUploads({ messages: [{ content: [part] }] }, () => ({ mime, address: "", base64: "AAAA" }));
  expect(resolved["messages"]).toEqual([{ content: [{ ...part, input_audio: { data: "AAAA", format } }] }]);
});
