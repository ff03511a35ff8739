import { pipeline, Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { ServiceError } from "#errors";
import type { JsonObject } from "#json";
import { type Clock, sleep } from "#platform/clock";
import type { HttpAnswer } from "#platform/http";
import { type GenerationCall, shownInLog, type UpstreamCall, UpstreamFailure } from "../provider.ts";
import { joined, textOf } from "./blocks.ts";
import { failureInside } from "./failures.ts";
import { parseAnswer } from "./untrusted-json.ts";

export const errorLimitBytes = 64 * 1024;

/** The bytes of a body, its text, its value and what becomes of it are in memory together. */
const answerCopies = 4;
/** Memory for fewer bytes is not reserved. */
const smallBytes = 64 * 1024;

/** The memory that an answer of this length takes. */
export const answerMemory = (bytes: number): number => (bytes > smallBytes ? answerCopies * bytes : 0);

/** Bytes that are copied at once. */
const blockBytes = 256 * 1024;

/** Reads the whole body, in blocks. Memory for it is reserved as it arrives. */
export async function readBody(
  answer: HttpAnswer,
  limitBytes: number,
  { signal, reserveMemory }: Pick<UpstreamCall, "signal"> & Partial<Pick<UpstreamCall, "reserveMemory">>,
): Promise<readonly Buffer[]> {
  const blocks: Buffer[] = [];
  let parts: Buffer[] = [];
  let [bytes, bytesInBlocks] = [0, 0];
  try {
    for await (const part of decompressed(answer)) {
      const before = answerMemory(bytes);
      bytes += part.length;
      if (bytes > limitBytes) throw new UpstreamFailure("unavailable", `an answer over ${limitBytes} bytes`);
      reserveMemory?.(answerMemory(bytes) - before);
      parts.push(part);
      if (bytes - bytesInBlocks < blockBytes) continue;
      blocks.push(joined(parts));
      parts = [];
      bytesInBlocks = bytes;
    }
  } catch (error) {
    throwFailure(error, signal);
  }
  return parts.length === 0 ? blocks : [...blocks, joined(parts)];
}

export const readText = async (answer: HttpAnswer, limitBytes: number, signal: AbortSignal): Promise<string> =>
  textOf(await readBody(answer, limitBytes, { signal }));

const decoders: Readonly<Record<string, () => NodeJS.ReadWriteStream>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** Requests ask for no compression, but some proxies compress nevertheless. */
export function decompressed({ headers, body }: HttpAnswer): AsyncIterable<Buffer> {
  const encoding = headers["content-encoding"]?.toLowerCase() ?? "identity";
  if (encoding === "identity" || encoding === "") return body;
  const decoder = decoders[encoding];
  if (!decoder) throw new UpstreamFailure("unavailable", `an answer in the encoding ${encoding.slice(0, 40)}`);
  // Errors are read from the decoder itself.
  return pipeline(Readable.from(body), decoder(), () => {}) as unknown as AsyncIterable<Buffer>;
}

/** Throws what a provider may throw: the signal's reason, a ServiceError, or else an UpstreamFailure. */
export function throwFailure(error: unknown, signal: AbortSignal): never {
  if (signal.aborted) throw signal.reason;
  if (error instanceof UpstreamFailure || error instanceof ServiceError) throw error;
  const { code, message } = error as NodeJS.ErrnoException;
  throw new UpstreamFailure("unavailable", code ?? message, { cause: error });
}

/** Stores the file that an answer consists of, as it arrives. */
export async function storeAnswer(
  { clock }: { readonly clock: Clock },
  call: GenerationCall,
  answer: HttpAnswer,
  about?: JsonObject,
): Promise<void> {
  const type = answer.headers["content-type"] ?? "";
  if (/^application\/([\w.-]+\+)?json\b/i.test(type))
    throw failureInside(parseAnswer(await readText(answer, errorLimitBytes, call.signal)), clock);
  if (/^text\//i.test(type)) {
    await answer.body.return?.();
    throw new UpstreamFailure("unavailable", "an answer with text where a file is expected");
  }
  // Uses the iterator directly: its `return` ends a pending read, for which a generator around it would wait.
  const source = decompressed(answer)[Symbol.asyncIterator]();
  // Storage may wrap the source's error in its own, which would make the provider's failure look like storage's.
  let failure: { readonly error: unknown } | undefined;
  const next = async () => {
    try {
      return await source.next();
    } catch (error) {
      failure = { error };
      throw error;
    }
  };
  async function* whole(first: Buffer): AsyncGenerator<Buffer> {
    yield first;
    for (let step = await next(); !step.done; step = await next()) yield step.value;
  }
  try {
    const first = await next();
    if (first.done) throw new UpstreamFailure("unavailable", "an empty file");
    await call.store(whole(first.value), about);
  } catch (error) {
    throwFailure(failure ? failure.error : error, call.signal);
  } finally {
    // Releases the source even if storage never began to read it.
    await source.return?.();
  }
}

/** Stores items one after the other; failures count only if none is stored. Resolves with the number stored. */
export async function storeEach<T>(
  items: readonly T[],
  { log }: GenerationCall,
  store: (item: T) => Promise<boolean>,
): Promise<number> {
  let stored = 0;
  let failure = new UpstreamFailure("unavailable", "an output without a file");
  for (const item of items) {
    try {
      if (await store(item)) stored++;
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      failure = error;
      log.warn(shownInLog(error), "an image failed");
    }
  }
  if (stored === 0) throw failure;
  return stored;
}

const maxDownloads = 3;
const downloadRetryMs = 2_000;

/**
 * A failed download is repeated, because the work at the provider is done and has to be paid. `retry` of #platform/retry does
 * not observe a provider's Retry-After.
 */
export async function retryDownload<T>(
  { clock }: { readonly clock: Clock },
  { signal, log }: GenerationCall,
  download: () => Promise<T>,
  isTransient: (failure: UpstreamFailure) => boolean = () => true,
): Promise<T> {
  for (let downloads = 1; ; downloads++) {
    try {
      return await download();
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || downloads === maxDownloads || !isTransient(error)) throw error;
      log.warn(shownInLog(error), "downloading an output failed");
      const retryAfterMs = Math.min(error.retryAfterMs ?? 0, 10 * downloadRetryMs);
      await sleep(clock, Math.max(downloadRetryMs, retryAfterMs), signal);
    }
  }
}
