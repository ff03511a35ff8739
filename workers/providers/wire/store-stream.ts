import type { HttpAnswer } from "#platform/http";
import { type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { broken, decoded, errorLimitBytes, parse, whole } from "./answers.ts";
import { failureInside } from "./failures.ts";
import type { ProviderClient } from "./provider-client.ts";

/** Keeps the file that an answer is. */
export async function keepAnswer(
  { clock }: ProviderClient,
  call: GenerationCall,
  answer: HttpAnswer,
  about?: JsonObject,
): Promise<void> {
  const type = answer.headers["content-type"] ?? "";
  if (/^application\/([\w.-]+\+)?json\b/i.test(type))
    throw failureInside(parse(await whole(answer, errorLimitBytes, call.signal)), clock);
  if (/^text\//i.test(type)) {
    await answer.body.return?.();
    throw new UpstreamFailure("unavailable", "text in the place of a file");
  }
  await keepStream(call, decoded(answer), about);
}

/** As it comes. If it breaks off that is the provider's failure; what else fails is storage's. */
async function keepStream(call: GenerationCall, body: AsyncIterable<Buffer>, about?: JsonObject): Promise<void> {
  const source = body[Symbol.asyncIterator]();
  let failure: { readonly error: unknown } | undefined;
  const next = async () => {
    try {
      return await source.next();
    } catch (error) {
      failure = { error };
      throw error;
    }
  };
  try {
    const first = await next();
    if (first.done) throw new UpstreamFailure("unavailable", "an empty file");
    await call.keep(from(first.value, next), about);
  } catch (error) {
    broken(failure ? failure.error : error, call.signal);
  } finally {
    // Also when nobody began to read it.
    await source.return?.();
  }
}

async function* from(first: Buffer, next: () => Promise<IteratorResult<Buffer>>): AsyncGenerator<Buffer> {
  yield first;
  for (let step = await next(); !step.done; step = await next()) yield step.value;
}
