import {
  anthropicModel,
  geminiModel,
  type HostileInput,
  localModel,
  many,
  mebi,
  openaiModel,
  posting,
  type Send,
  send,
  type Target,
} from "./input.ts";
import { type HostileFile, hostileFiles } from "./media-files.ts";

const boundary = "hostile";

/** A form with a file and text fields. */
function formOf(bytes: Buffer, mime: string, fields: Readonly<Record<string, string>>, name = "file"): Buffer {
  const head = (field: string, more = "") =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${field}"${more}\r\n`;
  const texts = Object.entries(fields).map(([field, text]) => `${head(field)}\r\n${text}\r\n`);
  const file = `${head(name, '; filename="a"')}content-type: ${mime}\r\n\r\n`;
  return Buffer.concat([Buffer.from(texts.join("") + file), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]);
}

const form = { "content-type": `multipart/form-data; boundary=${boundary}` };
const chat = "/v1/chat/completions";

/** Every way to send a file. */
const ways: readonly {
  readonly name: string;
  readonly of?: string;
  readonly isShort?: boolean;
  readonly prepare: (file: HostileFile) => (target: Target) => Send | Promise<Send>;
}[] = [
  {
    name: "uploaded",
    prepare: ({ mime, make }) => posting("/v1/uploads", make, { "content-type": mime }),
  },
  {
    name: "transcribed, local",
    of: "audio video",
    isShort: true,
    prepare: ({ mime, make }) =>
      posting("/v1/audio/transcriptions", () => formOf(make(), mime, { model: "local/transcription" }), form),
  },
  {
    name: "edited, local",
    of: "image",
    prepare: ({ mime, make }) =>
      posting("/v1/images/edits", () => formOf(make(), mime, { model: "local/image", prompt: "Hi" }, "image"), form),
  },
  {
    name: "an image of a chat, local",
    of: "image",
    isShort: true,
    prepare: (file) => inlined(localModel, { type: "image_url", image_url: { url: addressOf(file) } }),
  },
  {
    name: "a recording of a chat, local",
    of: "audio",
    prepare: (file) =>
      inlined(localModel, {
        type: "input_audio",
        input_audio: { data: base64Of(file), format: file.mime === "audio/wav" ? "wav" : "mp3" },
      }),
  },
  {
    name: "a file of a chat, local",
    of: "application text",
    isShort: true,
    prepare: (file) => inlined(localModel, { type: "file", file: { filename: "a", file_data: addressOf(file) } }),
  },
  {
    name: "an image of a chat to Anthropic",
    of: "image",
    prepare: (file) => inlined(anthropicModel, { type: "image_url", image_url: { url: addressOf(file) } }),
  },
  {
    name: "a file of a chat to OpenAI",
    of: "application text",
    prepare: (file) => inlined(openaiModel, { type: "file", file: { filename: "a", file_data: addressOf(file) } }),
  },
  {
    name: "inline in Gemini's format",
    prepare: (file) =>
      posting(`/v1beta/models/${geminiModel}:generateContent`, () =>
        JSON.stringify({
          contents: [{ role: "user", parts: [{ inlineData: { mimeType: file.mime, data: base64Of(file) } }] }],
        }),
      ),
  },
  {
    name: "a document, its tokens counted",
    of: "application text",
    prepare: (file) =>
      posting("/v1/messages/count_tokens", () =>
        JSON.stringify({
          model: openaiModel,
          messages: [
            {
              role: "user",
              content: [{ type: "document", source: { type: "base64", media_type: file.mime, data: base64Of(file) } }],
            },
          ],
        }),
      ),
  },
  {
    name: "an upload, transcribed, local",
    of: "audio video",
    prepare: (file) => async (target) => {
      const { text } = await send(target, "/v1/uploads", { body: file.make(), headers: { "content-type": file.mime } });
      const { id } = JSON.parse(text) as { id?: string };
      const body = JSON.stringify({ model: "local/transcription", input: { file: id } });
      return async () => (await send(target, "/v1/media/generations", { body })).status;
    },
  },
];

