import type { HttpAnswer } from "#platform/http";
import { retry } from "#platform/retry";
import { type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { failureInside } from "./failures.ts";
import { parse } from "./json.ts";
import type { ProviderClient } from "./provider-client.ts";
import { decompressed, errorLimitBytes, readText, throwFailure } from "./read-answer.ts";

export const maxDownloads = 3;
export const downloadRetryMs = 2_000;

/** A failed download is repeated, because the work at the provider is done and has to be paid. */
export function retryDownload<T>({ clock }: ProviderClient, call: GenerationCall, download: () => Promise<T>) {
  let downloads = 0;
  const retryIf = (error: unknown) => {
    if (!(error instanceof UpstreamFailure) || ++downloads === maxDownloads) return false;
    call.log.warn({ err: error.message }, "the download of a video failed");
    return true;
  };
  const backoff = { firstMs: downloadRetryMs, maxMs: downloadRetryMs };
  return retry({ clock, signal: call.signal, backoff, retryIf }, download);
}

/** Stores the file that an answer consists of, as it arrives. */
export async function storeAnswer(
  { clock }: ProviderClient,
  call: GenerationCall,
  answer: HttpAnswer,
  about?: JsonObject,
): Promise<void> {
  const type = answer.headers["content-type"] ?? "";
  if (/^application\/([\w.-]+\+)?json\b/i.test(type))
    throw failureInside(parse(await readText(answer, errorLimitBytes, call.signal)), clock);
  if (/^text\//i.test(type)) {
    await answer.body.return?.();
    throw new UpstreamFailure("unavailable", "an answer with text where a file is expected");
  }
  const source = decompressed(answer)[Symbol.asyncIterator]();
  // Storage may wrap an error of the source in one of its own, and then the provider's failure would look like storage's.
  let failure: { readonly error: unknown } | undefined;
  const next = async () => {
    try {
      return await source.next();
    } catch (error) {
      failure = { error };
      throw error;
    }
  };
  async function* rest(first: Buffer): AsyncGenerator<Buffer> {
    yield first;
    for (let step = await next(); !step.done; step = await next()) yield step.value;
  }
  try {
    const first = await next();
    if (first.done) throw new UpstreamFailure("unavailable", "an empty file");
    await call.store(rest(first.value), about);
  } catch (error) {
    throwFailure(failure ? failure.error : error, call.signal);
  } finally {
    // Also if storage never began to read it.
    await source.return?.();
  }
}
