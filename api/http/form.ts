import { once } from "node:events";
import type { Readable } from "node:stream";
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import { invalidValue, requestTooLarge } from "#errors";
import type { Clock } from "#platform/clock";

export interface FormRules {
  /** Limit of one file. */
  readonly fileBytes: number;
  /** Limit of all files together. */
  readonly formBytes: number;
  /**
   * The number of files that each field may hold. A field for several may also be sent as `field[]`. The first field is
   * required.
   */
  readonly files: Readonly<Record<string, number>>;
}

/** A file of a form that was read to its end. */
export interface FormFile {
  readonly field: string;
  /** The name that errors use: `image`, or `image[1]` in a list. */
  readonly param: string;
  /** The file name that the caller gave, without folders. */
  readonly name: string | undefined;
  readonly bytes: number;
}

/** Allowance for the other fields, and for the boundaries and headers of the parts. */
export const framingBytes = 1024 * 1024;

/** Limit of the time without progress, when the caller sends nothing or the form parser is stuck. */
export const idleTimeoutMs = 60_000;

/** A field can hold the longest prompt of any model: 32,000 characters. */
const limits = { fields: 32, fieldSize: 128 * 1024, headerPairs: 32, headerSize: 16 * 1024 };

const brokenForm = () => invalidValue(undefined, "The body is not a complete multipart form.");

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

/** Throws 400 when the boundary is missing or malformed. */
export function createForm(contentType: string, { fileBytes, files }: Omit<FormRules, "formBytes">): BusboyInstance {
  const maxFiles = sum(Object.values(files)) + 1;
  try {
    return new Busboy({
      headers: { "content-type": contentType },
      limits: { ...limits, fileSize: fileBytes, files: maxFiles, parts: limits.fields + maxFiles },
      // Some clients send a content type but no file name.
      isPartAFile: (_field, type, name) => name !== undefined || (type !== undefined && type !== "text/plain"),
    });
  } catch {
    throw invalidValue("content-type", "multipart/form-data needs a boundary.");
  }
}

/**
 * Reads a form to the end of the body. `take` consumes the files one after another and sets the pace: nothing is buffered
 * here. Returns the files in the order sent. Throws the first error.
 */
export async function readForm(
  form: BusboyInstance,
  { fileBytes, formBytes, files: allowed }: FormRules,
  body: AsyncIterable<Buffer>,
  take: (file: Readable) => Promise<void>,
  clock: Clock,
): Promise<readonly FormFile[]> {
  const [required = ""] = Object.keys(allowed);
  const stopped = new AbortController();
  const { signal } = stopped;
  const stop = (error: unknown) => stopped.abort(error);
  const files: (Omit<FormFile, "bytes"> & { readonly stream: BusboyFileStream })[] = [];
  let taken = Promise.resolve();

  const maxOf = (field: string) => (Object.hasOwn(allowed, field) ? (allowed[field] ?? 0) : 0);
  /** Returns the field that a part belongs to, and how many files it may hold. */
  const placeOf = (name: string) => {
    const listed = /^(.+)\[\]$/s.exec(name)?.[1];
    const field = listed !== undefined && maxOf(listed) > 1 ? listed : name;
    return { field, max: maxOf(field) };
  };

  form.on("file", (name, stream, filename: string | undefined) => {
    // A malformed form emits errors after reading has stopped; without a listener one would end the process.
    stream.on("error", () => {});
    const { field, max } = placeOf(name);
    const index = files.filter((each) => each.field === field).length;
    if (index >= max) {
      stream.resume();
      return stop(misplaced(max > 0 ? field : required, allowed));
    }
    const param = max > 1 && (index > 0 || name !== field) ? `${field}[${index}]` : field;
    stream.on("limit", () => stop(requestTooLarge(fileBytes, param)));
    files.push({ field, param, name: filename, stream });
    taken = taken.then(() => take(stream));
    taken.catch(stop);
  });
  form.on("field", (name, _value, _nameTruncated, truncated) => {
    const { field, max } = placeOf(name);
    if (max > 0) stop(invalidValue(field, `The field '${field}' contains no file: a file needs a file name.`));
    else if (truncated) stop(invalidValue(name, `The field is over the limit of ${limits.fieldSize} bytes.`));
  });
  const tooMany = () => stop(invalidValue(undefined, "The form has too many parts."));
  form.on("partsLimit", tooMany).on("fieldsLimit", tooMany).on("filesLimit", tooMany);
  form.on("error", () => stop(brokenForm()));
  // `finish` is emitted at the closing boundary, which may be long before the end of the body.
  const finished = once(form, "finish", { signal });
  finished.catch(() => {});
  // The parser never drains or finishes on some malformed forms.
  const withinIdleTimeout = async (event: Promise<unknown>) => {
    const cancel = clock.after(idleTimeoutMs, () => stop(brokenForm()));
    await event.finally(cancel);
  };

  try {
    let received = 0;
    for await (const chunk of body) {
      received += chunk.length;
      if (received > formBytes + framingBytes) stop(requestTooLarge(formBytes, required));
      signal.throwIfAborted();
      if (!form.write(chunk)) await withinIdleTimeout(once(form, "drain", { signal }));
      signal.throwIfAborted();
    }
    form.end();
    await withinIdleTimeout(finished);
    if (!files.some(({ field }) => field === required))
      throw invalidValue(required, `The form has no file in the field '${required}'.`);
    await taken;
    return files.map(({ stream, ...file }) => {
      if (stream.bytesRead === 0) throw invalidValue(file.param, `${file.param}: The file is empty.`);
      return { ...file, bytes: stream.bytesRead };
    });
  } catch (error) {
    stop(error);
    for (const { stream } of files) stream.destroy(signal.reason as Error);
    await taken.catch(() => {});
    throw signal.reason;
  }
}

function misplaced(field: string, allowed: FormRules["files"]) {
  const expected = Object.entries(allowed).map(([name, max]) =>
    max === 1 ? `one file in the field '${name}'` : `at most ${max} files in the field '${name}'`,
  );
  return invalidValue(field, `The form may contain ${expected.join(" and ")}.`);
}
