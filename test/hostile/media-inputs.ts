import {
  anthropicModel,
  geminiModel,
  type HostileInput,
  localModel,
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

/** Every way in which a file comes in. */
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

/** A JSON body holds no more: base64 takes a third more bytes. */
const inlineBytes = 18 * 1024 * 1024;
const base64Of = ({ make }: HostileFile) => make().subarray(0, inlineBytes).toString("base64");
const addressOf = (file: HostileFile) => `data:${file.mime};base64,${base64Of(file)}`;
const inlined = (model: string, part: object) =>
  posting(chat, () =>
    JSON.stringify({ model, messages: [{ role: "user", content: [{ type: "text", text: "Hi" }, part] }] }),
  );

export const mediaInputs: readonly HostileInput[] = hostileFiles.flatMap((file) =>
  ways
    .filter(({ of }) => of === undefined || of.split(" ").includes(file.mime.split("/")[0] ?? ""))
    .map(
      (way): HostileInput => ({
        kind: "media",
        name: `${file.name}: ${way.name}`,
        isShort: file.isShort === true && way.isShort === true,
        prepare: (target) => way.prepare(file)(target),
      }),
    ),
);