/** The maximum in a JSON body: base64 takes a third more bytes. */
const inlineBytes = 18 * 1024 * 1024;
const base64Of = ({ make }: HostileFile) => make().subarray(0, inlineBytes).toString("base64");
const addressOf = (file: HostileFile) => `data:${file.mime};base64,${base64Of(file)}`;
const inlined = (model: string, part: object) =>
  posting(chat, () =>
    JSON.stringify({ model, messages: [{ role: "user", content: [{ type: "text", text: "Hi" }, part] }] }),
  );

const formBytes = 20 * mebi;
const headBytes = 15_000;
const partOf = (disposition: string, more = "") =>
  `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n${more}\r\n`;
const filling = (unit: string | Buffer, bytes = formBytes) => Buffer.alloc(bytes, unit as string, "latin1");
const formFile = partOf('name="file"; filename="a"');
const ending = `\r\n--${boundary}--\r\n`;

/** Forms that take a parser as long as possible. */
const forms: readonly (readonly [name: string, make: () => readonly (string | Buffer)[]])[] = [
  ["100,000 parts", () => [filling(`${partOf('name="a"')}a\r\n`), ending]],
  ["100,000 files", () => [filling(`${formFile}a\r\n`), ending]],
  ["30 fields of 128 KB", () => [...many(30, (at) => `${partOf(`name="a${at}"`)}${"%41".repeat(43_000)}\r\n`), ending]],
  ["a preamble of 20 MB", () => [filling("\r\n"), formFile, "a", ending]],
  ["an epilogue of 20 MB", () => [formFile, "a", ending, filling(`\r\n--${boundary}`)]],
  ["almost boundaries", () => [formFile, filling(`\r\n--${boundary.slice(0, -1)}`), ending]],
  ["carriage returns", () => [formFile, filling("\r"), ending]],
  ["line feeds and hyphens", () => [formFile, filling("\r\n--"), ending]],
  ["long names", () => many(30, () => `${partOf(`name="${"a".repeat(headBytes)}"`)}a\r\n`)],
  ["names of backslashes", () => many(30, () => `${partOf(`name="${'\\"'.repeat(headBytes / 2)}"`)}a\r\n`)],
  ["names of quotes", () => many(30, () => `${partOf(`name=${'"'.repeat(headBytes)}`)}a\r\n`)],
  ["names of escapes", () => many(30, () => `${partOf(`name*=utf-8''${"%41".repeat(headBytes / 3)}`)}a\r\n`)],
  ["dispositions of parameters", () => many(30, () => `${partOf(";a=b".repeat(headBytes / 4))}a\r\n`)],
  ["files' paths", () => many(30, () => `${partOf(`name="file"; filename="${"/\\".repeat(headBytes / 2)}"`)}a\r\n`)],
  [
    "30 headers each",
    () => many(30, () => `${partOf('name="a"', many(30, (at) => `a${at}: ${" ".repeat(400)}\r\n`).join(""))}a\r\n`),
  ],
  [
    "types of 15 KB",
    () => many(30, () => `${partOf('name="a"', `content-type: ${";a=b".repeat(headBytes / 4)}\r\n`)}a\r\n`),
  ],
  ["a header of 20 MB", () => [partOf('name="a"', "a: ").trimEnd(), filling("a"), ending]],
  ["headers without an end", () => [partOf('name="a"').trimEnd(), filling("\r\na: b")]],
];

const formInputs: readonly HostileInput[] = forms.flatMap(([name, make]) =>
  ["/v1/uploads", "/v1/audio/transcriptions", "/v1/images/edits"].map(
    (path): HostileInput => ({
      kind: "media",
      name: `a form, ${name}: ${path}`,
      prepare: posting(path, () => Buffer.concat(make().map((each) => Buffer.from(each as string))), form),
    }),
  ),
);

const fileInputs: readonly HostileInput[] = hostileFiles.flatMap((file) =>
  ways
    .filter(({ of }) => of === undefined || of.split(" ").includes(file.mime.split("/")[0] ?? ""))
    .map(
      (way): HostileInput => ({
        kind: "media",
        name: `${file.name}: ${way.name}`,
        isShort: file.isShort && way.isShort === true,
        prepare: (target) => way.prepare(file)(target),
      }),
    ),
);

export const mediaInputs: readonly HostileInput[] = [...fileInputs, ...formInputs];
