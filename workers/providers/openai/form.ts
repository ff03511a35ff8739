import { randomBytes } from "node:crypto";
import { type InputFile, type JsonObject, UpstreamFailure } from "../provider.ts";

/** All of them are in memory until they are sent. */
const filesLimitBytes = 128 * 1024 * 1024;

/**
 * A `multipart/form-data` body of known length. Lists and objects are written as `image[]` and `chunking_strategy[type]`, like
 * the providers' own clients do. A field that names an upload, or a list of them, carries the bytes, within that field's limit.
 */
export async function formOf(
  fields: JsonObject,
  uploads: ReadonlyMap<string, InputFile>,
  limitBytes: (field: string) => number,
) {
  const entries = [...entriesOf(fields, uploads)];
  checkTotal(entries.flatMap(({ value }) => (typeof value === "string" ? [] : [value])));
  const boundary = `form-${randomBytes(18).toString("base64url")}`;
  const parts: Buffer[] = [];
  for (const [index, { name, field, value }] of entries.entries()) {
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${escaped(name)}"`;
    if (typeof value === "string") parts.push(Buffer.from(`${head}\r\n\r\n${value}\r\n`));
    else {
      const type = value.mime.replace(/[^\w.+/-].*$/s, "");
      const file = `; filename="file-${index}.${extensionOf(type)}"\r\ncontent-type: ${type}\r\n\r\n`;
      parts.push(Buffer.from(head + file), await value.read(limitBytes(field)), Buffer.from("\r\n"));
    }
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`));
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  return {
    headers: { "content-type": `multipart/form-data; boundary=${boundary}`, "content-length": String(bytes) },
    parts,
  };
}

interface Entry {
  /** In the form. */
  readonly name: string;
  /** Of the input. */
  readonly field: string;
  readonly value: string | InputFile;
}

function* entriesOf(fields: JsonObject, uploads: ReadonlyMap<string, InputFile>): Generator<Entry> {
  for (const [field, value] of Object.entries(fields)) {
    for (const [name, each] of flattened(field, value)) {
      const isFile = name === field || name === `${field}[]`;
      yield { name, field, value: (isFile ? uploads.get(each) : undefined) ?? each };
    }
  }
}

function* flattened(name: string, value: unknown): Generator<[name: string, value: string]> {
  if (value === null || value === undefined) return;
  if (Array.isArray(value)) for (const each of value) yield* flattened(`${name}[]`, each);
  else if (typeof value === "object")
    for (const [key, each] of Object.entries(value)) yield* flattened(`${name}[${key}]`, each);
  else yield [name, String(value as string | number | boolean)];
}

function checkTotal(files: readonly InputFile[]): void {
  let bytes = 0;
  for (const file of files) {
    bytes += file.bytes;
    if (bytes > filesLimitBytes)
      throw new UpstreamFailure("refused", `The files together have more than ${filesLimitBytes} bytes.`, {
        param: file.param,
      });
  }
}

/** As browsers escape it, because the caller chose the name. */
const escaped = (name: string) => name.replace(/[\r\n"]/g, (character) => encodeURIComponent(character));

/** Providers detect the format of a recording by its file name. */
const extensionOf = (type: string): string => extensions[type] ?? type.replace(/^.*\/(x-|vnd\.)?/, "");

const extensions: Readonly<Record<string, string>> = {
  "audio/mpeg": "mp3",
  "audio/mp4": "m4a",
  "audio/x-m4a": "m4a",
  "audio/vnd.wave": "wav",
  "audio/opus": "ogg",
  "image/jpeg": "jpg",
  "video/quicktime": "mov",
  "video/x-matroska": "mkv",
};
