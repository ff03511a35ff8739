import { invalidValue } from "#errors";
import { type Loose, object } from "./loose.ts";
import { audioFormat } from "./media.ts";
import type { UploadRef } from "./types.ts";

const uploadId = /^upl_[0-9A-Za-z]{1,64}$/;
/** Deeper than any request that means something, and shallow enough for the stack. */
const deepest = 64;

export const isUploadId = (value: unknown): value is string => typeof value === "string" && uploadId.test(value);

/** More than any request has, and few enough not to hold up everyone else. */
const mostValues = 100_000;
/** More than any model takes, and few enough to look up at once. */
const mostUploads = 100;

export function addUpload(to: UploadRef[], ref: UploadRef): void {
  if (to.length === mostUploads)
    throw invalidValue(ref.param, `${ref.param}: a request names at most ${mostUploads} uploads.`);
  to.push(ref);
}

/** Every string that is an upload's id, with the path to it; not in the fields of `besides`. */
export function findUploads(
  value: unknown,
  at: string,
  kind?: UploadRef["kind"],
  besides: readonly string[] = [],
): UploadRef[] {
  const found: UploadRef[] = [];
  let values = 0;
  const visit = (each: unknown, param: string, depth: number): void => {
    if (++values > mostValues)
      throw invalidValue(at || undefined, `${at || "The body"} has more than ${mostValues} values.`);
    if (isUploadId(each)) return addUpload(found, { id: each, param, kind });
    if (typeof each !== "object" || each === null) return;
    if (depth === deepest) throw invalidValue(param, `${param}: is nested too deep.`);
    if (Array.isArray(each)) return each.forEach((item, i) => visit(item, `${param}[${i}]`, depth + 1));
    // No list of the fields: there may be a million of them.
    for (const field in each) {
      if (depth === 0 && besides.includes(field)) continue;
      visit((each as Loose)[field], param ? `${param}.${field}` : field, depth + 1);
    }
  };
  visit(value, at, 0);
  return found;
}

/** The upload that a part of a chat message names, in the field where such a part has its content. */
export function partUpload(part: Loose, at: string): UploadRef | undefined {
  switch (part["type"]) {
    case "image_url": {
      const holder = part["image_url"];
      const id = typeof holder === "string" ? holder : object(holder)["url"];
      return isUploadId(id) ? { id, param: `${at}.image_url.url`, kind: "image" } : undefined;
    }
    case "input_audio": {
      const id = object(part["input_audio"])["data"];
      return isUploadId(id) ? { id, param: `${at}.input_audio.data`, kind: "audio" } : undefined;
    }
    case "file": {
      const { file_id, file_data } = object(part["file"]);
      if (isUploadId(file_id)) return { id: file_id, param: `${at}.file.file_id` };
      return isUploadId(file_data) ? { id: file_data, param: `${at}.file.file_data` } : undefined;
    }
    default:
      return undefined;
  }
}

const messagesOf = ({ messages }: Loose): readonly unknown[] => (Array.isArray(messages) ? messages : []);

/** An upload as it goes to a maker: by an address, which may be a data address, or as base64. */
export interface Placed {
  readonly mime: string;
  readonly address: string;
  readonly base64: string;
}

/** The request with each upload's content in the place of its id. */
export function placeChatUploads(request: Loose, placed: (ref: UploadRef) => Placed): Loose {
  const messages = messagesOf(request).map((message, m) => {
    const { content } = object(message);
    if (!Array.isArray(content)) return message;
    const parts = content.map((part: unknown, c) => placePart(object(part), `messages[${m}].content[${c}]`, placed));
    return { ...object(message), content: parts };
  });
  return { ...request, messages };
}

function placePart(part: Loose, at: string, placed: (ref: UploadRef) => Placed): Loose {
  const ref = partUpload(part, at);
  if (!ref) return part;
  const { mime, address, base64 } = placed(ref);
  switch (part["type"]) {
    case "image_url":
      return { ...part, image_url: { ...object(part["image_url"]), url: address } };
    case "input_audio":
      return { ...part, input_audio: { ...object(part["input_audio"]), data: base64, format: audioFormat(mime) } };
    default: {
      const { file_id: _, file_data: __, ...file } = object(part["file"]);
      return { ...part, file: { filename: ref.id, ...file, file_data: address } };
    }
  }
}
