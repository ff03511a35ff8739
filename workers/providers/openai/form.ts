import { randomBytes } from "node:crypto";
import type { JsonObject } from "#json";
import { type InputFile, refusal } from "../provider.ts";

/** All files of a request are in memory until they are sent. */
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
  const entries = Object.entries(fields).flatMap(([field, value]) => [...entriesOf(field, field, value)]);
  const files = new Map<Entry, InputFile>();
  let filesBytes = 0;
  for (const entry of entries) {
    const isFile = entry.name === entry.field || entry.name === `${entry.field}[]`;
    const file = isFile ? uploads.get(entry.text) : undefined;
    if (!file) continue;
    files.set(entry, file);
    filesBytes += file.bytes;
    if (filesBytes > filesLimitBytes)
      throw refusal(`The files together have more than ${filesLimitBytes} bytes.`, file.param);
  }
  const boundary = newBoundary();
  const parts: Buffer[] = [];
  for (const [index, entry] of entries.entries()) {
    const { name, field, text } = entry;
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${escaped(name)}"`;
    const file = files.get(entry);
    if (file) {
      const [type = ""] = file.mime.split(/[^\w.+/-]/, 1);
      const about = `; filename="file-${index}.${extensionOf(type)}"\r\ncontent-type: ${type}\r\n\r\n`;
      parts.push(Buffer.from(head + about), await file.read(limitBytes(field)), Buffer.from("\r\n"));
    } else parts.push(Buffer.from(`${head}\r\n\r\n${text}\r\n`));
  }
  return closeForm(boundary, parts);
}

export const newBoundary = (): string => `form-${randomBytes(18).toString("base64url")}`;

/** The whole body of a form, of known length. */
export function closeForm(boundary: string, open: readonly Buffer[]) {
  const parts = [...open, Buffer.from(`--${boundary}--\r\n`)];
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  return {
    headers: { "content-type": `multipart/form-data; boundary=${boundary}`, "content-length": String(bytes) },
    parts,
  };
}

interface Entry {
  /** The name in the form. */
  readonly name: string;
  /** The field of the input. */
  readonly field: string;
  readonly text: string;
}

function* entriesOf(field: string, name: string, value: unknown): Generator<Entry> {
  if (value === null || value === undefined) return;
  if (Array.isArray(value)) for (const each of value) yield* entriesOf(field, `${name}[]`, each);
  else if (typeof value === "object")
    for (const [key, each] of Object.entries(value)) yield* entriesOf(field, `${name}[${key}]`, each);
  else yield { name, field, text: String(value as string | number | boolean) };
}

/** Escapes like browsers do, because the caller chose the name. */
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
