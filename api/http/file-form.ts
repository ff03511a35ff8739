import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import type { Request } from "express";
import { requestTimeout, requestTooLarge, unsupportedMediaType } from "#errors";
import type { ByteShare } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import { withSpool } from "#platform/spool";
import { createForm, type FormFile, type FormRules, framingBytes, readForm } from "./form.ts";
import { bytesOf, mediaTypeOf, noDisk } from "./upload-body.ts";

export const formTimeoutMs = 5 * 60_000;

/** Longer than the signature of any file. */
const headBytes = 8 * 1024;

interface SpooledFile extends FormFile {
  /** SHA-256 of the file. */
  readonly hash: string;
  /** The first bytes of the file. */
  readonly head: Buffer;
  readonly body: AsyncIterable<Buffer>;
}

/** The fields and the files of a form, each in the order sent. */
interface FileForm {
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly files: readonly SpooledFile[];
}

interface FormReading {
  readonly rules: FormRules;
  readonly share: ByteShare;
  readonly clock: Clock;
  /** Time from the start of reading a form to its last byte. */
  readonly timeoutMs?: number;
}

/** Passes a form with files to `use`. The files are on disk until it resolves. Throws 400, 408, 413, 415, 503. */
export async function withFileForm<T>(
  req: Request,
  { rules, share, clock, timeoutMs = formTimeoutMs }: FormReading,
  use: (form: FileForm) => Promise<T>,
): Promise<T> {
  if (mediaTypeOf(req) !== "multipart/form-data" || !/^(identity)?$/i.test(req.headers["content-encoding"] ?? ""))
    throw unsupportedMediaType("The file must be sent as multipart/form-data, without a content encoding.");
  if (Number(req.headers["content-length"] ?? 0) > rules.formBytes + framingBytes)
    throw requestTooLarge(rules.formBytes, Object.keys(rules.files)[0]);
  const form = createForm(req.headers["content-type"] ?? "", rules);
  const fields: [string, string][] = [];
  form.on("field", (name, value) => fields.push([name, value]));
  try {
    return await withSpool(noDisk, async (spool) => {
      const spooled: Omit<SpooledFile, keyof FormFile>[] = [];
      let written = 0;
      const take = async (file: Readable) => {
        const start = written;
        const hash = createHash("sha256");
        let head = Buffer.alloc(0);
        for await (const chunk of file as AsyncIterable<Buffer>) {
          written += chunk.length;
          if (!share.resize(written)) throw noDisk(new Error("the budget of temporary bytes is used up"));
          hash.update(chunk);
          if (head.length < headBytes) head = Buffer.concat([head, chunk.subarray(0, headBytes - head.length)]);
          await spool.write(chunk);
        }
        spooled.push({ hash: hash.digest("base64url"), head, body: spool.read(start, written) });
      };
      const files = await readForm(form, rules, inTime(bytesOf(req, clock), clock, timeoutMs), take, clock);
      return use({ fields, files: spooled.map((file, index) => ({ ...file, ...(files[index] as FormFile) })) });
    });
  } finally {
    share.resize(0);
  }
}

/** Throws 408 if the whole body takes longer than `timeoutMs`. */
async function* inTime(bytes: AsyncIterable<Buffer>, clock: Clock, timeoutMs: number): AsyncGenerator<Buffer> {
  const deadline = clock.now() + timeoutMs;
  for await (const chunk of bytes) {
    if (clock.now() > deadline) throw requestTimeout("The form took too long to arrive.");
    yield chunk;
  }
}
