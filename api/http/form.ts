import { once } from "node:events";
import type { Readable } from "node:stream";
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import { invalidValue, requestTooLarge } from "#errors";
import type { Clock } from "#platform/clock";

/** For the fields beside the file, and for the boundaries and headers of the parts. */
export const framingBytes = 1024 * 1024;

/** How long an upload may make no progress: the caller sends nothing, or the parser of a form is stuck. */
export const idleTimeoutMs = 60_000;

const limits = { fields: 32, fieldSize: 64 * 1024, files: 2, parts: 34, headerPairs: 32, headerSize: 16 * 1024 };

const brokenForm = () => invalidValue(undefined, "The body is not a complete multipart form.");

/** Throws 400 when the boundary is missing or malformed. */
export function createForm(contentType: string, fileBytes: number): BusboyInstance {
  try {
    return new Busboy({
      headers: { "content-type": contentType },
      limits: { ...limits, fileSize: fileBytes },
      // Some clients send a content type but no file name.
      isPartAFile: (_field, type, name) => name !== undefined || (type !== undefined && type !== "text/plain"),
    });
  } catch {
    throw invalidValue("content-type", "multipart/form-data needs a boundary.");
  }
}

interface File {
  readonly stream: BusboyFileStream;
  readonly taken: Promise<void>;
}

/**
 * Reads a form with one file, in the field `file`, to the end of the body. `take` consumes the file and sets the pace: nothing
 * is buffered here. Returns the file's length. Throws the first error.
 */
export async function readForm(
  form: BusboyInstance,
  fileBytes: number,
  body: AsyncIterable<Buffer>,
  take: (file: Readable) => Promise<void>,
  clock: Clock,
): Promise<number> {
  const stopped = new AbortController();
  const { signal } = stopped;
  const stop = (error: unknown) => stopped.abort(error);
  let file: File | undefined;

  form.on("file", (field, stream) => {
    // A malformed form emits errors after reading has stopped; without a listener one would end the process.
    stream.on("error", () => {});
    if (field !== "file" || file) {
      stream.resume();
      return stop(invalidValue("file", "The form must hold one file, in the field 'file'."));
    }
    stream.on("limit", () => stop(requestTooLarge(fileBytes, "file")));
    file = { stream, taken: take(stream) };
    file.taken.catch(stop);
  });
  form.on("field", (field, _value, _nameTruncated, truncated) => {
    if (field === "file") stop(invalidValue("file", "The field 'file' holds no file: it needs a file name."));
    else if (truncated) stop(invalidValue(field, `The field is over the limit of ${limits.fieldSize} bytes.`));
  });
  const tooMany = () => stop(invalidValue(undefined, "The form has too many parts."));
  form.on("partsLimit", tooMany).on("fieldsLimit", tooMany).on("filesLimit", tooMany);
  form.on("error", () => stop(brokenForm()));
  // Emitted at the closing boundary, which may be long before the end of the body.
  const finished = once(form, "finish", { signal });
  finished.catch(() => {});
  // On some malformed forms the parser never drains and never finishes.
  const withinIdleTimeout = async (event: Promise<unknown>) => {
    const cancel = clock.after(idleTimeoutMs, () => stop(brokenForm()));
    await event.finally(cancel);
  };

  try {
    let received = 0;
    for await (const chunk of body) {
      received += chunk.length;
      if (received > fileBytes + framingBytes) stop(requestTooLarge(fileBytes, "file"));
      signal.throwIfAborted();
      if (!form.write(chunk)) await withinIdleTimeout(once(form, "drain", { signal }));
      signal.throwIfAborted();
    }
    form.end();
    await withinIdleTimeout(finished);
    if (!file) throw invalidValue("file", "The form has no file in the field 'file'.");
    await file.taken;
    if (file.stream.bytesRead === 0) throw invalidValue("file", "The file is empty.");
    return file.stream.bytesRead;
  } catch (error) {
    stop(error);
    file?.stream.destroy(signal.reason as Error);
    await file?.taken.catch(() => {});
    throw signal.reason;
  }
}
