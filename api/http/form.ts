import { once } from "node:events";
import type { Readable } from "node:stream";
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import { invalidValue, requestTooLarge } from "#errors";
import type { Clock } from "#platform/clock";

/** Fields beside the file, and all that frames it. */
export const framingBytes = 1024 * 1024;

const limits = { fields: 32, fieldSize: 64 * 1024, files: 2, parts: 34, headerPairs: 32, headerSize: 16 * 1024 };

const stuckMs = 60_000;

const brokenForm = () => invalidValue(undefined, "The body is not a whole multipart form.");

/** Throws 400 when the boundary is missing or not one. */
export function createForm(contentType: string, fileBytes: number): BusboyInstance {
  try {
    return new Busboy({
      headers: { "content-type": contentType },
      limits: { ...limits, fileSize: fileBytes },
      // Some clients name no file, but its type.
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
 * Reads a form that holds one file, in the field `file`, up to the end of the body. `take` gets the file and keeps the
 * pace: nothing is gathered here. Returns the file's length. Reading ends with the first thing that is wrong.
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
    // An error that nobody listens to would end the process, and a broken form makes some after we have stopped.
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
  // It may come with the closing boundary, long before the body has ended.
  const finished = once(form, "finish", { signal });
  finished.catch(() => {});
  // After some broken forms the parser takes what it gets and never says so.
  const soon = async (event: Promise<unknown>) => {
    const cancel = clock.after(stuckMs, () => stop(brokenForm()));
    await event.finally(cancel);
  };

  try {
    let received = 0;
    for await (const chunk of body) {
      received += chunk.length;
      if (received > fileBytes + framingBytes) stop(requestTooLarge(fileBytes, "file"));
      signal.throwIfAborted();
      if (!form.write(chunk)) await soon(once(form, "drain", { signal }));
      signal.throwIfAborted();
    }
    form.end();
    await soon(finished);
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
