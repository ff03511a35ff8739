import type { SafeFetch } from "#platform/safe-fetch";
import { type Generated, type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { broken, decoded, isObject, pick } from "../wire/answers.ts";
import { failureInside } from "../wire/failures.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { keepAnswer } from "../wire/store-stream.ts";
import { formOf } from "./form.ts";
import { readImages } from "./image-answer.ts";

const megabyte = 1024 * 1024;
const pictureLimitBytes = 64 * megabyte;
/** As the provider documents them for edits. */
const inputLimitBytes = (field: string) => (field === "mask" ? 4 : 50) * megabyte;

const told = ["created", "background", "output_format", "quality", "size", "usage"];

/**
 * Pictures come as base64 or as addresses, whichever the provider's model does by itself: `response_format` is never sent,
 * because newer models refuse it and other providers know other values.
 */
export async function images(provider: ProviderClient, safeFetch: SafeFetch, call: GenerationCall): Promise<Generated> {
  const { stream: _, partial_images: __, response_format: ___, ...fields } = call.input;
  const body = { ...fields, model: call.model };
  const ask =
    call.uploads.size === 0
      ? { path: "/images/generations", json: body }
      : { path: "/images/edits", form: await formOf(body, call.uploads, inputLimitBytes) };
  const response = await provider.send(ask, call);
  const { answer, pictures } = await readImages(decoded(response), call.hold).catch((error: unknown) =>
    broken(error, call.signal),
  );
  if (answer.error != null) throw failureInside(answer, provider.clock);
  const items = Array.isArray(answer.data) ? answer.data.filter(isObject) : [];
  let count = 0;
  let lost: UpstreamFailure | undefined;
  // More than were asked for are nobody's to pay.
  for (const item of items.slice(0, typeof fields.n === "number" ? fields.n : 1)) {
    try {
      if (await keepPicture(provider, safeFetch, call, item, pictures)) count++;
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      lost = error;
      call.log.warn({ err: error.message }, "an image is lost");
    }
  }
  if (count === 0) throw lost ?? new UpstreamFailure("unavailable", "an answer without an image");
  return { output: pick(answer, told), usage: { image: count } };
}

async function keepPicture(
  provider: ProviderClient,
  safeFetch: SafeFetch,
  call: GenerationCall,
  item: JsonObject,
  pictures: Buffer[][],
): Promise<boolean> {
  const { b64_json, url } = item;
  const { signal } = call;
  const about = pick(item, ["revised_prompt"]);
  const parts = typeof b64_json === "string" ? pictures[Number(b64_json)]?.splice(0) : undefined;
  if (parts?.length) await call.keep(Buffer.concat(parts), about);
  else if (typeof url !== "string") return false;
  else {
    const answer = await safeFetch
      .get({ url, limitBytes: pictureLimitBytes, signal })
      .catch((error: unknown) => broken(error, signal));
    await keepAnswer(provider, call, answer, about);
  }
  return true;
}
